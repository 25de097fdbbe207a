//! What a store holds: graphs by kind, family and dtype, how many differ, which operations they use, how large they
//! are.

use crate::layout;
use crate::pictures::{self, Drawing, Pictures};
use crate::store::{Kind, Record, Store, StoreError};
use crate::sweep;
use passnet_graph::read::read_folder;
use passnet_graph::{DType, GraphFiles};
use passnet_work::progress::Progress;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

/// The figures of one store.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Stats {
    /// Graphs of all kinds looked at.
    pub graphs: u64,
    /// Bytes of the store's file.
    pub store_bytes: u64,
    /// Key of all graphs and tasks of the store: two builds from one source have the same.
    pub content: String,
    /// Which version of the benchmark the store is, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// By kind.
    pub kinds: BTreeMap<&'static str, KindStats>,
    /// By operation, over all kinds looked at.
    pub ops: BTreeMap<String, OpStats>,
    /// What pictures are drawn from.
    #[serde(skip)]
    pub pictures: Pictures,
}

/// The figures of one kind of graphs.
#[derive(Debug, Clone, Default, Serialize)]
pub struct KindStats {
    /// Graphs of this kind.
    pub graphs: u64,
    /// Operations of all of them.
    pub op_total: u64,
    /// Operations of a graph.
    pub op_counts: Spread,
    /// Distinct graphs by ops and topology.
    pub unique_structure: u64,
    /// The same with literals.
    pub unique_literals: u64,
    /// The same with literals, shapes and dtypes.
    pub unique_full: u64,
    /// Graphs by the family of their model.
    pub families: BTreeMap<String, u64>,
    /// The dtype of most inputs; for variants, the dtype of the variant.
    pub dtypes: BTreeMap<String, u64>,
    /// Variants by the number of their sizes.
    pub shape_indices: BTreeMap<u32, u64>,
    /// Elements of all inputs and weights of a graph.
    pub elements: Spread,
    /// Graphs whose operations are all in the table.
    pub known: u64,
}

/// How often an operation is used.
#[derive(Debug, Clone, Default, Serialize)]
pub struct OpStats {
    /// Calls in all graphs.
    pub calls: u64,
    /// Graphs that call it.
    pub graphs: u64,
}

/// Order statistics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// The smallest.
    pub min: u64,
    /// One of ten has no more.
    pub p10: u64,
    /// Half have no more.
    pub median: u64,
    /// Nine of ten have no more.
    pub p90: u64,
    /// The largest.
    pub max: u64,
}

impl Spread {
    fn of(mut values: Vec<u64>) -> Self {
        values.sort_unstable();
        let at = |tenths: usize| {
            let last = values.len().saturating_sub(1);
            values.get(last * tenths / 10).copied().unwrap_or(0)
        };
        Self { min: at(0), p10: at(1), median: at(5), p90: at(9), max: at(10) }
    }
}

/// What one graph adds.
struct Seen {
    ops: BTreeMap<String, u64>,
    dtype: Option<DType>,
    elements: u64,
    depth: u64,
    known: bool,
}

#[derive(Default)]
struct Gathering {
    stats: KindStats,
    digests: [BTreeSet<String>; 3],
    op_counts: Vec<u64>,
    elements: Vec<u64>,
}

/// Reads every graph of the given kinds.
pub fn stats(
    store: &Store,
    kinds: &[Kind],
    workers: NonZeroUsize,
    progress: &dyn Progress,
) -> Result<Stats, StoreError> {
    let mut records = Vec::new();
    for kind in kinds {
        records.extend(store.of_kind(*kind)?);
    }
    let mut stats = Stats {
        graphs: records.len() as u64,
        store_bytes: store.size()?,
        content: store.content()?.to_string(),
        version: crate::benchmark::version(store)?,
        ..Stats::default()
    };
    let mut drawing = Drawing::default();
    let mut gathered: BTreeMap<&'static str, Gathering> = BTreeMap::new();
    sweep::read_all(store, records, "reading graphs", workers, progress, look, |record, seen| {
        for (op, calls) in &seen.ops {
            let count = stats.ops.entry(op.clone()).or_default();
            count.calls += calls;
            count.graphs += 1;
        }
        drawing.add(&record, seen.ops.keys(), seen.elements, seen.depth);
        gathered.entry(record.description.kind.as_str()).or_default().add(&record, &seen);
        Ok(())
    })?;
    stats.pictures = drawing.finish();
    stats.kinds = gathered.into_iter().map(|(kind, all)| (kind, all.finish())).collect();
    Ok(stats)
}

fn look(_: &Record, files: &GraphFiles) -> Seen {
    let mut seen = Seen { ops: BTreeMap::new(), dtype: None, elements: 0, depth: 0, known: true };
    // What cannot be read has no ops to count; `verify` reports it.
    let Ok(folder) = read_folder(files) else { return Seen { known: false, ..seen } };
    for (_, call) in folder.graph.calls() {
        let name = match call.op() {
            Some(op) => op.name().to_string(),
            None => {
                seen.known = false;
                call.target.to_string()
            }
        };
        *seen.ops.entry(name).or_insert(0) += 1;
    }
    seen.depth = pictures::depth(&folder.graph);
    let mut dtypes: BTreeMap<DType, usize> = BTreeMap::new();
    for meta in &folder.metas {
        *dtypes.entry(meta.dtype).or_insert(0) += 1;
        seen.elements = seen.elements.saturating_add(meta.elements().unsigned_abs());
    }
    seen.dtype = dtypes.into_iter().max_by_key(|(_, count)| *count).map(|(dtype, _)| dtype);
    seen
}

impl Gathering {
    fn add(&mut self, record: &Record, seen: &Seen) {
        let description = &record.description;
        let count = &mut self.stats;
        count.graphs += 1;
        count.op_total += u64::from(description.op_count);
        count.known += u64::from(seen.known);
        *count.families.entry(layout::family_of(&record.path).to_string()).or_insert(0) += 1;
        let dtype = match &description.variant {
            Some(variant) if variant.dtype != layout::ORIGINAL_DTYPE => variant.dtype.clone(),
            _ => seen.dtype.map_or("none".into(), |dtype| dtype.name().to_string()),
        };
        *count.dtypes.entry(dtype).or_insert(0) += 1;
        if let Some(variant) = &description.variant {
            *count.shape_indices.entry(variant.shape_index).or_insert(0) += 1;
        }
        self.op_counts.push(u64::from(description.op_count));
        self.elements.push(seen.elements);
        let digests = &description.digests;
        for (set, digest) in
            self.digests.iter_mut().zip([&digests.structure, &digests.literals, &digests.full])
        {
            set.insert(digest.clone());
        }
    }

    fn finish(self) -> KindStats {
        let [structure, literals, full] = self.digests.map(|set| set.len() as u64);
        KindStats {
            op_counts: Spread::of(self.op_counts),
            elements: Spread::of(self.elements),
            unique_structure: structure,
            unique_literals: literals,
            unique_full: full,
            ..self.stats
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_of_few_values_is_made_of_them() {
        assert_eq!(Spread::of(vec![]), Spread::default());
        let spread = Spread::of((1..=11).rev().collect());
        assert_eq!(spread, Spread { min: 1, p10: 2, median: 6, p90: 10, max: 11 });
    }
}
