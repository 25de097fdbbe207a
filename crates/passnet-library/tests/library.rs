//! A library on disk and in memory, and a session's answers, without Python.

use passnet_bench::evaluate::EvaluateOptions;
use passnet_bench::timing::TimingOptions;
use passnet_bench::verdict::VerdictKind;
use passnet_engine::Identity;
use passnet_engine::native::NativeEngine;
use passnet_engine::torch::frames::Frame;
use passnet_graph::Graph;
use passnet_graph::read::read_model;
use passnet_graph::syntax::Source;
use passnet_library::folder::{Library, Origin};
use passnet_library::judge::judge;
use passnet_library::session::{Session, SessionOptions};
use passnet_library::shelf::{Shelf, Trust, Wanted};
use passnet_library::{Believed, Evidence, Standing};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn bench(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench").join(path)
}

fn graphs_of(task: &str) -> Vec<PathBuf> {
    let sample = passnet_bench::sample::Sample::read(&bench("tasks").join(task)).unwrap();
    sample.graphs.iter().take(1).map(|graph| sample.graph_folder(graph)).collect()
}

fn library_of(tasks: &[&str]) -> (tempfile::TempDir, Library) {
    let place = tempfile::tempdir().unwrap();
    let library = Library::at(place.path().join("library"));
    for task in tasks {
        let passes = bench("passes").join(task);
        library.add_passes(&passes, &graphs_of(task), &Origin::default()).unwrap();
    }
    (place, library)
}

fn graph(body: &str) -> Graph {
    read_model(&Source::new("model.py", text(body))).unwrap()
}

fn text(body: &str) -> String {
    format!(
        "import torch\n\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, x, w):\n{body}"
    )
}

/// Two SwiGLUs, one after the other.
const TWICE: &str = "        chunk = x.chunk(2, dim=-1)\n        gate = chunk[0]\n        up = chunk[1]\n\
    \x20       silu = torch.nn.functional.silu(gate)\n        first = silu * up\n\
    \x20       linear = torch.nn.functional.linear(first, w)\n        chunk_1 = linear.chunk(2, dim=-1)\n\
    \x20       gate_1 = chunk_1[0]\n        up_1 = chunk_1[1]\n\
    \x20       silu_1 = torch.nn.functional.silu(gate_1)\n        second = up_1 * silu_1\n        return (second,)\n";

#[test]
fn the_same_passes_are_one_entry_and_what_is_known_of_them_is_merged() {
    let (_place, library) = library_of(&["swiglu"]);
    let again = library.add_passes(&bench("passes/swiglu"), &[], &Origin::default()).unwrap();
    assert!(!again.is_new);
    let entries = library.entries().unwrap();
    assert_eq!(entries.len(), 1);
    let (name, entry) = &entries[0];
    let entry = entry.as_ref().unwrap();
    assert_eq!((entry.name.as_str(), entry.passes.len()), ("swiglu", 1));
    let evidence = Evidence {
        graph: "g".into(),
        model: "m".into(),
        verdict: VerdictKind::Correct,
        speedup: Some(2.0),
        thorough: true,
        identity: Identity::here("native"),
        time: 1,
    };
    library.learn(name, std::slice::from_ref(&evidence)).unwrap();
    let (_other_place, other) = library_of(&["swiglu", "geglu_tanh"]);
    // A stranger's praise is not believed unless that is asked for; a fault that somebody found is.
    let fault = Evidence { verdict: VerdictKind::Accuracy, graph: "h".into(), ..evidence.clone() };
    library.learn(name, std::slice::from_ref(&fault)).unwrap();
    let (_third_place, third) = library_of(&[]);
    third.merge(&library, Believed::Faults, &|_, _| true).unwrap();
    assert_eq!(third.entry(name).unwrap().evidence, std::slice::from_ref(&fault));
    let added = other.merge(&library, Believed::All, &|_, _| true).unwrap();
    assert_eq!((added.len(), added[0].is_new, added[0].evidence), (1, false, 2));
    assert_eq!(other.entry(name).unwrap().evidence, [evidence, fault]);
    let none = other.merge(&library, Believed::All, &|_, entry| !entry.licence.is_empty()).unwrap();
    assert_eq!(none, []);
}

#[test]
fn what_breaks_a_rule_or_cannot_be_read_is_not_added() {
    let (place, library) = library_of(&[]);
    let folder = place.path().join("bad");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("sorted_output_pass_rule_names.json"), "[\"bad\"]").unwrap();
    for (text, part) in [
        ("def pattern(x:\n", "bad.py:2:1"),
        (
            "import torch\nimport os\n\n\ndef pattern(x):\n    return torch.relu(x)\n\n\n\
             def replacement_args(x):\n    return (x,)\n\n\ndef wrapper(x):\n    return os.system(x)\n\n\n\
             def replacement_func():\n    return wrapper\n",
            "integrity",
        ),
    ] {
        std::fs::write(folder.join("bad.py"), text).unwrap();
        let error = library.add_passes(&folder, &[], &Origin::default()).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
    assert!(library.entries().unwrap().is_empty());
}

#[test]
fn a_damaged_entry_is_named_and_keeps_nobody_from_the_others() {
    let (_place, library) = library_of(&["swiglu", "geglu_tanh"]);
    let (name, _) = library.entries().unwrap().remove(0);
    std::fs::write(library.folder().join(&name).join("entry.json"), "{\"format\": 1").unwrap();
    let shelf = Shelf::open(library).unwrap();
    assert_eq!((shelf.len(), shelf.damaged.len()), (1, 1));
    assert!(shelf.damaged[0].contains(&name), "{}", shelf.damaged[0]);
}

#[test]
fn passes_are_used_by_what_is_known_of_them() {
    let (_place, library) = library_of(&["swiglu"]);
    let device = Identity::here("native").device;
    let none = BTreeSet::new();
    let rewrite = |library: &Library, trust| {
        let shelf = Shelf::open(library.clone()).unwrap();
        shelf.rewrite(&graph(TWICE), &Wanted { trust, device: &device, without: &none })
    };
    assert_eq!(rewrite(&library, Trust::None).sites.len(), 0, "nothing is known");
    assert_eq!(rewrite(&library, Trust::All).sites.len(), 2);
    let (name, _) = library.entries().unwrap().remove(0);
    let options = EvaluateOptions {
        timing: TimingOptions { warmup: 0, trials: 3, seconds: 0.01, ..TimingOptions::default() },
        ..EvaluateOptions::default()
    };
    let evidence = judge(&library, &name, &NativeEngine, &options).unwrap();
    let entry = library.learn(&name, &evidence).unwrap();
    assert!(matches!(entry.standing(&device), Standing::Correct { speedup: Some(_) }));
    let rewritten = rewrite(&library, Trust::None);
    assert_eq!(rewritten.sites.len(), 2);
    assert_eq!(rewritten.sites[1].removed, ["chunk_1", "gate_1", "up_1", "silu_1", "second"]);
    assert_eq!(rewritten.sites[1].outputs, ["second"]);
    let wrong = Evidence { verdict: VerdictKind::Accuracy, time: u64::MAX, ..evidence[0].clone() };
    library.learn(&name, &[wrong]).unwrap();
    let refused = rewrite(&library, Trust::All);
    assert_eq!(refused.sites.len(), 0, "found wrong, used by nobody");
    assert!(refused.passed_over[0].1.contains("accuracy"), "{:?}", refused.passed_over);
}

#[test]
fn passes_whose_files_changed_after_they_were_judged_are_not_used() {
    let (_place, library) = library_of(&["swiglu"]);
    let (name, _) = library.entries().unwrap().remove(0);
    let file = library.pass_folder(&name).join("swiglu.py");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("up * silu", "up + silu")).unwrap();
    let device = Identity::here("native").device;
    let wanted = Wanted { trust: Trust::All, device: &device, without: &BTreeSet::new() };
    let rewritten = Shelf::open(library).unwrap().rewrite(&graph(TWICE), &wanted);
    assert!(rewritten.sites.is_empty());
    assert!(rewritten.passed_over[0].1.contains("not those that were judged"));
}

#[test]
fn only_passes_whose_operations_a_graph_has_are_searched_for() {
    let all: Vec<String> = std::fs::read_dir(bench("passes"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let place = tempfile::tempdir().unwrap();
    let library = Library::at(place.path());
    for name in &all {
        library.add_passes(&bench("passes").join(name), &[], &Origin::default()).unwrap();
    }
    let shelf = Shelf::open(library).unwrap();
    assert_eq!(shelf.len(), all.len());
    let device = Identity::here("native").device;
    let wanted = Wanted { trust: Trust::All, device: &device, without: &BTreeSet::new() };
    let rewritten = shelf.rewrite(&graph(TWICE), &wanted);
    assert_eq!(rewritten.sites.len(), 2);
    assert!(rewritten.searched < 4, "{} of {} were read", rewritten.searched, all.len());
}

fn session() -> Session {
    Session::new(SessionOptions {
        python: "python3".into(),
        cache: std::env::temp_dir(),
        runner: None,
        start_engine: Box::new(|_| Ok(Box::new(NativeEngine))),
    })
}

fn ask(session: &mut Session, message: Json) -> Json {
    let Json::Object(message) = message else { panic!("{message}") };
    session.answer(&Frame { message, bytes: Vec::new() }).0
}

#[test]
fn a_session_says_which_program_answers() {
    let hello = ask(&mut session(), json!({"call": "hello"}));
    let identity: Identity = serde_json::from_value(hello["identity"].clone()).unwrap();
    assert_eq!(identity, Identity::here("torch"));
    assert_eq!(identity.build.version, env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_session_names_what_is_replaced_and_makes_plans() {
    let (_place, library) = library_of(&["swiglu"]);
    let mut session = session();
    let question = json!({
        "call": "match", "text": text(TWICE), "library": library.folder(), "trust": "all",
        "device": {"kind": "cpu"}, "without": [],
    });
    let answer = ask(&mut session, question.clone());
    let order: Vec<String> =
        answer["order"].as_array().unwrap().iter().map(Json::to_string).collect();
    assert_eq!(
        order,
        [
            r#"{"site":0,"args":[{"node":"x"}]}"#,
            r#"{"node":"linear"}"#,
            r#"{"site":1,"args":[{"node":"linear"}]}"#
        ]
    );
    let tensor =
        json!({"tensor": {"shape": [2, 8], "stride": [8, 1], "dtype": "float32", "aligned": true}});
    let wanted = |graph: &Json, node: usize| json!({"plan": {"graph": graph, "node": node, "arguments": [tensor]}});
    let plan = ask(&mut session, wanted(&answer["graph"], 1));
    assert_eq!(plan["reads"], json!([]), "{plan}");
    assert_eq!(plan["plan"]["returns"][0]["shape"], json!([2, 4]));
    let pass = answer["sites"][0]["pass"].clone();
    let mut without = question;
    without["without"] = json!([pass]);
    assert_eq!(ask(&mut session, without)["sites"], json!([]));
    assert_eq!(
        ask(&mut session, json!({"call": "drop", "graph": answer["graph"]}))["dropped"],
        true
    );
    let gone = ask(&mut session, wanted(&answer["graph"], 0));
    assert_eq!(gone["error"], "there is no such graph");
}

#[test]
fn what_matches_and_is_unknown_is_judged_before_its_first_use() {
    let (_place, library) = library_of(&["swiglu"]);
    let (name, _) = library.entries().unwrap().remove(0);
    let mut session = session();
    let question = json!({
        "call": "match", "text": text(TWICE), "library": library.folder(), "trust": "judged",
        "device": {"kind": "cpu"}, "without": [],
    });
    let answer = ask(&mut session, question);
    assert_eq!(answer["sites"].as_array().unwrap().len(), 2, "{answer}");
    assert!(answer["notes"][0].as_str().unwrap().contains("judged before first use: correct"));
    assert!(!library.entry(&name).unwrap().evidence.is_empty(), "and kept");
}

#[test]
fn questions_that_make_no_sense_are_answered_with_what_is_wrong() {
    let (_place, library) = library_of(&[]);
    let mut session = session();
    let whole = json!({
        "call": "match", "text": text("        return (x,)\n"), "library": library.folder(), "trust": "all",
        "device": {"kind": "cpu"},
    });
    assert_eq!(ask(&mut session, whole.clone())["sites"], json!([]), "an empty library is none");
    let with = |key: &str, value: Json| {
        let mut changed = whole.clone();
        changed[key] = value;
        changed
    };
    for (question, part) in [
        (json!({}), "no call"),
        (json!({"call": "dance"}), "dance"),
        (json!({"call": "match"}), "`text` is missing"),
        (with("text", json!("def")), "graph:1:"),
        (with("text", json!(text("        y = not x\n        return (y,)\n"))), "graph:6:"),
        (with("trust", json!("blind")), "none, judged, all"),
        (with("device", json!({"kind": "cuda"})), "capability"),
        (with("device", Json::Null), "`kind`"),
        (json!({"plan": {"graph": 99}}), "no such graph"),
        (json!({"plan": 3}), "no such graph"),
    ] {
        let answer = ask(&mut session, question.clone());
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(error.contains(part), "{question}: {answer}");
    }
}
