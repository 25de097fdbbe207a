//! Dedup: among equal graphs the first by path stays and inherits the places of the others.
//!
//! Graphs are compared within one kind and one variant: a piece in float16 never collapses into the same piece in
//! float32, nor a shape variant into another. Running it again changes nothing.

use crate::describe::sources_json;
use crate::layout;
use crate::store::{Description, Digests, Entry, Kind, Provenance, Record, Store, StoreError};
use passnet_graph::FileName;
use passnet_work::progress::{Progress, Task};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Entries changed in one transaction.
const BATCH: usize = 512;

/// How equal graphs must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Same operations, same flow.
    Structure,
    /// Same literal arguments too.
    Literals,
    /// Same input shapes and dtypes too.
    Full,
}

impl Level {
    /// The digest of this level.
    pub fn of(self, digests: &Digests) -> &str {
        match self {
            Level::Structure => &digests.structure,
            Level::Literals => &digests.literals,
            Level::Full => &digests.full,
        }
    }
}

/// What to compare, and what to do about it.
#[derive(Debug, Clone)]
pub struct DedupOptions {
    /// How equal graphs must be to collapse.
    pub level: Level,
    /// Kinds to look at.
    pub kinds: Vec<Kind>,
    /// Leave variants alone.
    pub originals_only: bool,
    /// Only say what would collapse.
    pub dry_run: bool,
}

impl Default for DedupOptions {
    fn default() -> Self {
        Self {
            level: Level::Full,
            kinds: Kind::ALL.to_vec(),
            originals_only: false,
            dry_run: false,
        }
    }
}

/// Equal graphs: the one that stays, and those that collapse into it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Collapse {
    /// The path that stays.
    pub kept: String,
    /// What all of them share.
    pub digest: String,
    /// The paths that go.
    pub removed: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
/// What a removal of duplicates did.
pub struct DedupReport {
    /// Graphs that were compared.
    pub looked_at: u64,
    /// Graphs that went, or would go.
    pub removed: u64,
    /// By the path that stays.
    pub collapses: Vec<Collapse>,
}

type Key = (Kind, Option<(String, u32)>, String);

/// Collapses equal graphs of a store.
pub fn dedup(
    store: &mut Store,
    options: &DedupOptions,
    progress: &dyn Progress,
) -> Result<DedupReport, StoreError> {
    let mut report = DedupReport::default();
    let mut classes: BTreeMap<Key, Vec<Record>> = BTreeMap::new();
    for record in store.entries() {
        let record = record?;
        let Description { kind, variant, .. } = &record.description;
        let varied = variant.as_ref().is_some_and(|variant| *variant != layout::original());
        if options.kinds.contains(kind) && !(options.originals_only && varied) {
            report.looked_at += 1;
            classes.entry(key(&record.description, options.level)).or_default().push(record);
        }
    }
    let mut equal: Vec<Vec<Record>> =
        classes.into_values().filter(|class| class.len() > 1).collect();
    // Entries come in path order, so the first of a class is the one that stays.
    equal.sort_by(|a, b| a[0].path.cmp(&b[0].path));
    let mut task = Task::begin(progress, "dedup", Some(equal.len() as u64));
    for classes in equal.chunks(BATCH) {
        if !options.dry_run {
            // First the heirs, then the removals: a kill between the two leaves a store that the next run finishes.
            let heirs = classes
                .iter()
                .filter_map(|class| heir(store, class).transpose())
                .collect::<Result<Vec<_>, _>>()?;
            store.insert(&heirs)?;
            store.remove(classes.iter().flat_map(|class| &class[1..]).map(|r| r.path.as_str()))?;
        }
        task.advance(classes.len() as u64);
    }
    drop(task);
    for class in equal {
        report.removed += class.len() as u64 - 1;
        let mut paths = class.iter().map(|record| record.path.clone());
        report.collapses.push(Collapse {
            kept: paths.next().unwrap_or_default(),
            digest: options.level.of(&class[0].description.digests).to_string(),
            removed: paths.collect(),
        });
    }
    Ok(report)
}

fn key(description: &Description, level: Level) -> Key {
    let variant = description.variant.as_ref().map(|v| (v.dtype.clone(), v.shape_index));
    (description.kind, variant, level.of(&description.digests).to_string())
}

/// The entry that stays with the places of all; `None` when it has them already.
fn heir(store: &Store, class: &[Record]) -> Result<Option<Entry>, StoreError> {
    let Some(first) = class.first() else { return Ok(None) };
    let merged = merge(class.iter().flat_map(|record| &record.description.provenance));
    if merged == first.description.provenance {
        return Ok(None);
    }
    let mut graph = store.load(first)?;
    graph = graph.with(FileName::SubgraphSources, sources_json(&merged));
    let description = Description { provenance: merged, ..first.description.clone() };
    Ok(Some(Entry { graph, description }))
}

/// The union of places. The first place stays first, because a piece is cut again from there; the others are sorted.
fn merge<'a>(all: impl Iterator<Item = &'a Provenance>) -> Vec<Provenance> {
    let mut first: Option<&Provenance> = None;
    let mut places: BTreeMap<&str, BTreeSet<(u32, u32)>> = BTreeMap::new();
    for one in all {
        first.get_or_insert(one);
        let ranges = places.entry(&one.parent).or_default();
        ranges.extend(one.ranges.iter().map(|range| (range.start, range.end)));
    }
    let Some(first) = first else { return Vec::new() };
    let sorted = |parent: &str, ranges: BTreeSet<(u32, u32)>| -> Provenance {
        let ranges: Vec<Range<u32>> = ranges.into_iter().map(|(start, end)| start..end).collect();
        Provenance { parent: parent.to_string(), ranges }
    };
    let mut merged: Vec<Provenance> = Vec::with_capacity(places.len());
    if let Some(ranges) = places.remove(first.parent.as_str()) {
        let mut head = sorted(&first.parent, ranges);
        if let Some(origin) = first.ranges.first() {
            head.ranges.retain(|range| range != origin);
            head.ranges.insert(0, origin.clone());
        }
        merged.push(head);
    }
    merged.extend(places.into_iter().map(|(parent, ranges)| sorted(parent, ranges)));
    merged
}
