//! What must hold of a rewritten graph.
//!
//! Checked:
//! - the invariants of [`Graph`]: placeholders first, use after definition, unique names, existing outputs;
//! - the placeholders are the same, in the same order;
//! - as many values are returned as before;
//! - every value that was used is still there: no use of a removed node was lost;
//! - the calls outside the patch are the same calls;
//! - a call that must stay after another (a read after a write, a write after a read, random draws and modes in
//!   turn) does, where the patch stands for what it removed;
//! - a call that fitted its operation's signature still does.
//!
//! Not checked: that the replacement computes the same values. That takes running it.

use super::Patch;
use crate::mapped::maps;
use passnet_graph::graph::effects::Effects;
use passnet_graph::{Arg, Graph, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};

/// The first violated invariant.
pub fn verify(before: &Graph, after: &Graph, patch: &Patch) -> Result<(), String> {
    after.verify()?;
    if before.placeholders() != after.placeholders() {
        return Err("the inputs of the graph changed".into());
    }
    if before.outputs.len() != after.outputs.len() {
        return Err("the number of outputs changed".into());
    }
    let outputs = before.outputs.iter().zip(&after.outputs);
    if outputs.into_iter().any(|(old, new)| node_count(old) != node_count(new)) {
        return Err("an output was lost".into());
    }
    let removed: FxHashSet<NodeId> = patch.removes.iter().map(|(id, _)| *id).collect();
    let by_name: FxHashMap<&str, NodeId> =
        after.calls().map(|(id, _)| (&*after.node(id).name, id)).collect();
    let kept = before.calls().filter(|(id, _)| !removed.contains(id));
    for (id, old) in kept {
        let name = &before.node(id).name;
        let Some(call) = by_name.get(&**name).and_then(|id| after.call(*id)) else {
            return Err(format!("`{name}` is gone"));
        };
        let inputs = |call: &passnet_graph::Call| {
            let mut count = 0;
            call.for_each_input(|_| count += 1);
            count
        };
        if old.target != call.target || inputs(old) > inputs(call) {
            return Err(format!("`{name}` changed"));
        }
        if old.bind().is_ok()
            && let Err(reason) = call.bind()
        {
            return Err(format!("`{name}`: {reason}"));
        }
    }
    effects_in_order(before, after, &removed, &by_name)
}

fn node_count(arg: &Arg) -> usize {
    let mut count = 0;
    arg.for_each_node(&mut |_| count += 1);
    count
}

/// What a call had to stay after (see [`Effects::order`]) still comes before it. Effects on different memory have
/// no order among themselves.
fn effects_in_order(
    before: &Graph,
    after: &Graph,
    removed: &FxHashSet<NodeId>,
    by_name: &FxHashMap<&str, NodeId>,
) -> Result<(), String> {
    let staying: FxHashSet<NodeId> = before
        .calls()
        .filter(|(id, _)| !removed.contains(id))
        .filter_map(|(id, _)| by_name.get(&*before.node(id).name).copied())
        .collect();
    let mut added = after.calls().map(|(id, _)| id).filter(|id| !staying.contains(id));
    let Some(first) = added.next() else { return Err("the patch added nothing".into()) };
    let last = added.next_back().unwrap_or(first);
    // A removed call is wherever the patch is: it starts with the first added call and ends with the last.
    let place = |id: NodeId, of_patch: NodeId| {
        if removed.contains(&id) {
            Some(of_patch)
        } else {
            by_name.get(&*before.node(id).name).copied()
        }
    };
    let is_taken = |id: NodeId| maps(before, id) && removed.contains(&id);
    let order = Effects::of(before).order_without(before, is_taken);
    for (id, earlier) in before.ids().zip(&order) {
        for &earlier in earlier {
            let within = removed.contains(&id) && removed.contains(&earlier);
            if !within && place(earlier, last) >= place(id, first) {
                let (id, earlier) = (&before.node(id).name, &before.node(earlier).name);
                return Err(format!("`{id}` no longer comes after `{earlier}`"));
            }
        }
    }
    Ok(())
}
