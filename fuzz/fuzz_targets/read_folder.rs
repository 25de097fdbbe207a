//! Any bytes as the files of a graph folder, cut at a separator: reading, checking and identifying never panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use passnet_graph::check::check_folder;
use passnet_graph::{FileName, GraphFiles, identify, read};

fuzz_target!(|bytes: &[u8]| {
    let mut files = GraphFiles::new("g");
    for (name, part) in FileName::ALL.into_iter().zip(bytes.split(|byte| *byte == 0)) {
        files = files.with(name, part);
    }
    if let Ok(folder) = read::read_folder(&files) {
        check_folder("g", &folder);
        identify(&folder.graph, &folder.metas);
    }
});
