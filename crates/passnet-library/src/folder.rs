//! A library on disk: `DIGEST/entry.json`, `DIGEST/passes` and, for judging again, `DIGEST/graphs`.
//!
//! Entries are written whole or not at all, and two processes may add to one library at the same time.

use crate::entry::{Entry, Evidence, FORMAT};
use crate::sources::{Sources, listed, load};
use passnet_bench::run::{self, Event, GraphEvent, Start};
use passnet_bench::sample::Sample;
use passnet_bench::verdict::VerdictKind;
use passnet_graph::FileName;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const ENTRY: &str = "entry.json";
const PASSES: &str = "passes";
const GRAPHS: &str = "graphs";
const GRAPH_LIST: &str = "graph_list.txt";
/// Letters of the digest in the name of an entry's folder.
const SHORT: usize = 16;
/// No `entry.json` is larger.
const MAX_ENTRY: u64 = 16 << 20;
/// Graphs kept with an entry for judging it again.
const MAX_GRAPHS: usize = 8;
/// No library has more entries.
pub const MAX_ENTRIES: usize = 100_000;

/// Entries that are half written or half removed begin with this.
const PARTIAL: &str = ".partial-";

/// A folder of entries.
#[derive(Debug, Clone)]
pub struct Library {
    folder: PathBuf,
}

/// What became of passes that were added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Added {
    /// The folder of the entry, in the library.
    pub entry: String,
    /// For people, as in the entry.
    pub name: String,
    /// Whether the library lacked it.
    pub is_new: bool,
    /// Pieces of evidence that the entry did not have.
    pub evidence: usize,
}

/// Passes on their way into a library.
#[derive(Debug)]
struct Arrival {
    sources: Sources,
    name: String,
    evidence: Vec<Evidence>,
    /// Graphs to judge them on, by name.
    graphs: Vec<(String, PathBuf)>,
}

/// Who wrote passes, and what others may do with them.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// Empty where nobody said.
    pub author: String,
    /// Empty where nobody said.
    pub licence: String,
}

/// An entry, or what is wrong with it: one damaged entry keeps nobody from the others.
pub type Found = Result<Entry, String>;

/// What is believed of another library. Nothing in it is signed: who wrote it could have written any verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Believed {
    /// What it says against its passes.
    Faults,
    /// What it says for them, too.
    All,
}

impl Library {
    /// A library that is there, or will be when something is added.
    pub fn at(folder: impl Into<PathBuf>) -> Library {
        Library { folder: folder.into() }
    }

    /// Where it lies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// All entries with their folders' names, in the order of these.
    pub fn entries(&self) -> io::Result<Vec<(String, Found)>> {
        let names = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(named(&self.folder, error)),
        };
        let mut names: Vec<String> = names
            .take(MAX_ENTRIES)
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| !name.starts_with('.') && self.folder.join(name).join(ENTRY).is_file())
            .collect();
        names.sort_unstable();
        Ok(names.into_iter().map(|name| (name.clone(), self.entry(&name))).collect())
    }

    /// The entry in a folder of this name.
    pub fn entry(&self, name: &str) -> Found {
        let path = self.folder.join(name).join(ENTRY);
        let fail = |what: String| format!("{}: {what}", path.display());
        let mut text = Vec::new();
        let file = fs::File::open(&path).map_err(|error| fail(error.to_string()))?;
        file.take(MAX_ENTRY + 1).read_to_end(&mut text).map_err(|error| fail(error.to_string()))?;
        if text.len() as u64 > MAX_ENTRY {
            return Err(fail(format!("larger than {MAX_ENTRY} bytes")));
        }
        let entry: Entry =
            serde_json::from_slice(&text).map_err(|error| fail(error.to_string()))?;
        match entry.format == FORMAT && name == short(&entry.digest) {
            true => Ok(entry),
            false if entry.format != FORMAT => {
                Err(fail(format!("format {} is not {FORMAT}", entry.format)))
            }
            false => Err(fail(format!("it says that it is {}", short(&entry.digest)))),
        }
    }

    /// The pass folder of an entry.
    pub fn pass_folder(&self, name: &str) -> PathBuf {
        self.folder.join(name).join(PASSES)
    }

    /// The graphs kept with an entry, as a task; `None` where there are none.
    pub fn graphs(&self, name: &str) -> Option<Sample> {
        let folder = self.folder.join(name).join(GRAPHS);
        let sample = folder.join(GRAPH_LIST).is_file().then(|| Sample::read(&folder).ok())??;
        (!sample.graphs.is_empty()).then_some(sample)
    }

    /// Adds a pass folder or a pass file; `graphs` are graph folders on which it can be judged.
    pub fn add_passes(
        &self,
        path: &Path,
        graphs: &[PathBuf],
        origin: &Origin,
    ) -> Result<Added, String> {
        let candidate = load(path)?;
        let name = path.file_stem().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        let kept = graphs.iter().filter_map(|graph| {
            Some((label(&graph.file_name()?.to_string_lossy()), graph.clone()))
        });
        let arrival = Arrival {
            sources: Sources::of(&candidate),
            name,
            evidence: Vec::new(),
            graphs: kept.collect(),
        };
        self.put(arrival, origin)
    }

    /// Adds every set of passes of a run, with what the run says of it. What a run found wrong is added, too: it must not
    /// come back under another name.
    pub fn add_run(&self, folder: &Path, origin: &Origin) -> Result<Vec<Added>, String> {
        let inner = folder.join("run");
        let folder = if run::is_run(folder) { folder } else { &inner };
        let events = run::read(folder).map_err(|error| error.to_string())?;
        let mut start: Option<Box<Start>> = None;
        let mut sets: Vec<Arrival> = Vec::new();
        for event in events {
            let graph = match event {
                Event::Start(begun) => {
                    start = Some(begun);
                    continue;
                }
                Event::Graph(graph) => graph,
                Event::End { .. } => continue,
            };
            let Some(start) = start.as_deref().filter(|start| start.compiler == "pass") else {
                continue;
            };
            let Some(sources) = Sources::of_event(folder, &graph) else { continue };
            let evidence = evidence_of(start, &graph);
            let kept = graph_folder(&graph).map(|path| (evidence.graph.clone(), path));
            match sets.iter_mut().find(|known| known.sources == sources) {
                Some(known) => {
                    known.evidence.push(evidence);
                    known.graphs.extend(kept);
                }
                None => sets.push(Arrival {
                    sources,
                    name: graph.sample.clone(),
                    evidence: vec![evidence],
                    graphs: kept.into_iter().collect(),
                }),
            }
        }
        if sets.is_empty() {
            return Err(format!("{}: the run keeps no passes that matched", folder.display()));
        }
        sets.into_iter().map(|set| self.put(set, origin)).collect()
    }

    /// Takes over the entries of another library that are wanted, and what it knows of those that are here already.
    pub fn merge(
        &self,
        other: &Library,
        believed: Believed,
        is_wanted: &dyn Fn(&str, &Entry) -> bool,
    ) -> Result<Vec<Added>, String> {
        let mut added = Vec::new();
        for (name, found) in other.entries().map_err(|error| error.to_string())? {
            let theirs = found?;
            if !is_wanted(&name, &theirs) {
                continue;
            }
            let candidate = load(&other.pass_folder(&name))?;
            let sources = Sources::of(&candidate);
            if sources.digest() != theirs.digest {
                return Err(format!(
                    "{}: the files are not those that the entry was made of",
                    other.pass_folder(&name).display()
                ));
            }
            let graphs = other.graphs(&name).into_iter().flat_map(|sample| {
                let place = |graph: &String| (graph.clone(), sample.graph_folder(graph));
                sample.graphs.iter().map(place).collect::<Vec<_>>()
            });
            let origin = Origin { author: theirs.author, licence: theirs.licence };
            let (name, mut evidence) = (theirs.name, theirs.evidence);
            evidence
                .retain(|found| believed == Believed::All || found.verdict != VerdictKind::Correct);
            let arrival = Arrival { sources, name, evidence, graphs: graphs.collect() };
            added.push(self.put(arrival, &origin)?);
        }
        Ok(added)
    }

    /// Writes what was learned about an entry.
    pub fn learn(&self, name: &str, evidence: &[Evidence]) -> Result<Entry, String> {
        let mut entry = self.entry(name)?;
        let new = Entry { evidence: evidence.to_vec(), ..entry.clone() };
        entry.learn(&new);
        let path = self.folder.join(name).join(ENTRY);
        write_whole(&path, &to_json(&entry)?).map_err(|error| error.to_string())?;
        Ok(entry)
    }

    /// Writes a new entry, or what is new about one.
    fn put(&self, arrival: Arrival, origin: &Origin) -> Result<Added, String> {
        let Arrival { sources, name, evidence, graphs } = arrival;
        let digest = sources.digest();
        let folder = short(&digest).to_string();
        let told = evidence.len();
        if let Ok(known) = self.entry(&folder) {
            let new = Entry {
                evidence,
                author: origin.author.clone(),
                licence: origin.licence.clone(),
                ..known.clone()
            };
            let mut entry = known;
            let learned = entry.learn(&new);
            let path = self.folder.join(&folder).join(ENTRY);
            write_whole(&path, &to_json(&entry)?).map_err(|error| error.to_string())?;
            return Ok(Added { entry: folder, name: entry.name, is_new: false, evidence: learned });
        }
        let io = |error: io::Error| format!("{}: {error}", self.folder.display());
        let partial = self.folder.join(format!("{PARTIAL}{folder}-{}", unique()));
        fs::create_dir_all(&partial).map_err(io)?;
        let written = (|| {
            sources.write(&partial.join(PASSES)).map_err(io)?;
            let candidate = load(&partial.join(PASSES))?;
            let entry = Entry {
                format: FORMAT,
                digest,
                name: name.clone(),
                passes: listed(&candidate),
                author: origin.author.clone(),
                licence: origin.licence.clone(),
                evidence,
            };
            keep_graphs(&partial.join(GRAPHS), &graphs)?;
            fs::write(partial.join(ENTRY), to_json(&entry)?).map_err(io)?;
            fs::rename(&partial, self.folder.join(&folder)).map_err(io)
        })();
        if let Err(error) = written {
            let _ = fs::remove_dir_all(&partial);
            return Err(error);
        }
        Ok(Added { entry: folder, name, is_new: true, evidence: told })
    }
}

/// The name of an entry's folder.
pub fn short(digest: &str) -> &str {
    digest.get(..SHORT).unwrap_or(digest)
}

fn to_json(entry: &Entry) -> Result<Vec<u8>, String> {
    serde_json::to_vec_pretty(entry).map_err(|error| error.to_string())
}

/// What a run says of the passes on one graph.
pub fn evidence_of(start: &Start, event: &GraphEvent) -> Evidence {
    let judged = &event.evaluation.judged;
    let model = event.artefacts.iter().find(|(name, _)| name == FileName::Model.as_str());
    Evidence {
        graph: label(&judged.graph),
        model: model.map(|(_, digest)| digest.clone()).unwrap_or_default(),
        verdict: judged.verdict.kind,
        speedup: judged.speedup,
        thorough: start.options.thorough,
        identity: start.origin(),
        time: start.time,
    }
}

/// Where the graph of an event lies, if it is still there.
fn graph_folder(event: &GraphEvent) -> Option<PathBuf> {
    let sample = Sample::read(Path::new(&event.folder)).ok()?;
    let folder = sample.graph_folder(&event.evaluation.judged.graph);
    folder.join(FileName::Model.as_str()).is_file().then_some(folder)
}

/// Copies the known files of graph folders, and lists them.
fn keep_graphs(folder: &Path, graphs: &[(String, PathBuf)]) -> Result<(), String> {
    let io = |error: io::Error| format!("{}: {error}", folder.display());
    let mut list: Vec<String> = Vec::new();
    for (name, from) in graphs {
        if list.len() == MAX_GRAPHS || list.contains(name) {
            continue;
        }
        let sample = Sample::read(from).map_err(|error| error.to_string())?;
        let Some(graph) = sample.graphs.first() else { continue };
        let files = sample.graph_files(graph).map_err(|error| error.to_string())?;
        fs::create_dir_all(folder.join(name)).map_err(io)?;
        for (file, bytes) in &files.files {
            fs::write(folder.join(name).join(file.as_str()), bytes).map_err(io)?;
        }
        list.push(name.clone());
    }
    match list.is_empty() {
        true => Ok(()),
        false => fs::write(folder.join(GRAPH_LIST), list.join("\n") + "\n").map_err(io),
    }
}

/// A graph's name as the name of a folder, whatever corpus it stands in.
fn label(graph: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    graph.chars().take(120).map(plain).collect()
}

/// Whole or not at all: another process may read it at the same time.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let partial = path.with_file_name(format!("{PARTIAL}{ENTRY}-{}", unique()));
    fs::write(&partial, bytes)
        .and_then(|()| fs::rename(&partial, path))
        .map_err(|error| named(path, error))
}

fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Different in every call and every process.
fn unique() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
