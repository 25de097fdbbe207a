//! PassNet's folder layout:
//!
//! ```text
//! graphs/<set>/<kind>_subgraphs/<dtype>/<shape>/samples/<family>/<model>/_decomposed/<piece>/   graph folders
//! graph_lists/<kind>_subgraphs.txt                       uid and path of every piece, by uid
//! graph_lists/grouped_<kind>_subgraph_uids.txt           the uids of one task a line
//! samples/<set>/<kind>/<id[0:2]>/<id[2:4]>/<id>/         one task: graph_list.txt, sample_uids.txt, pass_dir/, graphs
//! sample_lists/<kind>_<side>.txt, .csv                   paths of tasks, also as a table with the column `sample_path`
//! ```
//!
//! Every file is a function of the store alone; writing it again over an interrupted export completes it. What came from a
//! checkout ([`checkout`](crate::checkout)) is written back to its own paths, byte for byte.

use super::{ExportError, ExportOptions, Exported};
use crate::checkout::links;
use crate::content::check_path_part;
use crate::layout;
use crate::sample::tasks::{StoredTask, uid_of};
use crate::store::{FileBody, Store, StoreError, StoreErrorKind};
use passnet_graph::{FileName, GraphFiles};
use passnet_work::progress::{Progress, Task};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Writes graphs, tasks and lists below `out`; `set` names the folder below `graphs` and `samples` for those that were made
/// here. What was published goes back to where it came from.
pub fn export_folders(
    store: &Store,
    out: &Path,
    set: &str,
    options: &ExportOptions,
    progress: &dyn Progress,
) -> Result<Exported, ExportError> {
    let tasks = options.tasks(store)?;
    let places = Places::of(store, set)?;
    options.check(
        store,
        &tasks,
        places.files.iter().filter(|path| options.wants_file(path)).count(),
    )?;
    let mut exported = Exported::default();
    write_graphs(store, out, &places, &tasks, options, &mut exported, progress)?;
    let mut sides: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut groups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut task = Task::begin(progress, "writing tasks", Some(tasks.len() as u64));
    for one in &tasks {
        exported.tasks += 1;
        task.advance(1);
        if one.path.as_deref().is_some_and(|path| places.samples.contains(path)) {
            // Its files are among those that came with it, and its list, too.
            continue;
        }
        let path = task_path(set, one);
        write_task(out, &path, &places, one)?;
        let list = format!("{}_{}", one.kind.as_str(), one.list_name());
        groups.entry(one.kind.as_str()).or_default().push(uids_of(one));
        sides.entry(list).or_default().push(path);
    }
    drop(task);
    for (name, mut lines) in sides {
        lines.sort_unstable();
        write_lines(&out.join(places.list("sample_lists", &name, "txt")), &lines)?;
        let table: Vec<String> =
            ["sample_path".to_string()].into_iter().chain(lines.iter().map(|l| field(l))).collect();
        write_lines(&out.join(places.list("sample_lists", &name, "csv")), &table)?;
    }
    for (kind, mut groups) in groups {
        groups.sort_unstable();
        let name = format!("grouped_{kind}_subgraph_uids");
        write_lines(&out.join(places.list("graph_lists", &name, "txt")), &groups)?;
    }
    write_files(store, out, &places, options, &mut exported)?;
    Ok(exported)
}

fn write_graphs(
    store: &Store,
    out: &Path,
    places: &Places<'_>,
    tasks: &[StoredTask],
    options: &ExportOptions,
    exported: &mut Exported,
    progress: &dyn Progress,
) -> Result<(), ExportError> {
    let wanted = options.filter(tasks);
    let mut lists: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut task = Task::begin(progress, "writing graphs", None);
    for record in store.entries() {
        let record = record?;
        let kind = record.description.kind;
        if !wanted(&record) {
            continue;
        }
        let folder = places.at(store, out, &places.graph(&record.path))?;
        write_graph(&folder, &store.load(&record)?)?;
        exported.graphs += 1;
        task.advance(1);
        if places.is_published(&record.path) {
            continue;
        }
        if let (Some(folder), Some(uid)) = (layout::folder_of(kind), uid_of(&record)) {
            let below = record.path.strip_prefix(folder).unwrap_or(&record.path);
            let line = format!("{uid}\t{}", below.trim_start_matches('/'));
            lists.entry(folder).or_default().push(line);
        }
    }
    for (name, mut lines) in lists {
        lines.sort_unstable();
        write_lines(&out.join(places.list("graph_lists", name, "txt")), &lines)?;
    }
    Ok(())
}

/// Where things go.
struct Places<'a> {
    set: &'a str,
    files: BTreeSet<String>,
    /// The folders of published samples.
    samples: BTreeSet<String>,
    /// Those of the files that are links.
    links: BTreeSet<String>,
}

impl<'a> Places<'a> {
    fn of(store: &Store, set: &'a str) -> Result<Self, StoreError> {
        let files: BTreeSet<String> = store.file_paths()?.into_iter().collect();
        let sample = |path: &String| path.strip_suffix("/graph_list.txt").map(str::to_string);
        let samples = files.iter().filter_map(sample).collect();
        Ok(Self { set, files, samples, links: store.link_paths()?.into_iter().collect() })
    }

    /// Where to write what the store has under a path. Stores come from anywhere: no path leads out of `out`, and nothing
    /// is written through a link that the store itself brings.
    fn at(&self, store: &Store, out: &Path, path: &str) -> Result<PathBuf, StoreError> {
        let above = path.match_indices('/').map(|(end, _)| &path[..end]);
        let through = above.into_iter().find(|above| self.links.contains(*above));
        let why = match (path.split('/').try_for_each(check_path_part), through) {
            (Err(why), _) => why.to_string(),
            (_, Some(link)) => format!("lies behind the link `{link}`"),
            (Ok(()), None) => return Ok(out.join(path)),
        };
        let message = format!("the path `{}` {why}", path.escape_debug());
        Err(StoreError { store: store.path().to_owned(), kind: StoreErrorKind::Damaged(message) })
    }

    /// Published graphs lie in the folder of all graphs or in a sample's own.
    fn is_published(&self, path: &str) -> bool {
        let above = path.match_indices('/').map(|(end, _)| &path[..end]);
        layout::is_published(path) || above.into_iter().any(|above| self.samples.contains(above))
    }

    fn graph(&self, path: &str) -> String {
        match self.is_published(path) {
            true => path.to_string(),
            false => format!("{}/{}/{path}", layout::GRAPHS, self.set),
        }
    }

    /// The path of a list of ours, which must not take the place of a published one.
    fn list(&self, folder: &str, name: &str, ending: &str) -> String {
        let usual = format!("{folder}/{name}.{ending}");
        match self.files.contains(&usual) {
            false => usual,
            true => format!("{folder}/{}_{name}.{ending}", self.set),
        }
    }
}

fn write_files(
    store: &Store,
    out: &Path,
    places: &Places<'_>,
    options: &ExportOptions,
    exported: &mut Exported,
) -> Result<(), ExportError> {
    for path in places.files.iter().filter(|path| options.wants_file(path)) {
        let Some(file) = store.file(path)? else { continue };
        let place = places.at(store, out, path)?;
        make_folder(place.parent().unwrap_or(out))?;
        match &file.body {
            FileBody::Text(bytes) => write(&place, bytes)?,
            FileBody::Script(bytes) => {
                write(&place, bytes)?;
                fs::set_permissions(&place, fs::Permissions::from_mode(0o755))
                    .map_err(|error| ExportError::write(&place, error))?;
            }
            FileBody::Link(target) => {
                links::destination(path, target).map_err(|refused| {
                    let message = format!("`{path}`: {}", refused.message);
                    let kind = StoreErrorKind::Damaged(message);
                    StoreError { store: store.path().to_owned(), kind }
                })?;
                link(Path::new(target), &place)?;
            }
            FileBody::Folder => make_folder(&place)?,
        }
        exported.files += 1;
    }
    Ok(())
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

fn write_task(
    out: &Path,
    path: &str,
    places: &Places<'_>,
    task: &StoredTask,
) -> Result<(), ExportError> {
    let folder = out.join(path);
    let passes = folder.join("pass_dir");
    make_folder(&passes)?;
    write(&passes.join(".ignore"), b"")?;
    let graphs: Vec<String> = task.graphs.iter().map(|graph| places.graph(&graph.path)).collect();
    write_lines(&folder.join("graph_list.txt"), &graphs)?;
    write(&folder.join("sample_uids.txt"), uids_of(task).as_bytes())?;
    // The paths in the list go through this link, so that a task folder can be used from anywhere.
    let up: PathBuf = path.split('/').map(|_| "..").collect();
    link(&up.join("graphs"), &folder.join("graphs"))
}

/// The uids of a task's graphs on one line, in the order of its list.
fn uids_of(task: &StoredTask) -> String {
    let uids: Vec<&str> = task.graphs.iter().map(|graph| graph.uid.as_str()).collect();
    uids.join(",")
}

/// A field of a table; the name of a set may hold what separates fields.
fn field(text: &str) -> String {
    match text.contains([',', '"']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_string(),
    }
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
    // A link of an earlier export is not to be written through.
    if path.is_symlink() {
        fs::remove_file(path).map_err(|error| ExportError::write(path, error))?;
    }
    fs::write(path, bytes).map_err(|error| ExportError::write(path, error))
}
