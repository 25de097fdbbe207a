//! What pictures of a store are drawn from: counts of graphs by what they hold, how large and how deep they are, and how many
//! of them are alike.

use crate::layout;
use crate::store::Record;
use passnet_graph::Graph;
use std::collections::BTreeMap;

/// Graphs by a number of theirs.
pub type Counts = BTreeMap<u64, u64>;

/// The counts of one kind of graphs.
#[derive(Debug, Clone, Default)]
pub struct KindPictures {
    /// By the number of operations.
    pub lengths: Counts,
    /// By the operations on the longest way from an input to an output.
    pub depths: Counts,
    /// By the power of two below the elements of all inputs.
    pub sizes: Counts,
    /// Structures, by how many graphs have them.
    pub alike: Counts,
    /// Structures with their literals, by how many graphs have them.
    pub alike_with_literals: Counts,
}

/// The counts of a store.
#[derive(Debug, Clone, Default)]
pub struct Pictures {
    /// By kind of graphs.
    pub kinds: BTreeMap<&'static str, KindPictures>,
    /// Graphs by family.
    pub families: BTreeMap<String, u64>,
    /// Graphs of a family that have an operation, by operation and family.
    pub operations: BTreeMap<String, BTreeMap<String, u64>>,
}

/// Counts while graphs are read.
#[derive(Debug, Default)]
pub(crate) struct Drawing {
    pictures: Pictures,
    structures: BTreeMap<(&'static str, String), u64>,
    literals: BTreeMap<(&'static str, String), u64>,
}

impl Drawing {
    pub(crate) fn add<'a>(
        &mut self,
        record: &Record,
        ops: impl Iterator<Item = &'a String>,
        elements: u64,
        depth: u64,
    ) {
        let description = &record.description;
        let kind = description.kind.as_str();
        let counts = self.pictures.kinds.entry(kind).or_default();
        *counts.lengths.entry(u64::from(description.op_count)).or_insert(0) += 1;
        *counts.depths.entry(depth).or_insert(0) += 1;
        *counts.sizes.entry(u64::from(elements.max(1).ilog2())).or_insert(0) += 1;
        let digests = &description.digests;
        *self.structures.entry((kind, digests.structure.clone())).or_insert(0) += 1;
        *self.literals.entry((kind, digests.literals.clone())).or_insert(0) += 1;
        let family = layout::family_of(&record.path).to_string();
        for op in ops {
            let families = self.pictures.operations.entry(op.clone()).or_default();
            *families.entry(family.clone()).or_insert(0) += 1;
        }
        *self.pictures.families.entry(family).or_insert(0) += 1;
    }

    pub(crate) fn finish(self) -> Pictures {
        let mut pictures = self.pictures;
        for ((kind, _), graphs) in self.structures {
            *pictures.kinds.entry(kind).or_default().alike.entry(graphs).or_insert(0) += 1;
        }
        for ((kind, _), graphs) in self.literals {
            let counts = pictures.kinds.entry(kind).or_default();
            *counts.alike_with_literals.entry(graphs).or_insert(0) += 1;
        }
        pictures
    }
}

/// The operations on the longest way through a graph.
pub(crate) fn depth(graph: &Graph) -> u64 {
    let mut depths = vec![0u64; graph.nodes().len()];
    for (id, call) in graph.calls() {
        let mut above = 0;
        call.for_each_input(|input| above = above.max(depths[input.index()]));
        depths[id.index()] = above + 1;
    }
    depths.into_iter().max().unwrap_or(0)
}
