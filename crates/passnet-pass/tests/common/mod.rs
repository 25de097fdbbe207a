//! Passes and graphs from text.
#![allow(dead_code, reason = "every test file uses a part of it")]

pub mod random;

use passnet_graph::Graph;
use passnet_graph::read::read_model;
use passnet_graph::syntax::Source;
use passnet_pass::load::{Bindings, PassFile, Program};
use passnet_pass::trace::{Dialect, Pass, trace};

pub(crate) struct Loaded {
    pub(crate) program: Program,
    pub(crate) pass: Pass,
}

pub(crate) fn trace_pass(text: &str, dialect: Dialect) -> Loaded {
    let program = Program::from_source(Source::new("pass.py", text)).unwrap();
    let pass = {
        let bindings = Bindings::of(&program);
        let module = program.ids().next().unwrap();
        let file = PassFile { name: "pass".into(), module, is_input: false };
        match trace(&program, &bindings, &file, dialect) {
            Ok(pass) => pass,
            Err(errors) => panic!("{text}\n{errors:?}"),
        }
    };
    Loaded { program, pass }
}

/// A pass whose pattern has the given arguments and body and whose wrapper takes the same arguments.
pub(crate) fn pattern(arguments: &str, body: &str) -> String {
    let body = body.replace('\n', "\n    ");
    format!(
        "import torch\nimport torch.nn.functional as F\n\n\
         def pattern({arguments}):\n    {body}\n\n\
         def replacement_args({arguments}):\n    return ({arguments},)\n\n\
         def wrapper({arguments}):\n    return None\n\n\
         def replacement_func():\n    return wrapper\n"
    )
}

/// A graph from the body of `forward`, with three arguments.
pub(crate) fn graph(body: &str) -> Graph {
    let body = body.replace('\n', "\n        ");
    let text = format!(
        "import torch\n\nclass GraphModule(torch.nn.Module):\n\n    def forward(self, in_0, in_1, in_2):\n        {body}\n"
    );
    match read_model(&Source::new("model.py", text.as_str())) {
        Ok(graph) => graph,
        Err(error) => panic!("{text}\n{error}"),
    }
}
