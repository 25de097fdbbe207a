//! A library in memory, and the rewriting of graphs by what it holds.
//!
//! Entries are looked up by their operations; the files of a pass are read when a graph has all of them. Passes apply best
//! first: those that promise to save most. A match takes nodes of the program's own graph only, never what another pass
//! put there, so that every replaced region is a piece of the program and can be run as such.

use crate::entry::{Entry, Standing};
use crate::folder::Library;
use crate::sources::{Sources, load, operations};
use passnet_bench::candidate::Candidate;
use passnet_bench::signature::modules;
use passnet_engine::identity::DeviceIdentity;
use passnet_engine::native::Wrappers;
use passnet_graph::graph::Replacement;
use passnet_graph::ops::Op;
use passnet_graph::{Arg, Graph, NodeId};
use passnet_pass::matcher::{Match, MatchOptions, Pattern, TargetGraph, find_first, matches};
use passnet_pass::rewrite::{Patch, apply};
use passnet_pass::trace::Pass;
use rustc_hash::FxHashSet;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// No graph is rewritten more often.
const MAX_PATCHES: usize = 10_000;
/// What a pass is taken to bring where nobody timed it.
const UNTIMED_SPEEDUP: f64 = 1.05;

/// Which passes may be used on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// No pass is trusted in advance: only those with evidence for the device.
    None,
    /// Those, and others after they were judged.
    Judged,
    /// All but those that were found wrong.
    All,
}

impl Trust {
    /// As options take them.
    pub const NAMES: [&str; 3] = ["none", "judged", "all"];

    /// `None` for a word that is not among `NAMES`.
    pub fn from_name(name: &str) -> Option<Trust> {
        [Trust::None, Trust::Judged, Trust::All]
            .into_iter()
            .zip(Self::NAMES)
            .find_map(|(it, n)| (n == name).then_some(it))
    }
}

/// The entries of a library.
#[derive(Debug)]
pub struct Shelf {
    library: Library,
    entries: Vec<Shelved>,
    /// What is wrong with entries that are not there.
    pub damaged: Vec<String>,
}

#[derive(Debug)]
struct Shelved {
    name: String,
    entry: Entry,
    loaded: OnceLock<Result<Loaded, String>>,
}

/// The passes of an entry, under names that no other entry has.
#[derive(Debug)]
struct Loaded {
    candidate: Candidate,
    passes: Vec<Pass>,
}

/// A graph, what was replaced in it, and what was not.
#[derive(Debug)]
pub struct Rewritten {
    /// With a call of a wrapper in the place of each site.
    pub graph: Graph,
    /// In the order of the graph.
    pub sites: Vec<Site>,
    /// The files behind the sites.
    pub wrappers: Wrappers,
    /// Passes whose operations the graph has and that are not used, with the reason.
    pub passed_over: Vec<(String, String)>,
    /// Passes that were searched for.
    pub searched: usize,
}

/// One replaced region.
#[derive(Debug, Clone)]
pub struct Site {
    /// `ENTRY/PASS`.
    pub pass: String,
    /// What stands there now.
    pub replacement: Replacement,
    /// The call in the rewritten graph.
    pub node: String,
    /// Names of the calls that went, in the program's order.
    pub removed: Vec<String>,
    /// Names of the values that are replaced, in the order in which the wrapper returns them.
    pub outputs: Vec<String>,
    /// What was judged of the pass on the device.
    pub speedup: Option<f64>,
}

/// What a graph is rewritten with.
#[derive(Debug, Clone)]
pub struct Wanted<'a> {
    /// Which evidence a pass needs.
    pub trust: Trust,
    /// On which the program runs.
    pub device: &'a DeviceIdentity,
    /// `ENTRY/PASS` of those that are not to be used.
    pub without: &'a BTreeSet<String>,
}

/// A pass that may be tried on a graph.
struct Usable<'s> {
    loaded: &'s Loaded,
    pass: &'s Pass,
    pattern: Pattern<'s>,
    speedup: Option<f64>,
}

impl Shelf {
    /// Reads the entries; passes are traced when a graph first needs them.
    pub fn open(library: Library) -> std::io::Result<Shelf> {
        let (mut entries, mut damaged) = (Vec::new(), Vec::new());
        for (name, found) in library.entries()? {
            match found {
                Ok(entry) => entries.push(Shelved { name, entry, loaded: OnceLock::new() }),
                Err(error) => damaged.push(error),
            }
        }
        Ok(Shelf { library, entries, damaged })
    }

    /// Entries that are whole.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no entry is whole.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Notes what was learned about an entry.
    pub fn learned(&mut self, name: &str, entry: Entry) {
        if let Some(known) = self.entries.iter_mut().find(|known| known.name == name) {
            known.entry = entry;
        }
    }

    /// Entries whose passes match the graph and of which nothing is known on the device.
    pub fn unjudged(&self, graph: &Graph, wanted: &Wanted<'_>) -> Vec<String> {
        let all = Wanted { trust: Trust::All, ..wanted.clone() };
        let rewritten = self.rewrite(graph, &all);
        let mut found: Vec<String> = Vec::new();
        for site in &rewritten.sites {
            let (name, _) = site.pass.split_once('/').unwrap_or((&site.pass, ""));
            let entry = self.entries.iter().find(|known| known.name == name);
            let is_unknown =
                entry.is_some_and(|known| known.entry.standing(wanted.device) == Standing::Unknown);
            if is_unknown && !found.iter().any(|known| known == name) {
                found.push(name.to_string());
            }
        }
        found
    }

    /// Rewrites a graph with every pass that may be used, best first, each wherever it matches.
    pub fn rewrite(&self, graph: &Graph, wanted: &Wanted<'_>) -> Rewritten {
        let mut result = Rewritten {
            graph: graph.clone(),
            sites: Vec::new(),
            wrappers: Wrappers::default(),
            passed_over: Vec::new(),
            searched: 0,
        };
        let usable = self.usable(graph, wanted, &mut result.passed_over);
        result.searched = usable.len();
        // Values that passes put into the graph, by name: names are unique, and patches keep them.
        let mut added: FxHashSet<Box<str>> = FxHashSet::default();
        let mut refused: FxHashSet<usize> = FxHashSet::default();
        let mut next = 0;
        while result.sites.len() < MAX_PATCHES {
            let Some((index, found)) = first_match(&usable, next, &result.graph, &added, &refused)
            else {
                break;
            };
            next = index;
            let Usable { loaded, pass, speedup, .. } = &usable[index];
            match patched(loaded, pass, &result.graph, &found) {
                Ok((graph, replacement, node)) => {
                    let name = |id: &NodeId| result.graph.node(*id).name.to_string();
                    result.sites.push(Site {
                        pass: pass.name.clone(),
                        replacement,
                        node,
                        removed: found.nodes.iter().map(name).collect(),
                        outputs: found.outputs.iter().map(name).collect(),
                        speedup: *speedup,
                    });
                    let gone: FxHashSet<&NodeId> = found.nodes.iter().collect();
                    let kept = result.graph.ids().filter(|id| !gone.contains(id));
                    let kept: FxHashSet<&str> =
                        kept.map(|id| &*result.graph.node(id).name).collect();
                    let fresh = graph.nodes().iter().map(|node| &node.name);
                    added.extend(fresh.filter(|name| !kept.contains(&***name)).cloned());
                    result.graph = graph;
                }
                Err(reason) => {
                    result.passed_over.push((pass.name.clone(), reason));
                    refused.insert(index);
                    next += 1;
                }
            }
        }
        for (loaded, pass) in usable.iter().map(|usable| (usable.loaded, usable.pass)) {
            if result.sites.iter().any(|site| site.pass == pass.name)
                && let Ok(files) = modules(loaded.candidate.program(), pass.wrapper.module)
            {
                result.wrappers.add(&pass.name, files);
            }
        }
        result
    }

    /// The passes whose operations the graph has and that may be used, those first that promise most.
    fn usable<'s>(
        &'s self,
        graph: &Graph,
        wanted: &Wanted<'_>,
        passed_over: &mut Vec<(String, String)>,
    ) -> Vec<Usable<'s>> {
        let there: FxHashSet<String> = operations(graph).into_iter().collect();
        let mut usable = Vec::new();
        for shelved in &self.entries {
            let fits = |operation: &String| there.contains(operation);
            let is_possible = |at: &usize| shelved.entry.passes[*at].operations.iter().all(fits);
            let possible: Vec<usize> =
                (0..shelved.entry.passes.len()).filter(is_possible).collect();
            if possible.is_empty() {
                continue;
            }
            let mut pass_over = |reason: &str| {
                for &at in &possible {
                    let name = full_name(&shelved.name, &shelved.entry.passes[at].name);
                    passed_over.push((name, reason.to_string()));
                }
            };
            let speedup = match (shelved.entry.standing(wanted.device), wanted.trust) {
                (Standing::Wrong { graph, verdict }, _) => {
                    pass_over(&format!("it was judged {verdict} on {graph}"));
                    continue;
                }
                (Standing::Unknown, Trust::All) => None,
                (Standing::Unknown, Trust::None | Trust::Judged) => {
                    pass_over("nothing is known of it on this device");
                    continue;
                }
                (Standing::Correct { speedup }, _) => speedup,
            };
            let loaded = match shelved.loaded.get_or_init(|| Loaded::new(&self.library, shelved)) {
                Ok(loaded) => loaded,
                Err(error) => {
                    pass_over(error);
                    continue;
                }
            };
            for pass in &loaded.passes {
                if wanted.without.contains(&pass.name) {
                    passed_over.push((pass.name.clone(), "it is not to be used".into()));
                } else {
                    let pattern = Pattern::new(&pass.pattern.graph);
                    usable.push(Usable { loaded, pass, pattern, speedup });
                }
            }
        }
        usable.sort_by_cached_key(|usable| {
            // The share of the time that it saves, of a time that is taken to grow with the operations.
            let saved = 1.0 - 1.0 / usable.speedup.unwrap_or(UNTIMED_SPEEDUP);
            let promise = saved * usable.pass.pattern.graph.op_count() as f64;
            (Reverse((promise * 1e6) as i64), usable.pass.name.clone())
        });
        usable
    }
}

impl Loaded {
    fn new(library: &Library, shelved: &Shelved) -> Result<Loaded, String> {
        let candidate = load(&library.pass_folder(&shelved.name))?;
        if Sources::of(&candidate).digest() != shelved.entry.digest {
            return Err("its files are not those that were judged".into());
        }
        let mut passes = candidate.passes().to_vec();
        passes.iter_mut().for_each(|pass| pass.name = full_name(&shelved.name, &pass.name));
        Ok(Loaded { candidate, passes })
    }
}

fn full_name(entry: &str, pass: &str) -> String {
    format!("{entry}/{pass}")
}

/// The first match of the first pass, from `next` on, that takes only nodes of the program.
fn first_match(
    usable: &[Usable<'_>],
    next: usize,
    graph: &Graph,
    added: &FxHashSet<Box<str>>,
    refused: &FxHashSet<usize>,
) -> Option<(usize, Match)> {
    let target = TargetGraph::new(graph);
    let options = MatchOptions::default();
    let is_programs =
        |found: &Match| found.nodes.iter().all(|id| !added.contains(&graph.node(*id).name));
    let candidates = usable.iter().enumerate().skip(next);
    for (index, usable) in candidates.filter(|(index, _)| !refused.contains(index)) {
        let Some(first) = find_first(&usable.pattern, &target, &options) else { continue };
        if is_programs(&first) {
            return Some((index, first));
        }
        let mut others = matches(&usable.pattern, &target, &options).into_iter();
        if let Some(other) = others.find(is_programs) {
            return Some((index, other));
        }
    }
    None
}

/// The graph with the match replaced, the replacement, and the name of its call.
fn patched(
    loaded: &Loaded,
    pass: &Pass,
    graph: &Graph,
    found: &Match,
) -> Result<(Graph, Replacement, String), String> {
    let patch = Patch::new(loaded.candidate.program(), pass, graph, found)
        .map_err(|error| error.message)?;
    let [wrapper] = patch.adds.as_slice() else {
        return Err("its `replacement_args` computes".into());
    };
    if let Some(arg) = wrapper.args.iter().find(|arg| !is_plain(arg)) {
        return Err(format!("its wrapper takes {arg:?}"));
    }
    let replacement =
        wrapper.target.replacement().cloned().ok_or("it replaces nothing by a wrapper")?;
    let calls = |graph: &Graph| -> FxHashSet<Box<str>> {
        let replaced = graph.calls().filter(|(_, call)| call.target.replacement().is_some());
        replaced.map(|(id, _)| graph.node(id).name.clone()).collect()
    };
    let known = calls(graph);
    let new = apply(graph, &patch).map_err(|error| error.message)?;
    let node = new.calls().find_map(|(id, call)| {
        let name = &new.node(id).name;
        (call.target.replacement().is_some() && !known.contains(name)).then(|| name.to_string())
    });
    let node = node.ok_or("its call is not in the rewritten graph")?;
    Ok((new, replacement, node))
}

/// Whether a wrapper can be called with it: a value of the graph, or a constant that plans know.
fn is_plain(arg: &Arg) -> bool {
    match arg {
        Arg::Node(_) | Arg::None | Arg::Bool(_) | Arg::Int(_) | Arg::Float(_) | Arg::Str(_) => true,
        Arg::Tuple(items) | Arg::List(items) => items.iter().all(is_plain),
        Arg::Dtype(_) | Arg::Device(_) | Arg::Ellipsis | Arg::Slice(_) | Arg::Constant(_) => false,
    }
}

/// Whether a call reads one value of a replacement that returns several.
pub(crate) fn is_item(graph: &Graph, call: &passnet_graph::Call) -> Option<(NodeId, usize)> {
    match (call.op(), call.args.as_slice()) {
        (Some(Op::GetItem), [Arg::Node(from), Arg::Int(index)]) => {
            graph.call(*from)?.target.replacement()?;
            Some((*from, usize::try_from(*index).ok()?))
        }
        _ => None,
    }
}
