//! Runs of parts put together into the run that one process would have written.

use super::{Event, GraphEvent, GraphId, RunStore, Start, read_object, read_sealed};
use crate::event_log::LogError;
use crate::shard::Unit;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// A kept text that is larger is not one of ours.
const MAX_OBJECT_BYTES: u64 = 64 << 20;

/// Why runs cannot become one.
#[derive(Debug)]
pub enum MergeError {
    /// A part cannot be read.
    Log(LogError),
    /// They are not parts of one run, or not all of it.
    Unlike(String),
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MergeError::Log(error) => error.fmt(f),
            MergeError::Unlike(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for MergeError {}

impl From<LogError> for MergeError {
    fn from(error: LogError) -> Self {
        MergeError::Log(error)
    }
}

/// In what two beginnings are not of one run, in words that name both sides. Times and noise are measured anew each time.
pub fn difference(one: &Start, two: &Start) -> Option<String> {
    let differ = |what: &str, one: &str, two: &str| {
        (one != two).then(|| format!("another {what}: `{one}` and `{two}`"))
    };
    let settings = |start: &Start| {
        let mut options = start.options.clone();
        options.noise_floor = 0.0;
        serde_json::to_string(&options).unwrap_or_default()
    };
    let rules = |start: &Start| format!("{:?}", start.rules);
    let difference = one.origin().differences(&two.origin()).into_iter().next();
    difference
        .and_then(|found| differ(found.what, &found.one, &found.two))
        .or_else(|| differ("version", &one.version, &two.version))
        .or_else(|| differ("compiler", &one.compiler, &two.compiler))
        .or_else(|| differ("depth of checking", &one.depth(), &two.depth()))
        .or_else(|| differ("set of rules", &rules(one), &rules(two)))
        .or_else(|| differ("way of judging", &settings(one), &settings(two)))
}

/// One part as it was read.
struct ReadPart {
    folder: PathBuf,
    start: Start,
    /// The last result of each graph.
    graphs: BTreeMap<GraphId, GraphEvent>,
}

impl ReadPart {
    fn read(folder: &Path) -> Result<ReadPart, MergeError> {
        let unlike = |text: &str| MergeError::Unlike(format!("{}: {text}", folder.display()));
        let (events, seal) = read_sealed(folder)?;
        if let Some(&line) = seal.broken.first() {
            let path = folder.join(super::store::EVENTS);
            return Err(LogError::Broken { path, name: "run", line }.into());
        }
        // The whole is sealed anew: what is not sealed could be anything, and would pass for a result from then on.
        if seal.unsealed > 0 {
            let text =
                format!("{} of its lines are not sealed, so they may be anybody's", seal.unsealed);
            return Err(unlike(&text));
        }
        if !matches!(events.last(), Some((_, Event::End { .. }))) {
            return Err(unlike("this run has not come to its end; the same command goes on"));
        }
        let (mut first, mut graphs) = (None::<Start>, BTreeMap::new());
        for (_, event) in events {
            match event {
                Event::Start(start) => match &mut first {
                    None => first = Some(*start),
                    Some(before) => {
                        if let Some(found) = difference(before, &start) {
                            return Err(unlike(&format!("its results are of two kinds: {found}")));
                        }
                        let floor = &mut before.options.noise_floor;
                        *floor = floor.max(start.options.noise_floor);
                    }
                },
                Event::Graph(graph) => drop(graphs.insert(graph.id(), *graph)),
                Event::End { .. } => {}
            }
        }
        let start = first.ok_or_else(|| unlike("this run has no beginning"))?;
        Ok(ReadPart { folder: folder.to_path_buf(), start, graphs })
    }
}

/// Writes the run that one process would have written: one beginning, the results of all units in their order, the end.
/// The largest noise that any part saw is that of all, as with several devices of one machine. `units` are all units in
/// their order, each with the place of its run in `runs`.
pub fn merge(
    runs: &[PathBuf],
    units: &[(usize, &Unit)],
    out: &Path,
) -> Result<Vec<GraphEvent>, MergeError> {
    let mut parts = runs.iter().map(|run| ReadPart::read(run)).collect::<Result<Vec<_>, _>>()?;
    let Some(first) = parts.first() else {
        return Err(MergeError::Unlike("there is nothing to merge".into()));
    };
    for part in &parts {
        if let Some(found) = difference(&first.start, &part.start) {
            let (one, two) = (first.folder.display(), part.folder.display());
            return Err(MergeError::Unlike(format!("{one} and {two} are unlike: {found}")));
        }
    }
    let mut start = first.start.clone();
    for part in &parts {
        let floor = &mut start.options.noise_floor;
        *floor = floor.max(part.start.options.noise_floor);
        start.time = start.time.min(part.start.time);
    }
    let mut merged = Vec::new();
    for (part, unit) in units {
        let part = &mut parts[*part];
        for graph in &unit.graphs {
            let at = GraphId {
                sample: unit.sample.clone(),
                folder: unit.folder.clone(),
                graph: graph.clone(),
            };
            let folder = part.folder.display();
            let Some(event) = part.graphs.remove(&at) else {
                let text = format!("{folder}: {}/{graph} has no result", unit.name);
                return Err(MergeError::Unlike(text));
            };
            merged.push((part.folder.clone(), event.under(start.options.noise_floor)));
        }
    }
    if let Some((folder, id)) = parts
        .iter()
        .find_map(|part| Some((part.folder.display(), part.graphs.first_key_value()?.0)))
    {
        let GraphId { sample, graph, .. } = id;
        let text = format!("{folder}: {sample}/{graph} is no unit of this shard");
        return Err(MergeError::Unlike(text));
    }
    write(start, merged, out)
}

fn write(
    start: Start,
    merged: Vec<(PathBuf, GraphEvent)>,
    out: &Path,
) -> Result<Vec<GraphEvent>, MergeError> {
    let mut store = RunStore::open(out)?;
    store.append(&Event::Start(Box::new(start)))?;
    let mut events = Vec::with_capacity(merged.len());
    for (folder, event) in merged {
        copy_objects(&folder, &event, &store)?;
        store.append(&Event::Graph(Box::new(event.clone())))?;
        events.push(event);
    }
    store.append(&Event::End { graphs: events.len() })?;
    Ok(events)
}

/// Takes the texts of a result over into another store.
fn copy_objects(from: &Path, event: &GraphEvent, to: &RunStore) -> Result<(), MergeError> {
    for text in read_objects(from, event)? {
        to.keep(&text)?;
    }
    Ok(())
}

/// The texts of a result, as its run keeps them.
pub fn read_objects(from: &Path, event: &GraphEvent) -> Result<Vec<Vec<u8>>, MergeError> {
    let read = |(name, digest): &(String, String)| {
        read_object(from, digest, MAX_OBJECT_BYTES).ok_or_else(|| {
            let text =
                format!("{}: the text {digest} of `{name}` is missing or damaged", from.display());
            MergeError::Unlike(text)
        })
    };
    event.artefacts.iter().map(read).collect()
}
