//! Identity: digests that two graphs share exactly when they compute the same thing the same way.
//!
//! A digest does not depend on names, on the order of independent statements, on the order of the forward
//! arguments or on how a call is spelled. It depends on the operations, on what flows where, on the order of
//! effects, and (by level) on literals and on the shapes and dtypes of the inputs.
//!
//! Method: every node gets a label from what it computes (upwards from the inputs), then from how its result
//! is used (downwards from the outputs), twice; the digest covers the sorted labels and the ordered outputs.
//! Cost: a few hashes per node and argument, O(n log n) for the sorting.

mod label;
mod outline;

use crate::graph::effects::Effects;
use crate::graph::{Graph, NodeId};
use crate::read::TensorMeta;
use label::{Label, Mixer};
use outline::{Detail, Outline};
use std::fmt;

/// A 256-bit digest, printed as 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Digest(*blake3::hash(bytes).as_bytes())
    }

    /// The digest itself.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The three levels of identity; each distinguishes at least what the one before it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Operations and topology.
    pub structure: Digest,
    /// The same, with literal arguments.
    pub literals: Digest,
    /// The same, with the shapes and dtypes of the inputs.
    pub full: Digest,
}

/// Identifies a graph; `metas` are its arguments' metas in order, or empty if there are none.
pub fn identify(graph: &Graph, metas: &[TensorMeta]) -> Identity {
    let order = Effects::of(graph).order(graph);
    let bound: Vec<_> = graph.calls().map(|(_, call)| call.bind().ok()).collect();
    let operations = Outline::of(graph, &bound, &order, Detail::Operations);
    let literals = Outline::of(graph, &bound, &order, Detail::Literals);
    let untyped = outline::placeholders(graph, &[]);
    Identity {
        structure: digest(&operations, &untyped),
        literals: digest(&literals, &untyped),
        full: digest(&literals, &outline::placeholders(graph, metas)),
    }
}

fn digest(outline: &Outline, placeholders: &[Label]) -> Digest {
    let mut placeholders = placeholders.to_vec();
    let mut labels = Vec::new();
    for _ in 0..2 {
        labels = downward(outline, &upward(outline, &placeholders));
        let count = placeholders.len();
        placeholders.copy_from_slice(&labels[..count]);
    }
    let outputs = outline.outputs.label(&labels);
    let mut sorted: Vec<Label> = (0..labels.len())
        .filter(|&index| outline.counts[index])
        .map(|index| labels[index])
        .collect();
    sorted.sort_unstable();
    let mut hasher = blake3::Hasher::new();
    for label in sorted {
        hasher.update(&label.to_bytes());
    }
    hasher.update(&outputs.to_bytes());
    Digest(*hasher.finalize().as_bytes())
}

/// What each node computes, from the labels of the placeholders.
fn upward(outline: &Outline, placeholders: &[Label]) -> Vec<Label> {
    let mut labels = placeholders.to_vec();
    labels.reserve(outline.calls.len());
    let mut before = Vec::new();
    for call in &outline.calls {
        let mut mixer = Mixer::new(call.form.label(&labels));
        before.clear();
        before.extend(call.after.iter().map(|earlier| labels[earlier.index()]));
        before.sort_unstable();
        before.iter().for_each(|label| mixer.label(*label));
        labels.push(mixer.finish());
    }
    labels
}

/// How each node is used: by whom, in which place, and as which output.
fn downward(outline: &Outline, upward: &[Label]) -> Vec<Label> {
    // The uses of all nodes lie in one list, each node's where `use_starts` says. They come from later nodes only,
    // so a node's are complete when its turn comes.
    let mut uses = vec![Label::OUTPUT; outline.use_count()];
    let mut ends = outline.use_starts.clone();
    let mut note = |node: NodeId, uses: &mut [Label], label: Label| {
        let end = &mut ends[node.index()];
        uses[*end] = label;
        *end += 1;
    };
    let mut labels = upward.to_vec();
    for (id, place) in outline.outputs.uses() {
        note(id, &mut uses, Mixer::new(Label::OUTPUT).with(place).finish());
    }
    let first_call = upward.len() - outline.calls.len();
    for index in (0..upward.len()).rev() {
        let own = &mut uses[outline.use_starts[index]..outline.use_starts[index + 1]];
        own.sort_unstable();
        let mut mixer = Mixer::new(upward[index]);
        own.iter().for_each(|label| mixer.label(*label));
        let label = mixer.finish();
        labels[index] = label;
        let Some(call) = index.checked_sub(first_call).map(|index| &outline.calls[index]) else {
            continue;
        };
        for (input, place) in call.form.uses() {
            note(input, &mut uses, Mixer::new(label).with(place).finish());
        }
        for earlier in call.after {
            note(*earlier, &mut uses, Mixer::new(label).with(u64::MAX).finish());
        }
    }
    labels
}
