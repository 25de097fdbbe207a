//! What the lists of a checkout say, and its samples as tasks.

use super::CheckoutReport;
use super::walk::{Checkout, GRAPH_LISTS, GRAPHS, Item, SAMPLE_LISTS, SampleFolder};
use crate::layout;
use crate::lists::{
    GRAPH_LIST, GraphIndex, ListedGraph, SampleList, at, sample_graphs, sample_uids,
};
use crate::sample::buckets::PieceKind;
use crate::sample::groups::Rule;
use crate::sample::identity::{SampleId, Uid};
use crate::sample::tasks::{self, SplitSide, StoredTask, TaskGraph, op_names, uid_of};
use crate::source::read_regular;
use crate::store::{Kind, Store, StoreError};
use passnet_graph::Diagnostic;
use std::collections::{BTreeMap, BTreeSet};

const UIDS: &str = "sample_uids.txt";

/// The published knowledge about graphs and samples.
#[derive(Debug, Default)]
pub(super) struct Published {
    /// By the graph's path.
    uids: BTreeMap<String, Uid>,
    groups: Vec<(PieceKind, Vec<Uid>)>,
    /// By the sample's path.
    sides: BTreeMap<String, SplitSide>,
}

impl Published {
    /// Reads all lists; what is wrong with them is a problem of the checkout.
    pub(super) fn read(checkout: &mut Checkout) -> Self {
        let mut published = Self::default();
        let roots = kind_folders(&checkout.graphs);
        let mut problems = Vec::new();
        for (path, item) in &checkout.items {
            let (Item::File { .. }, Some((top, name))) = (item, path.split_once('/')) else {
                continue;
            };
            let read = match top {
                GRAPH_LISTS => published.graph_list(checkout, &roots, path, name),
                SAMPLE_LISTS => published.sample_list(checkout, path, &mut problems),
                _ => Ok(()),
            };
            problems.extend(read.err());
        }
        checkout.problems.append(&mut problems);
        published
    }

    fn graph_list(
        &mut self,
        checkout: &Checkout,
        roots: &BTreeSet<String>,
        path: &str,
        name: &str,
    ) -> Result<(), Diagnostic> {
        match GraphIndex::parse(path, &content(checkout, path)?)? {
            GraphIndex::Groups(groups) => {
                if let Some(kind) = kind_in(path) {
                    self.groups.extend(groups.into_iter().map(|uids| (kind, uids)));
                }
                Ok(())
            }
            GraphIndex::Graphs(graphs) => {
                let kind = kind_in(path);
                let mut roots: Vec<&String> =
                    roots.iter().filter(|root| kind_in(root) == kind).collect();
                // `hf_…_v2.txt` lists the graphs of `hf_…_v2`: such a folder is asked first.
                let likeness = |root: &str| {
                    let alike =
                        |word: &str| usize::from(name.contains(word) == root.contains(word));
                    alike("hf_") + alike("_v2")
                };
                roots.sort_by_key(|root| std::cmp::Reverse(likeness(root)));
                graphs.iter().try_for_each(|graph| self.listed_graph(checkout, &roots, path, graph))
            }
        }
    }

    /// Remembers the uid of a graph; lists may name graphs that are not here.
    fn listed_graph(
        &mut self,
        checkout: &Checkout,
        roots: &[&String],
        list: &str,
        graph: &ListedGraph,
    ) -> Result<(), Diagnostic> {
        let below = roots.iter().map(|root| format!("{root}/{}", graph.path));
        let from_top = [graph.path.clone(), format!("{GRAPHS}/{}", graph.path)];
        let Some(path) = below.chain(from_top).find(|path| checkout.graphs.contains(path)) else {
            return Ok(());
        };
        match self.uids.get(&path) {
            Some(uid) if *uid != graph.uid => {
                let message = format!("`{path}` has another uid in another list, {uid}");
                Err(at(list, graph.line, 1, message))
            }
            _ => {
                self.uids.insert(path, graph.uid);
                Ok(())
            }
        }
    }

    fn sample_list(
        &mut self,
        checkout: &Checkout,
        path: &str,
        problems: &mut Vec<Diagnostic>,
    ) -> Result<(), Diagnostic> {
        let bytes = content(checkout, path)?;
        let Some(side) = side_in(path).filter(|_| !lists_graphs(&bytes)) else { return Ok(()) };
        for (line, sample) in SampleList::parse(path, &bytes)?.samples {
            let sample = sample.trim_start_matches("./").trim_end_matches('/').to_string();
            let other = self.sides.get(&sample).copied().filter(|other| *other != side);
            if other.is_some() {
                let message = format!(
                    "`{}` is listed for training and for evaluation",
                    sample.escape_debug()
                );
                problems.push(at(path, line, 1, message).with_hint("it is kept for evaluation"));
            }
            // The lists of evaluation come first in the order of names, but nothing depends on it.
            match other {
                Some(SplitSide::Evaluation) => {}
                _ => drop(self.sides.insert(sample, side)),
            }
        }
        Ok(())
    }

    /// Makes tasks of the samples, and of groups that have none; keeps those that the store has from elsewhere.
    pub(super) fn into_tasks(
        self,
        store: &mut Store,
        checkout: &Checkout,
        unread: &BTreeSet<String>,
        report: &mut CheckoutReport,
    ) -> Result<(), StoreError> {
        let mut made: Vec<StoredTask> = Vec::new();
        let mut known: BTreeSet<String> = BTreeSet::new();
        for sample in &checkout.samples {
            let uids = listed_uids(checkout, sample);
            known.extend(uids.as_ref().ok().and_then(|uids| uids.as_deref()).map(id_of));
            match self.task(store, checkout, unread, sample, uids)? {
                Ok(task) => {
                    known.insert(task_id(&task));
                    made.push(task);
                    report.samples += 1;
                }
                Err(problem) => {
                    report.incomplete += 1;
                    report.fail(problem);
                }
            }
        }
        let by_uid: BTreeMap<&Uid, &String> =
            self.uids.iter().map(|(path, uid)| (uid, path)).collect();
        for (kind, uids) in &self.groups {
            let id = id_of(uids);
            let graphs: Option<Vec<TaskGraph>> = uids
                .iter()
                .map(|uid| {
                    let path = by_uid.get(uid).filter(|path| !unread.contains(**path))?;
                    Some(TaskGraph { uid: uid.to_string(), path: (*path).clone() })
                })
                .collect();
            let Some(graphs) = graphs.filter(|_| !known.contains(&id)) else { continue };
            let Some(ops) = ops_of(store, &graphs)? else { continue };
            known.insert(id.clone());
            made.push(StoredTask {
                id,
                kind: *kind,
                rule: Rule::Published,
                ops,
                graphs,
                side: None,
                path: None,
            });
            report.groups += 1;
        }
        let on =
            |side: SplitSide| made.iter().filter(|task| task.side == Some(side)).count() as u64;
        (report.evaluation, report.training) = (on(SplitSide::Evaluation), on(SplitSide::Training));
        let key = |task: &StoredTask| (task.kind, task.path.clone(), task.id.clone());
        let mut all: BTreeMap<_, StoredTask> =
            tasks::load(store)?.into_iter().map(|task| (key(&task), task)).collect();
        all.extend(made.into_iter().map(|task| (key(&task), task)));
        tasks::save(store, &all.into_values().collect::<Vec<_>>())
    }

    /// One sample as a task, or why it is none.
    fn task(
        &self,
        store: &Store,
        checkout: &Checkout,
        unread: &BTreeSet<String>,
        sample: &SampleFolder,
        uids: Result<Option<Vec<Uid>>, Diagnostic>,
    ) -> Result<Result<StoredTask, Diagnostic>, StoreError> {
        let listed = match self.graphs(checkout, unread, sample) {
            Ok(listed) => listed,
            Err(problem) => return Ok(Err(problem)),
        };
        let uids = match uids {
            Err(problem) => return Ok(Err(problem)),
            Ok(Some(uids)) if uids.len() != listed.len() => {
                let (file, here) = (format!("{}/{UIDS}", sample.path), uids.len());
                let message = format!("{here} uids for {} graphs", listed.len());
                let hint = "it holds one uid for each line of graph_list.txt, in its order";
                return Ok(Err(Diagnostic::file(file, message).with_hint(hint)));
            }
            Ok(uids) => uids,
        };
        let mut graphs = Vec::with_capacity(listed.len());
        for (place, path) in listed.into_iter().enumerate() {
            let given =
                uids.as_ref().map(|uids| uids[place]).or_else(|| self.uids.get(&path).copied());
            let uid = match given {
                Some(uid) => Some(uid),
                None => store.get(&path)?.as_ref().and_then(uid_of),
            };
            graphs
                .push(TaskGraph { uid: uid.map(|uid| uid.to_string()).unwrap_or_default(), path });
        }
        let kind = kind_in(&sample.path).or_else(|| kind_in(&graphs[0].path));
        let (Some(kind), Some(ops)) = (kind, ops_of(store, &graphs)?) else {
            let message = "nothing says of which kind this sample is";
            let hint = "one of the folders above it is sole_op_subgraphs, fusible_subgraphs or typical_subgraphs";
            return Ok(Err(Diagnostic::file(sample.path.as_str(), message).with_hint(hint)));
        };
        Ok(Ok(StoredTask {
            id: layout::model_of(&sample.path).to_string(),
            kind,
            rule: Rule::Published,
            ops,
            graphs,
            side: self.sides.get(&sample.path).copied(),
            path: Some(sample.path.clone()),
        }))
    }

    /// The graphs of a sample by their paths in the store.
    fn graphs(
        &self,
        checkout: &Checkout,
        unread: &BTreeSet<String>,
        sample: &SampleFolder,
    ) -> Result<Vec<String>, Diagnostic> {
        let list = format!("{}/{GRAPH_LIST}", sample.path);
        let mut paths = Vec::new();
        for (line, written) in sample_graphs(&list, &content(checkout, &list)?)? {
            let bad = |message: String| at(&list, line, 1, message);
            let path = place_of(sample, &written).ok_or_else(|| {
                bad(format!("`{}` leads out of the sample", written.escape_debug()))
            })?;
            if unread.contains(&path) {
                return Err(bad(format!("`{path}` could not be read")));
            }
            if !checkout.graphs.contains(&path) {
                return Err(bad(format!("`{}` is no graph of this checkout", path.escape_debug())));
            }
            paths.push(path);
        }
        Ok(paths)
    }
}

/// The path in the checkout of a graph as a sample's list writes it.
fn place_of(sample: &SampleFolder, written: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in written.split('/') {
        match part {
            ".." => return None,
            "" if parts.is_empty() => return None,
            "" | "." => {}
            part => parts.push(part),
        }
    }
    match parts.split_first() {
        Some((first, rest)) if *first == GRAPHS => {
            Some(format!("{}/{}", sample.graphs, rest.join("/")))
        }
        _ => Some(format!("{}/{}", sample.path, parts.join("/"))),
    }
}

/// The uids that a sample brings, if it does.
fn listed_uids(checkout: &Checkout, sample: &SampleFolder) -> Result<Option<Vec<Uid>>, Diagnostic> {
    let path = format!("{}/{UIDS}", sample.path);
    match checkout.items.get(&path) {
        Some(Item::File { .. }) => sample_uids(&path, &content(checkout, &path)?).map(Some),
        _ => Ok(None),
    }
}

fn id_of(uids: &[Uid]) -> String {
    SampleId::of(uids).to_string()
}

/// The id that a task has by its graphs; published ones may have another name.
fn task_id(task: &StoredTask) -> String {
    let uids: Vec<Uid> = task.graphs.iter().filter_map(|graph| graph.uid.parse().ok()).collect();
    id_of(&uids)
}

/// The op sequence that the graphs of a task share.
fn ops_of(store: &Store, graphs: &[TaskGraph]) -> Result<Option<Vec<String>>, StoreError> {
    let Some(first) = graphs.first() else { return Ok(None) };
    let Some(record) = store.get(&first.path)? else { return Ok(None) };
    Ok(op_names(&store.load(&record)?))
}

/// All folders of a kind, from the top of the checkout.
fn kind_folders(graphs: &BTreeSet<String>) -> BTreeSet<String> {
    let mut folders = BTreeSet::new();
    for graph in graphs {
        let mut end = 0;
        for part in graph.split('/') {
            end += part.len();
            if layout::kind_of(part) != Kind::Full {
                folders.insert(graph[..end].to_string());
                break;
            }
            end += 1;
        }
    }
    folders
}

fn kind_in(path: &str) -> Option<PieceKind> {
    layout::kind_named(path).and_then(PieceKind::of)
}

/// The side that the name of a list tells.
fn side_in(path: &str) -> Option<SplitSide> {
    let words = path.split(|character: char| !character.is_alphanumeric());
    words.into_iter().find_map(|word| match word {
        "eval" | "evaluation" => Some(SplitSide::Evaluation),
        "train" | "training" => Some(SplitSide::Training),
        "withheld" => Some(SplitSide::Withheld),
        _ => None,
    })
}

/// Whether a file among the sample lists lists the graphs of samples, as one published table and its text form do.
fn lists_graphs(bytes: &[u8]) -> bool {
    let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let first = String::from_utf8_lossy(first);
    let is_table = first.contains("graph_path") && !first.contains("sample_path");
    is_table || first.starts_with("graphs/")
}

fn content(checkout: &Checkout, path: &str) -> Result<Vec<u8>, Diagnostic> {
    let bytes = read_regular(&checkout.root.join(path), checkout.limits.file_bytes)?;
    bytes.ok_or_else(|| Diagnostic::file(path, "is gone"))
}
