//! What is worth knowing about a task: its operations, what differs between its variants, what can be one kernel.
//!
//! Names are foreign text and are not repeated, except as data in fixed places; a model knows graphs by number.

use crate::task::{Facts, Task};
use passnet_graph::fusion::{GroupKind, groups};
use passnet_graph::identify;
use passnet_graph::infer::infer_folder;
use passnet_graph::print::print_model;
use passnet_graph::read::GraphFolder;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Different shapes of one input that are listed.
const SHAPES: usize = 6;
/// Different texts of the graph that are shown.
const TEXTS: usize = 3;
/// Characters of one graph's text.
const TEXT_CHARS: usize = 6000;
const GROUPS: usize = 12;

/// The values of a task's marks, worked out once.
pub(crate) fn facts(task: &Task) -> &Facts {
    task.facts_or(find)
}

fn find(task: &Task) -> Facts {
    let readable: Vec<(usize, &GraphFolder)> =
        task.readable().map(|(index, _, folder)| (index, folder)).collect();
    let first = readable.first().map(|(_, folder)| *folder);
    vec![
        ("name", task.id.clone()),
        ("graphs", task.graphs.len().to_string()),
        ("operations", first.map_or_else(String::new, operations)),
        ("code", texts(&readable)),
        ("inputs", inputs(&readable)),
        ("varies", varies(&readable)),
        ("fusion", first.map_or_else(String::new, fusion)),
        ("traffic", traffic(task)),
    ]
}

fn operations(folder: &GraphFolder) -> String {
    let names: Vec<String> =
        folder.graph.calls().map(|(_, call)| call.target.op_name().into_owned()).collect();
    names.join(", ")
}

/// The graph's text, once for every form it has: literal arguments may differ between variants.
fn texts(graphs: &[(usize, &GraphFolder)]) -> String {
    let mut forms: BTreeMap<[u8; 32], (usize, usize, &GraphFolder)> = BTreeMap::new();
    for (index, folder) in graphs {
        let identity = identify(&folder.graph, &folder.metas);
        let form = forms.entry(*identity.literals.as_bytes()).or_insert((*index, 0, folder));
        form.1 += 1;
    }
    let mut forms: Vec<_> = forms.into_values().collect();
    forms.sort_by_key(|(index, count, _)| (std::cmp::Reverse(*count), *index));
    let mut out = String::new();
    for (index, count, folder) in forms.iter().take(TEXTS) {
        let mut text = print_model(&folder.graph);
        if let Some((at, _)) = text.char_indices().nth(TEXT_CHARS) {
            text.truncate(at);
            let _ = write!(text, "\n# … cut; `view graphs/{index}/model.py` shows the rest\n");
        }
        let _ = write!(
            out,
            "graph {index} ({count} graphs have this form)\n```python\n{}\n```\n",
            text.trim_end()
        );
    }
    if forms.len() > TEXTS {
        let _ = writeln!(out, "and {} other forms; literal arguments differ", forms.len() - TEXTS);
    }
    out.trim_end().to_string()
}

fn inputs(graphs: &[(usize, &GraphFolder)]) -> String {
    let Some((_, first)) = graphs.first() else { return String::new() };
    let mut out = String::new();
    for (position, meta) in first.metas.iter().enumerate() {
        let at = graphs.iter().filter_map(|(_, folder)| folder.metas.get(position));
        let mut shapes: Vec<String> = Vec::new();
        let mut dtypes = BTreeSet::new();
        for meta in at {
            let shape = format!("{:?}", meta.shape);
            dtypes.insert(meta.dtype.name());
            if !shapes.contains(&shape) {
                shapes.push(shape);
            }
        }
        let more = match shapes.len().checked_sub(SHAPES) {
            None | Some(0) => String::new(),
            Some(more) => format!(" and {more} other shapes"),
        };
        shapes.truncate(SHAPES);
        let dtypes: Vec<&str> = dtypes.into_iter().collect();
        let _ =
            writeln!(out, "- {}: {}; {}{more}", meta.name, dtypes.join(", "), shapes.join(", "));
    }
    out.trim_end().to_string()
}

fn varies(graphs: &[(usize, &GraphFolder)]) -> String {
    let distinct = |of: fn(&GraphFolder) -> Vec<u8>| {
        graphs.iter().map(|(_, folder)| of(folder)).collect::<BTreeSet<_>>().len()
    };
    let structures =
        distinct(|folder| identify(&folder.graph, &folder.metas).structure.as_bytes().to_vec());
    let literals =
        distinct(|folder| identify(&folder.graph, &folder.metas).literals.as_bytes().to_vec());
    let shapes = distinct(|folder| {
        folder
            .metas
            .iter()
            .map(|meta| format!("{:?};", meta.shape))
            .collect::<String>()
            .into_bytes()
    });
    let dtypes = distinct(|folder| {
        folder.metas.iter().map(|meta| meta.dtype.name()).collect::<Vec<_>>().join(",").into_bytes()
    });
    let word = |count: usize, same: &str, other: &str| match count {
        0 | 1 => same.to_string(),
        count => format!("{count} {other}"),
    };
    [
        word(
            structures,
            "all graphs have the same operations in the same order",
            "different structures",
        ),
        word(
            literals,
            "the same literal arguments",
            "sets of literal arguments (a pass for each, or a pattern that leaves them open)",
        ),
        word(shapes, "one set of shapes", "sets of shapes"),
        word(dtypes, "one set of dtypes", "sets of dtypes"),
    ]
    .join("; ")
}

/// Which operations a fusing compiler would put into one kernel.
fn fusion(folder: &GraphFolder) -> String {
    let types = infer_folder(folder);
    let found = groups(&folder.graph, &types);
    let mut out = String::new();
    for (number, group) in found.iter().take(GROUPS).enumerate() {
        let kind = match group.kind {
            GroupKind::Pointwise => "elementwise",
            GroupKind::Reduction => "reduction",
            GroupKind::Library => "library call, better left alone",
        };
        let ops: Vec<String> = group
            .ops
            .iter()
            .filter_map(|op| folder.graph.call(folder.graph.op_node(*op)))
            .map(|call| call.target.op_name().into_owned())
            .collect();
        let _ = writeln!(out, "- kernel {number} ({kind}): {}", ops.join(", "));
    }
    let fusible = found.iter().filter(|group| group.kind != GroupKind::Library).count();
    let _ = match (found.len(), fusible) {
        (1, 1) => write!(out, "one kernel can do all of it; eager launches one for each operation"),
        (all, fusible) if all == fusible => {
            write!(
                out,
                "a fusing compiler launches {all} kernels; one hand-written kernel may do more"
            )
        }
        _ => write!(out, "fuse what stands between the library calls"),
    };
    out
}

fn traffic(task: &Task) -> String {
    let bytes: Vec<u64> = task.graphs.iter().filter_map(|graph| Some(graph.work?.bytes)).collect();
    let mebi = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    match (bytes.iter().min(), bytes.iter().max()) {
        (Some(least), Some(most)) => format!(
            "inputs and outputs are {:.2} to {:.2} MiB: a perfect pass moves each byte once",
            mebi(*least),
            mebi(*most)
        ),
        _ => String::new(),
    }
}
