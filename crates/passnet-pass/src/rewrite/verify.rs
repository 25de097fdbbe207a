//! What must hold of a rewritten graph.
//!
//! Checked:
//! - the invariants of [`Graph`]: placeholders first, use after definition, unique names, existing outputs;
//! - the placeholders are the same, in the same order;
//! - as many values are returned as before;
//! - every value that was used is still there: no use of a removed node was lost;
//! - the calls outside the patch are the same calls;
//! - calls with effects that stay (writes in place, random draws, modes) are in the same order;
//! - a call that fitted its operation's signature still does.
//!
//! Not checked: that the replacement computes the same values. That takes running it.

use super::Patch;
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
    let effects_before = ordered_effects(before, |id| !removed.contains(&id));
    let staying: FxHashSet<&str> = effects_before.iter().copied().collect();
    let effects_after = ordered_effects(after, |id| staying.contains(&*after.node(id).name));
    if effects_before != effects_after {
        return Err("calls with effects changed their order".into());
    }
    Ok(())
}

fn node_count(arg: &Arg) -> usize {
    let mut count = 0;
    arg.for_each_node(&mut |_| count += 1);
    count
}

/// Names of the calls with effects, in order.
fn ordered_effects(graph: &Graph, keep: impl Fn(NodeId) -> bool) -> Vec<&str> {
    let effects = Effects::of(graph);
    let calls = graph.calls().map(|(id, _)| id);
    calls
        .filter(|id| (effects.mutates(*id) || effects.is_global(*id)) && keep(*id))
        .map(|id| &*graph.node(id).name)
        .collect()
}
