//! Is a graph well formed? Everything that can be said without running it.

use crate::Diagnostic;
use crate::files::FileName;
use crate::graph::{NodeId, Target};
use crate::infer::infer_folder;
use crate::ops::nearest_spelling;
use crate::read::GraphFolder;

/// What a graph lacks that has inputs and says nothing about them: neither shapes nor dtypes, so that it cannot run.
pub fn missing_metadata(path: &str, folder: &GraphFolder) -> Option<Diagnostic> {
    let inputs = folder.graph.placeholders().len();
    if inputs == 0 || !folder.metas.is_empty() {
        return None;
    }
    let metas = FileName::WeightMeta;
    let message =
        format!("the graph has {inputs} inputs, and nothing says their shapes and dtypes");
    let hint = format!("`{metas}` has a class for each input, with `name`, `shape` and `dtype`");
    Some(Diagnostic::file(format!("{path}/{metas}"), message).with_hint(hint))
}

/// Metadata for the inputs, every operation known, every call fitting its signature, every shape fitting the next
/// operation.
/// `path` is what messages call the graph.
pub fn check_folder(path: &str, folder: &GraphFolder) -> Vec<Diagnostic> {
    let graph = &folder.graph;
    let mut errors: Vec<Diagnostic> = Vec::new();
    let at = |node: NodeId, message: String| Diagnostic {
        line: graph.node(node).line as usize,
        column: 1,
        ..Diagnostic::file(format!("{path}/{}", FileName::Model), message)
    };
    errors.extend(missing_metadata(path, folder));
    if let Err(message) = graph.verify() {
        errors.push(Diagnostic::file(path, message));
    }
    for (id, call) in graph.calls() {
        match (&call.target, call.bind()) {
            (Target::Unknown { kind, path }, _) => {
                let error = at(id, format!("unknown operation `{}`", call.target));
                errors.push(match nearest_spelling(*kind, path) {
                    Some(near) => error.with_hint(format!("did you mean `{}`?", near.path)),
                    None => error,
                });
            }
            (_, Err(message)) => errors.push(at(id, message)),
            (_, Ok(_)) => {}
        }
    }
    if errors.is_empty() && !folder.metas.is_empty() {
        let failures = infer_folder(folder).failures;
        errors.extend(failures.into_iter().map(|failure| at(failure.node, failure.message)));
    }
    errors
}
