//! The passes of a run, as files that can be loaded again.

use crate::Error;
use passnet_bench::candidate::{Candidate, Rewrites};
use passnet_bench::report::GraphRecord;
use passnet_bench::verdict::Verdict;
use passnet_graph::FileName;
use std::collections::BTreeMap;
use std::path::{Component, Path};
use tempfile::TempDir;

/// The file of a pass folder that lists its passes in order.
const LIST: &str = "sorted_output_pass_rule_names.json";
/// Folders in folders of a pass.
const MAX_DEPTH: usize = 8;
const MAX_PART: usize = 128;

/// The texts of a set of passes, by name, and the order in which the passes apply.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PassFiles {
    /// Names and digests.
    pub(crate) files: Vec<(String, String)>,
    pub(crate) order: Vec<String>,
}

/// The pass files behind a result. The model, which comes first, is none of them.
pub fn pass_files(graph: &GraphRecord) -> PassFiles {
    let model = FileName::Model.as_str();
    let is_pass =
        |(position, (name, _)): &(usize, &(String, String))| *position > 0 || name != model;
    let files = graph.event.artefacts.iter().enumerate().filter(is_pass);
    let rewrites = graph.event.evaluation.rewrites.iter();
    PassFiles {
        files: files.map(|(_, file)| file.clone()).collect(),
        order: rewrites.map(|Rewrites { pass, .. }| pass.clone()).collect(),
    }
}

impl PassFiles {
    /// Whether the graph has no pass.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The files of a pass folder, by name, its list of passes among them; `text` gives each by its digest.
    pub fn texts(
        &self,
        text: impl Fn(&str) -> Option<Vec<u8>>,
    ) -> Result<BTreeMap<String, Vec<u8>>, Error> {
        let mut texts = BTreeMap::new();
        for (name, digest) in &self.files {
            check_name(name)?;
            let bytes = text(digest).ok_or_else(|| {
                Error::input(format!("the text of `{}` is missing", name.escape_debug()))
            })?;
            texts.insert(name.clone(), bytes);
        }
        let list = || serde_json::to_vec(&self.order).unwrap_or_default();
        texts.entry(LIST.to_string()).or_insert_with(list);
        Ok(texts)
    }

    /// Writes the files into a folder of their own.
    pub fn write(&self, text: impl Fn(&str) -> Option<Vec<u8>>) -> Result<TempDir, Error> {
        let folder = tempfile::tempdir().map_err(|error| Error::lacking(error.to_string()))?;
        for (name, bytes) in self.texts(text)? {
            write_file(&folder.path().join(name), &bytes)?;
        }
        Ok(folder)
    }

    /// Reads the passes again: traced, and checked by the rules where the run was.
    pub fn load(
        &self,
        rules: bool,
        text: impl Fn(&str) -> Option<Vec<u8>>,
    ) -> Result<Result<Candidate, Box<Verdict>>, Error> {
        let folder = self.write(text)?;
        Ok(Candidate::load(folder.path(), None, rules))
    }
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(Error::at(folder))?;
    }
    std::fs::write(path, bytes).map_err(Error::at(path))
}

/// Names come from whoever made the bundle: only plain ones below the folder are written.
fn check_name(name: &str) -> Result<(), Error> {
    let is_plain = |part: &str| {
        let mut bytes = part.bytes();
        part.len() <= MAX_PART
            && bytes.next().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
    };
    let is_below = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    match is_below && name.split('/').count() <= MAX_DEPTH && name.split('/').all(is_plain) {
        true => Ok(()),
        false => Err(Error::input(format!("`{}` is no name of a pass file", name.escape_debug()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_are_written() {
        for name in ["fuse.py", "helpers/a_b.py", "_x.py"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in [
            "",
            "/etc/passwd",
            "../x.py",
            "a/../../x",
            "a//b",
            ".bashrc",
            "a\0b",
            "a\\b",
            "ä.py",
            "a/",
        ] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
