//! Any text: it reads to a graph or to a located error; a graph prints to a text that reads back equal, and
//! inference and identity take it as it is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use passnet_graph::infer::infer;
use passnet_graph::print::print_model;
use passnet_graph::syntax::Source;
use passnet_graph::{identify, read};

fuzz_target!(|text: &str| {
    let Ok(graph) = read::read_model(&Source::new("model.py", text)) else { return };
    assert_eq!(graph.verify(), Ok(()));
    let printed = print_model(&graph);
    let again = read::read_model(&Source::new("printed.py", printed.clone()));
    assert_eq!(again.as_ref(), Ok(&graph), "{printed}");
    infer(&graph, &[]);
    identify(&graph, &[]);
});
