//! Tasks on their way to workers, and as workers find them.

use crate::error::CommandError;
use passnet_bench::sample::Sample;
use passnet_cluster::bundle::Packer;
use passnet_graph::FileName;
use std::path::{Path, PathBuf};

const TASK: &str = "task";
const PASSES: &str = "passes";

/// A task, with the graphs that are asked for, and its passes.
pub(super) fn pack_task(sample: &Sample, passes: Option<&Path>) -> Result<Vec<u8>, CommandError> {
    let mut packer = Packer::default();
    let root = format!("{TASK}/{}", sample.name);
    let named = |path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| CommandError::input(format!("{path}: {error}"))
    };
    let here = named(&sample.folder);
    for graph in &sample.graphs {
        let folder = sample.graph_folder(graph);
        let inside = if sample.is_graph { root.clone() } else { format!("{root}/{graph}") };
        for file in FileName::ALL {
            let path = folder.join(file.as_str());
            if path.is_file() {
                let bytes = std::fs::read(&path).map_err(named(&path))?;
                packer.file(&format!("{inside}/{}", file.as_str()), &bytes).map_err(&here)?;
            }
        }
    }
    if !sample.is_graph {
        let list: String = sample.graphs.iter().map(|graph| format!("{graph}\n")).collect();
        packer.file(&format!("{root}/graph_list.txt"), list.as_bytes()).map_err(&here)?;
    }
    if let Some(inputs) = sample.input_pass_folder() {
        packer.folder(&format!("{root}/const_pass_dir"), &inputs).map_err(named(&inputs))?;
    }
    if let Some(passes) = passes.filter(|passes| passes.is_dir()) {
        packer.folder(PASSES, passes).map_err(named(passes))?;
    }
    packer.finish().map_err(here)
}

/// The task of an input that was unpacked into a folder.
pub(super) fn read_task(input: &Path) -> Result<Sample, String> {
    let tasks = input.join(TASK);
    let mut folders = std::fs::read_dir(&tasks).map_err(|error| error.to_string())?;
    match (folders.next(), folders.next()) {
        (Some(Ok(folder)), None) => Sample::read(&folder.path()).map_err(|error| error.to_string()),
        _ => Err("the input is no task".into()),
    }
}

/// The passes of an input; a folder that is not there where the task has none.
pub(super) fn passes_of(input: &Path) -> PathBuf {
    input.join(PASSES)
}
