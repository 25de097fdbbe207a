//! The reference's semantics against torch.fx itself.
//!
//! The recorded cases were made by `python -m passnet.parity.fx_matches generate --count 600 --seed 1` with PyTorch
//! 2.11. Live: write other cases (another seed, or `cut` from a corpus) and name the file in
//! `PASSNET_FX_CASES`.

mod common;

use passnet_graph::read::read_model;
use passnet_graph::syntax::Source;
use passnet_pass::load::{Bindings, PassFile, Program};
use passnet_pass::matcher::reference;
use passnet_pass::trace::{Dialect, trace};
use serde_json::Value;
use std::path::PathBuf;

fn text<'a>(case: &'a Value, key: &str) -> &'a str {
    case[key].as_str().unwrap_or_default()
}

fn indent(body: &str, spaces: usize) -> String {
    body.lines().map(|line| format!("{}{line}\n", " ".repeat(spaces))).collect()
}

/// What the reference's semantics finds, in the form the cases use.
fn matches(case: &Value) -> Value {
    let inputs = text(case, "inputs");
    let model = format!(
        "import torch\nclass GraphModule(torch.nn.Module):\n    def forward(self, {inputs}):\n{}",
        indent(text(case, "graph"), 8)
    );
    let graph = read_model(&Source::new("model.py", model.as_str())).expect(&model);
    let parameters = text(case, "parameters");
    let pass = format!(
        "import operator\nimport torch\nimport torch.nn.functional as F\n\
         def pattern({parameters}):\n{}\
         def replacement_args({parameters}):\n    return ({parameters},)\n\
         def wrapper(*args):\n    return None\n\
         def replacement_func():\n    return wrapper\n",
        indent(text(case, "pattern"), 4)
    );
    let program = Program::from_source(Source::new("pass.py", pass.as_str())).expect(&pass);
    let bindings = Bindings::of(&program);
    let module = program.ids().next().unwrap();
    let file = PassFile { name: "pass".into(), module, is_input: false };
    let traced = match trace(&program, &bindings, &file, Dialect::Fx) {
        Ok(traced) => traced,
        // torch.fx refuses dead code with an assertion.
        Err(errors) if errors[0].message.contains("unused values") => {
            return "AssertionError".into();
        }
        Err(errors) => panic!("{pass}\n{errors:?}"),
    };
    let pattern = reference::normalise(&traced.pattern.graph);
    match reference::find(&pattern, &graph) {
        Err(_) => "KeyError".into(),
        Ok(found) => found
            .iter()
            .map(|found| {
                let first = graph.placeholder_count();
                found.nodes.iter().map(|id| id.index() - first).collect::<Vec<_>>().into()
            })
            .collect::<Vec<Value>>()
            .into(),
    }
}

fn compare(path: PathBuf) -> usize {
    let lines = std::fs::read_to_string(&path).unwrap();
    let mut count = 0;
    let mut wrong = Vec::new();
    for line in lines.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let found = matches(&case);
        count += 1;
        if found != case["matches"] {
            wrong.push(format!(
                "pattern({}):\n{}\ngraph:\n{}\ntorch.fx: {}\nhere: {found}\n",
                text(&case, "parameters"),
                text(&case, "pattern"),
                text(&case, "graph"),
                case["matches"]
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {count} cases differ:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(3)].join("\n")
    );
    count
}

#[test]
fn recorded_cases() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/fx_parity.jsonl");
    assert!(compare(path) >= 500);
}

#[test]
fn live_cases() {
    if let Some(path) = std::env::var_os("PASSNET_FX_CASES") {
        compare(path.into());
    }
}
