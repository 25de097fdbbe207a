//! Where in a store certain operations stand, and where a pattern matches.
//!
//! Graphs that cannot match are left out by an index of operations, which is made of one graph for each structure. Of the
//! others one for each set of literals is looked at: what matches there depends on nothing else, whatever the sizes are.

use crate::layout;
use crate::store::{Kind, OpCounts, Outline, Outlines, Record, Store, StoreError, StoreErrorKind};
use crate::sweep;
use passnet_graph::read::{GraphFolder, read_folder};
use passnet_graph::{Graph, GraphFiles};
use passnet_work::progress::Progress;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::num::NonZeroUsize;
use std::path::Path;

/// An index of fewer structures is made again when it is needed: it is not worth a change of the store's file.
const KEPT_FROM: usize = 4_096;

/// Counts the places in a graph where something matches.
pub type Matcher<'a> = &'a (dyn Fn(&GraphFolder) -> usize + Sync);

/// What is looked for.
#[derive(Clone, Copy)]
pub struct Query<'a> {
    /// Operations that a graph must have, and how often at least.
    pub ops: &'a OpCounts,
    /// Without one, calls of these operations are counted.
    pub matcher: Option<Matcher<'a>>,
}

impl std::fmt::Debug for Query<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Query").field("ops", self.ops).finish_non_exhaustive()
    }
}

/// A graph in which something was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// Its path in the store.
    pub path: String,
    /// Whole model or piece, and of which kind.
    #[serde(serialize_with = "kind_name")]
    pub kind: Kind,
    /// How often it was found there.
    pub places: usize,
}

fn kind_name<S: serde::Serializer>(kind: &Kind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.as_str())
}

/// What a search came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FindReport {
    /// Graphs that were searched.
    pub searched: usize,
    /// Those of them that have all the operations.
    pub candidates: usize,
    /// Files of so many graphs were read for it; the others are the same but for their sizes.
    pub read: usize,
    /// Graphs with a place.
    pub graphs: usize,
    /// Places in all of them.
    pub places: usize,
    /// Distinct structures among the graphs with a place.
    pub structures: usize,
    /// The graphs with a place, by family.
    pub families: BTreeMap<String, usize>,
}

/// The operations of all graphs of some kinds.
#[derive(Debug)]
pub struct Index {
    outlines: Outlines,
    /// By the number of the structure.
    ops: Vec<OpCounts>,
    /// Structures that were read for it; the others were known.
    pub made: usize,
}

/// How often each operation of a graph is called, by the table's names.
pub fn op_counts(graph: &Graph) -> OpCounts {
    let mut counts = OpCounts::new();
    for (_, call) in graph.calls() {
        let name = call.op().map_or_else(|| call.target.to_string(), |op| op.name().to_string());
        *counts.entry(name).or_insert(0) += 1;
    }
    counts
}

impl Index {
    /// Takes the index of a store, and makes what it lacks. That is kept in the store where it is much and nobody else
    /// writes.
    pub fn open(
        path: &Path,
        kinds: &[Kind],
        workers: NonZeroUsize,
        progress: &dyn Progress,
    ) -> Result<Self, StoreError> {
        let store = Store::open(path)?;
        let outlines = store.outlines(kinds)?;
        let mut known = store.op_index()?;
        let mut first: HashMap<usize, &Outline> = HashMap::new();
        for outline in &outlines.entries {
            if !known.contains_key(&outlines.structures[outline.structure]) {
                first.entry(outline.structure).or_insert(outline);
            }
        }
        let mut first: Vec<&Outline> = first.into_values().collect();
        first.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let records = records(&store, first.iter().map(|outline| outline.path.as_str()))?;
        let mut made = Vec::with_capacity(records.len());
        // What cannot be read has no operations to be found by; `verify` reports it.
        let look = |_: &Record, files: &GraphFiles| {
            read_folder(files).map(|folder| op_counts(&folder.graph)).unwrap_or_default()
        };
        sweep::read_all(&store, records, "indexing", workers, progress, look, |record, ops| {
            made.push((record.description.digests.structure, ops));
            Ok(())
        })?;
        drop(store);
        if made.len() >= KEPT_FROM {
            keep(path, &made, workers)?;
        }
        let count = made.len();
        known.extend(made);
        let ops = outlines.structures.iter().map(|digest| known.remove(digest).unwrap_or_default());
        Ok(Self { ops: ops.collect(), outlines, made: count })
    }

    /// How many graphs the index covers.
    pub fn len(&self) -> usize {
        self.outlines.entries.len()
    }

    /// Whether it covers no graph.
    pub fn is_empty(&self) -> bool {
        self.outlines.entries.is_empty()
    }

    /// All operations that some graph has.
    pub fn operations(&self) -> BTreeSet<&str> {
        self.ops.iter().flat_map(|ops| ops.keys().map(String::as_str)).collect()
    }

    /// Searches for what `query` says; `each` sees the graphs with a place, in the order of their paths.
    pub fn find(
        &self,
        store: &Store,
        query: Query<'_>,
        workers: NonZeroUsize,
        progress: &dyn Progress,
        mut each: impl FnMut(&Found),
    ) -> Result<FindReport, StoreError> {
        let has =
            |ops: &OpCounts| query.ops.iter().all(|(op, n)| ops.get(op).is_some_and(|m| m >= n));
        let fits: Vec<bool> = self.ops.iter().map(has).collect();
        let entries = self.outlines.entries.iter();
        let candidates: Vec<&Outline> = entries.filter(|entry| fits[entry.structure]).collect();
        let mut report = FindReport {
            searched: self.len(),
            candidates: candidates.len(),
            ..FindReport::default()
        };
        let places = match query.matcher {
            Some(matcher) => self.matched(store, &candidates, matcher, workers, progress)?,
            None => HashMap::new(),
        };
        report.read = places.len();
        let calls = |ops: &OpCounts| query.ops.keys().filter_map(|op| ops.get(op)).sum::<u32>();
        let mut structures = BTreeSet::new();
        for entry in candidates {
            let places = match query.matcher {
                Some(_) => places.get(&entry.literals).copied().unwrap_or(0),
                None => calls(&self.ops[entry.structure]) as usize,
            };
            if places == 0 {
                continue;
            }
            report.graphs += 1;
            report.places += places;
            structures.insert(entry.structure);
            let family = layout::family_of(&entry.path).to_string();
            *report.families.entry(family).or_insert(0) += 1;
            each(&Found { path: entry.path.clone(), kind: entry.kind, places });
        }
        report.structures = structures.len();
        Ok(report)
    }

    /// The matches in one graph of each set of literals.
    fn matched(
        &self,
        store: &Store,
        candidates: &[&Outline],
        matcher: Matcher<'_>,
        workers: NonZeroUsize,
        progress: &dyn Progress,
    ) -> Result<HashMap<usize, usize>, StoreError> {
        let mut seen = HashSet::new();
        let first = candidates.iter().filter(|entry| seen.insert(entry.literals));
        let asked: Vec<(usize, &str)> =
            first.map(|entry| (entry.literals, entry.path.as_str())).collect();
        let records = records(store, asked.iter().map(|(_, path)| *path))?;
        let look = |_: &Record, files: &GraphFiles| match read_folder(files) {
            Ok(folder) => matcher(&folder),
            Err(_) => 0,
        };
        let mut numbers = asked.iter().map(|(literals, _)| *literals);
        let mut places = HashMap::with_capacity(asked.len());
        sweep::read_all(store, records, "matching", workers, progress, look, |_, count| {
            // Results come in the order of the records.
            places.extend(numbers.next().map(|literals| (literals, count)));
            Ok(())
        })?;
        Ok(places)
    }
}

/// The entries at some paths.
fn records<'a>(
    store: &Store,
    paths: impl Iterator<Item = &'a str>,
) -> Result<Vec<Record>, StoreError> {
    let missing = |path: &str| StoreError {
        store: store.path().to_owned(),
        kind: StoreErrorKind::Damaged(format!("`{path}` is gone")),
    };
    paths.map(|path| store.get(path)?.ok_or_else(|| missing(path))).collect()
}

/// Keeps an index, unless another process writes to the store or this one may not.
fn keep(path: &Path, made: &[(String, OpCounts)], workers: NonZeroUsize) -> Result<(), StoreError> {
    let may_write = std::fs::metadata(path).is_ok_and(|data| !data.permissions().readonly());
    if !may_write {
        return Ok(());
    }
    match Store::open_for_writing(path, workers) {
        Ok(mut store) => store.keep_op_index(made),
        Err(StoreError { kind: StoreErrorKind::InUse | StoreErrorKind::Io(_), .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
