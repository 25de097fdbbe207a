//! PassNet's folder layout:
//!
//! ```text
//! graphs/<set>/<kind>_subgraphs/<dtype>/<shape>/samples/<family>/<model>/_decomposed/<piece>/   graph folders
//! graph_lists/<kind>_subgraphs.txt                       uid and path of every piece, by uid
//! samples/<set>/<kind>/<id[0:2]>/<id[2:4]>/<id>/         one task: graph_list.txt, sample_uids.txt, pass_dir/, graphs
//! sample_lists/<kind>_<side>.txt                         paths of tasks
//! ```
//!
//! Every file is a function of the store alone; writing it again over an interrupted export completes it.

use super::{ExportError, ExportOptions, Exported};
use crate::layout;
use crate::progress::{Progress, Task};
use crate::sample::tasks::{StoredTask, uid_of};
use crate::store::Store;
use passnet_graph::{FileName, GraphFiles};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Writes graphs, tasks and lists below `out`; `set` names the folder below `graphs` and `samples`.
pub fn export_folders(
    store: &Store,
    out: &Path,
    set: &str,
    options: &ExportOptions,
    progress: &dyn Progress,
) -> Result<Exported, ExportError> {
    let tasks = options.tasks(store)?;
    let wanted = options.filter(&tasks);
    let graphs = out.join("graphs").join(set);
    let mut exported = Exported::default();
    let mut lists: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut task = Task::begin(progress, "writing graphs", None);
    for record in store.entries() {
        let record = record?;
        let kind = record.description.kind;
        if !wanted(&record) {
            continue;
        }
        write_graph(&graphs.join(&record.path), &store.load(&record)?)?;
        exported.graphs += 1;
        task.advance(1);
        if let (Some(folder), Some(uid)) = (layout::folder_of(kind), uid_of(&record)) {
            let below = record.path.strip_prefix(folder).unwrap_or(&record.path);
            let line = format!("{uid}\t{}", below.trim_start_matches('/'));
            lists.entry(folder).or_default().push(line);
        }
    }
    drop(task);
    for (name, mut lines) in lists {
        lines.sort_unstable();
        write_lines(&out.join("graph_lists").join(format!("{name}.txt")), &lines)?;
    }
    let mut sides: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut task = Task::begin(progress, "writing tasks", Some(tasks.len() as u64));
    for one in &tasks {
        let path = task_path(set, one);
        write_task(out, &path, set, one)?;
        let list = format!("{}_{}", one.kind.as_str(), one.list_name());
        sides.entry(list).or_default().push(path);
        exported.tasks += 1;
        task.advance(1);
    }
    for (name, mut lines) in sides {
        lines.sort_unstable();
        write_lines(&out.join("sample_lists").join(format!("{name}.txt")), &lines)?;
    }
    Ok(exported)
}

/// `graph_net.json` comes last: it marks the folder as complete.
fn write_graph(folder: &Path, graph: &GraphFiles) -> Result<(), ExportError> {
    make_folder(folder)?;
    let (last, first): (Vec<_>, Vec<_>) =
        graph.files.iter().partition(|(name, _)| **name == FileName::GraphNet);
    for (name, bytes) in first.into_iter().chain(last) {
        write(&folder.join(name.as_str()), bytes)?;
    }
    Ok(())
}

fn task_path(set: &str, task: &StoredTask) -> String {
    let id = &task.id;
    // Ids are 64 hexadecimal digits; a damaged one still makes a path.
    let part = |from: usize| id.get(from..from + 2).unwrap_or("__");
    format!("samples/{set}/{}/{}/{}/{id}", task.kind.as_str(), part(0), part(2))
}

fn write_task(out: &Path, path: &str, set: &str, task: &StoredTask) -> Result<(), ExportError> {
    let folder = out.join(path);
    let passes = folder.join("pass_dir");
    make_folder(&passes)?;
    write(&passes.join(".ignore"), b"")?;
    let graphs: Vec<String> =
        task.graphs.iter().map(|graph| format!("graphs/{set}/{}", graph.path)).collect();
    write_lines(&folder.join("graph_list.txt"), &graphs)?;
    let uids: Vec<&str> = task.graphs.iter().map(|graph| graph.uid.as_str()).collect();
    write(&folder.join("sample_uids.txt"), uids.join(",").as_bytes())?;
    // The paths in the list go through this link, so that a task folder can be used from anywhere.
    let up: PathBuf = path.split('/').map(|_| "..").collect();
    link(&up.join("graphs"), &folder.join("graphs"))
}

fn link(target: &Path, path: &Path) -> Result<(), ExportError> {
    if fs::read_link(path).is_ok_and(|old| old == target) {
        return Ok(());
    }
    let _ = fs::remove_file(path);
    std::os::unix::fs::symlink(target, path).map_err(|error| ExportError::write(path, error))
}

fn write_lines(path: &Path, lines: &[String]) -> Result<(), ExportError> {
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    let mut text = lines.join("\n");
    text.push('\n');
    write(path, text.as_bytes())
}

fn make_folder(folder: &Path) -> Result<(), ExportError> {
    fs::create_dir_all(folder).map_err(|error| ExportError::write(folder, error))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), ExportError> {
    fs::write(path, bytes).map_err(|error| ExportError::write(path, error))
}
