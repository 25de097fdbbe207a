//! Which tensors lie in the host's memory though the graph runs on a GPU: a graph may make them there, by naming no device,
//! and eager lets operations of the CPU and single numbers use them. A kernel cannot.

use crate::form::Form;
use passnet_graph::ops::Class;
use passnet_graph::{Arg, NodeId};

/// For every node whether its tensor was made without a device, or of nothing but such tensors.
pub(super) fn on_host(form: &Form) -> Vec<bool> {
    let graph = form.graph();
    let is_tensor = |id: NodeId| form.members[0].types.value(id).as_tensor().is_some();
    let mut on_host = vec![false; graph.nodes().len()];
    for (id, call) in graph.calls() {
        let Ok(bound) = call.bind() else { continue };
        let mut tensors = 0;
        let mut others = false;
        call.for_each_input(|input| {
            if is_tensor(input) {
                tensors += 1;
                others |= !on_host[input.index()];
            }
        });
        let is_made = matches!(bound.class(), Class::Creation | Class::Random) && tensors == 0;
        let is_moved = matches!(bound.arg("device"), Arg::Device(_));
        on_host[id.index()] = !is_moved && (is_made || (tensors > 0 && !others));
    }
    on_host
}
