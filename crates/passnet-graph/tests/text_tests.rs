//! Runs the text tests of `tests/text/`: a header that names the kind of test, a `model.py`, and what is
//! expected of it. `UPDATE=1 cargo test -p passnet-graph` rewrites the expectations.
//!
//! Kinds: `print` (the canonical text, which must read back to the same graph), `error` (the located
//! message), `effects` (what each node writes, and which earlier nodes it must stay after),
//! `same` (several models, separated by `# ---- and`, that share all three digests), `different` (models
//! of which no two share their digests at the named level).

use passnet_graph::graph::effects::Effects;
use passnet_graph::print::print_model;
use passnet_graph::syntax::Source;
use passnet_graph::{Digest, Graph, Identity, identify, read};
use std::fmt::Write;
use std::path::Path;

const EXPECT: &str = "# ---- expect\n";
const AND: &str = "# ---- and\n";

#[test]
fn text_tests() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/text");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .expect("the test folder exists")
        .map(|entry| entry.expect("a readable entry").path())
        .collect();
    files.sort();
    assert!(files.len() > 20, "text tests are missing");
    let mut failures = String::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a text file");
        let (input, expected) = text.split_once(EXPECT).unwrap_or((&text, ""));
        let actual = run(input);
        if actual != expected {
            if std::env::var_os("UPDATE").is_some() {
                std::fs::write(&file, format!("{input}{EXPECT}{actual}")).expect("a writable file");
            } else {
                let _ = writeln!(
                    failures,
                    "{}\n--- expected\n{expected}--- actual\n{actual}",
                    file.display()
                );
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

fn run(input: &str) -> String {
    let header = input.lines().next().and_then(|line| line.strip_prefix("# test: ")).unwrap_or("");
    let mut words = header.split_whitespace();
    match words.next() {
        Some("print") => print(input),
        Some("error") => match parse(input) {
            Ok(_) => "no error\n".into(),
            Err(message) => message,
        },
        Some("effects") => with_graph(input, effects),
        Some("same") => same(input),
        Some("different") => different(input, words.next().unwrap_or("")),
        _ => "unknown kind of test\n".into(),
    }
}

fn parse(input: &str) -> Result<Graph, String> {
    read::read_model(&Source::new("model.py", input)).map_err(|error| {
        let hint = error.hint.map(|hint| format!("hint: {hint}\n")).unwrap_or_default();
        format!("{}:{}: {}\n{hint}", error.line, error.column, error.message)
    })
}

fn with_graph(input: &str, show: impl Fn(&Graph) -> String) -> String {
    match parse(input) {
        Ok(graph) => show(&graph),
        Err(message) => message,
    }
}

fn print(input: &str) -> String {
    with_graph(input, |graph| {
        let printed = print_model(graph);
        match parse(&printed) {
            Ok(again) if again == *graph => printed,
            Ok(_) => format!("reads back as another graph:\n{printed}"),
            Err(message) => format!("does not read back: {message}{printed}"),
        }
    })
}

fn effects(graph: &Graph) -> String {
    let effects = Effects::of(graph);
    let order = effects.order(graph);
    let mut text = String::new();
    for (id, _) in graph.calls() {
        let name = |id: passnet_graph::NodeId| graph.node(id).name.to_string();
        let writes: Vec<String> = effects.writes(id).map(name).collect();
        let after: Vec<String> = order[id.index()].iter().copied().map(name).collect();
        let mut line = name(id);
        if effects.root(id) != id {
            let _ = write!(line, " shares {}", name(effects.root(id)));
        }
        if !writes.is_empty() {
            let _ = write!(line, " writes {}", writes.join(" "));
        }
        if !after.is_empty() {
            let _ = write!(line, " after {}", after.join(" "));
        }
        let _ = writeln!(text, "{line}");
    }
    text
}

fn identities(input: &str) -> Result<Vec<Identity>, String> {
    let models = input.split(AND).map(|model| Ok(identify(&parse(model)?, &[])));
    models.collect()
}

fn same(input: &str) -> String {
    match identities(input) {
        Ok(all) if all.windows(2).all(|pair| pair[0] == pair[1]) => {
            format!("{} models, one identity\n", all.len())
        }
        Ok(all) => format!("{all:#?}\n"),
        Err(message) => message,
    }
}

fn different(input: &str, level: &str) -> String {
    let digest = |identity: &Identity| -> Digest {
        if level == "structure" { identity.structure } else { identity.literals }
    };
    match identities(input) {
        Ok(all) => {
            let mut digests: Vec<Digest> = all.iter().map(digest).collect();
            digests.sort();
            digests.dedup();
            format!("{} models, {} identities\n", all.len(), digests.len())
        }
        Err(message) => message,
    }
}
