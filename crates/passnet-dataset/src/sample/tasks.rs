//! Tasks of a store: its pieces grouped.

use super::buckets::{Member, PieceKind};
use super::groups::{Rule, group_members};
use super::identity::Uid;
use super::split::StructureDigest;
use crate::store::{Kind, Record, Store, StoreError, StoreErrorKind};
use crate::sweep;
use crate::verify::Runner;
use passnet_graph::read::read_folder;
use passnet_graph::{Graph, GraphFiles};
use passnet_work::progress::Progress;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// One task, as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredTask {
    /// Its identifier, which follows from its graphs.
    #[serde(skip)]
    pub id: String,
    /// The kind of its pieces.
    pub kind: PieceKind,
    /// How its graphs were put together.
    pub rule: Rule,
    /// The sequence of operations that its graphs share.
    pub ops: Vec<String>,
    /// Ascending by uid.
    pub graphs: Vec<TaskGraph>,
    /// Its side, once there is a split.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<SplitSide>,
    /// The sample's folder, for one that was imported: its files are in the store as they came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
/// A graph of a task.
pub struct TaskGraph {
    /// What lists call the graph.
    pub uid: String,
    /// Its path in the store.
    pub path: String,
}

/// Which side of the split a task is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SplitSide {
    /// What is asked of those who are evaluated.
    Evaluation,
    /// What may be learned from.
    Training,
    /// Shares a structure with an evaluation task or with a withheld set, so it belongs to neither side.
    Withheld,
}

impl StoredTask {
    /// What exported lists call the task's side.
    pub fn list_name(&self) -> &'static str {
        side_name(self.side)
    }
}

/// What lists and tables call a side.
pub(crate) fn side_name(side: Option<SplitSide>) -> &'static str {
    match side {
        Some(SplitSide::Evaluation) => "eval",
        Some(SplitSide::Training) => "train",
        Some(SplitSide::Withheld) => "withheld",
        None => "all",
    }
}

impl PieceKind {
    /// The kind of a stored graph, where it is a piece.
    pub fn of(kind: Kind) -> Option<Self> {
        match kind {
            Kind::Full => None,
            Kind::SoleOp => Some(Self::SoleOp),
            Kind::Typical => Some(Self::Typical),
            Kind::Fusible => Some(Self::Fusible),
        }
    }

    /// What stores, lists and commands call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SoleOp => "sole_op",
            Self::Typical => "typical",
            Self::Fusible => "fusible",
        }
    }
}

/// The uid of a graph: from its identity, shapes and dtypes included.
pub fn uid_of(record: &Record) -> Option<Uid> {
    digest(&record.description.digests.full).map(|digest| Uid::from_digest(&digest))
}

fn digest(hex: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if hex.len() != 64 || !hex.is_ascii() {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(hex.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}

/// Groups the pieces of the given kinds into tasks and keeps them in the store, in place of any earlier ones.
/// Returns the tasks.
pub fn sample(
    store: &mut Store,
    kinds: &[Kind],
    workers: NonZeroUsize,
    progress: &dyn Progress,
) -> Result<Vec<StoredTask>, StoreError> {
    sample_running(store, kinds, None, workers, progress).map(|(tasks, _)| tasks)
}

/// Tasks, and the paths of pieces that are in none because they do not run, with the reason.
pub type RunningTasks = (Vec<StoredTask>, Vec<(String, String)>);

/// As [`sample`], without pieces that do not run.
pub fn sample_running(
    store: &mut Store,
    kinds: &[Kind],
    runner: Option<Runner<'_>>,
    workers: NonZeroUsize,
    progress: &dyn Progress,
) -> Result<RunningTasks, StoreError> {
    let mut records = Vec::new();
    for kind in kinds {
        records.extend(store.of_kind(*kind)?);
    }
    let mut members = Vec::with_capacity(records.len());
    let mut paths: BTreeMap<(PieceKind, Uid), String> = BTreeMap::new();
    let mut refused = Vec::new();
    let member = |record: &Record, files: &GraphFiles| member(record, files, runner);
    sweep::read_all(
        store,
        records,
        "reading pieces",
        workers,
        progress,
        member,
        |record, member| {
            match member {
                Some(Ok(member)) => {
                    // Equal graphs under two paths are one member, known by the first path.
                    paths.entry((member.kind, member.uid)).or_insert(record.path);
                    members.push(member);
                }
                Some(Err(reason)) => refused.push((record.path, reason)),
                None => {}
            }
            Ok(())
        },
    )?;
    let mut tasks = Vec::new();
    // One kind at a time: a piece may be fusible and typical, under one uid.
    for kind in [PieceKind::Fusible, PieceKind::SoleOp, PieceKind::Typical] {
        let of_kind: Vec<Member> = members.extract_if(.., |member| member.kind == kind).collect();
        for group in group_members(&of_kind) {
            let graph = |uid: &Uid| TaskGraph {
                uid: uid.to_string(),
                path: paths.get(&(kind, *uid)).cloned().unwrap_or_default(),
            };
            tasks.push(StoredTask {
                id: group.id().to_string(),
                kind,
                rule: group.rule,
                graphs: group.members.iter().map(graph).collect(),
                ops: group.ops,
                side: None,
                path: None,
            });
        }
    }
    // Published tasks are not ours to make again.
    let mut all = load(store)?;
    all.retain(|task| task.rule == Rule::Published);
    all.extend(tasks.iter().cloned());
    save(store, &all)?;
    Ok((tasks, refused))
}

/// A piece as a member of tasks, or why it does not run; what is no piece or cannot be read is neither.
fn member(
    record: &Record,
    files: &GraphFiles,
    runner: Option<Runner<'_>>,
) -> Option<Result<Member, String>> {
    let kind = PieceKind::of(record.description.kind)?;
    let folder = read_folder(files).ok()?;
    if let Some(Err(reason)) = runner.map(|run| run(files, &folder)) {
        return Some(Err(reason));
    }
    Some(Ok(Member {
        uid: uid_of(record)?,
        kind,
        ops: ops_of(&folder.graph),
        shapes: folder.metas.iter().map(|meta| meta.shape.clone()).collect(),
        dtypes: folder.metas.iter().map(|meta| meta.dtype).collect(),
    }))
}

fn ops_of(graph: &Graph) -> Vec<String> {
    graph.calls().map(|(_, call)| call.target.op_name().into_owned()).collect()
}

/// The names of a graph's operations in order, if it can be read.
pub(crate) fn op_names(files: &GraphFiles) -> Option<Vec<String>> {
    read_folder(files).ok().map(|folder| ops_of(&folder.graph))
}

/// What the store knows a task by. Kinds share tasks of one id when both hold the same graphs; the kind keeps them apart.
pub(crate) fn key(task: &StoredTask) -> String {
    format!("{}/{}", task.kind.as_str(), task.path.as_deref().unwrap_or(&task.id))
}

pub(crate) fn save(store: &mut Store, tasks: &[StoredTask]) -> Result<(), StoreError> {
    let body = |task: &StoredTask| {
        // Strings and numbers: cannot fail.
        (key(task), serde_json::to_string(task).unwrap_or_default())
    };
    store.set_tasks(&tasks.iter().map(body).collect::<Vec<_>>())
}

/// The tasks of a store, by kind and id.
pub fn load(store: &Store) -> Result<Vec<StoredTask>, StoreError> {
    let parse = |(key, body): (String, String)| {
        let mut task: StoredTask = serde_json::from_str(&body).map_err(|error| StoreError {
            store: store.path().to_owned(),
            kind: StoreErrorKind::Damaged(format!("task `{key}`: {error}")),
        })?;
        task.id = key.rsplit('/').next().unwrap_or_default().to_string();
        Ok(task)
    };
    store.tasks()?.into_iter().map(parse).collect()
}

/// The structure of each graph of a store, by its path.
pub(crate) fn structures_of(
    store: &Store,
) -> Result<BTreeMap<String, StructureDigest>, StoreError> {
    let mut structures = BTreeMap::new();
    for record in store.entries() {
        let record = record?;
        if let Some(structure) = digest(&record.description.digests.structure) {
            structures.insert(record.path, structure);
        }
    }
    Ok(structures)
}
