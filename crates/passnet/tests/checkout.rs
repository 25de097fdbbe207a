//! What comes from PassNet works as it is: a checkout is imported, benched, scored and exported, its lists name samples,
//! and scripts that were written for its harness run.

#[path = "../../passnet-dataset/tests/common/checkout.rs"]
mod checkout;

use checkout::{DEMO_GRAPH, DEMO_SAMPLE, PASS, V2, Written, tree};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A checkout, in the folder `PassNet` of a folder of its own.
struct Place {
    dir: TempDir,
    written: Written,
}

/// What a command did.
struct Done {
    code: i32,
    out: String,
    err: String,
}

fn done(command: &mut Command) -> Done {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Done { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

impl Place {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let written = checkout::write(&dir.path().join("PassNet"));
        Self { dir, written }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn passnet(&self, arguments: &str) -> Done {
        let program = assert_cmd::cargo::cargo_bin("passnet");
        done(Command::new(program).current_dir(self.dir.path()).args(arguments.split(' ')))
    }

    fn json(&self, arguments: &str) -> Value {
        let done = self.passnet(&format!("{arguments} --json"));
        serde_json::from_str(&done.out).unwrap_or_else(|_| panic!("{}\n{}", done.out, done.err))
    }

    /// All that the command said, in one text.
    fn shown(&self, arguments: &str) -> String {
        let Done { code, out, err } = self.passnet(arguments);
        format!("$ passnet {arguments}\nexit code {code}\n--- stdout\n{out}--- stderr\n{err}")
    }

    /// Puts our entry script into the checkout and runs that of a sample.
    fn entry(&self, sample: &str, arguments: &[&str], environment: &[(&str, &Path)]) -> Done {
        let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/entry.sh");
        fs::copy(ours, self.at("PassNet/entry_scripts/entry.sh")).unwrap();
        let mut command = Command::new("bash");
        command.current_dir(self.at("PassNet")).arg(format!("{sample}/entry.sh")).args(arguments);
        command.env("PASSNET", assert_cmd::cargo::cargo_bin("passnet"));
        command.env("PASSNET_OUTPUT", self.at("output"));
        for (name, value) in environment {
            command.env(name, value);
        }
        done(&mut command)
    }

    fn score(&self) -> Value {
        serde_json::from_slice(&fs::read(self.at("output/aggregated_score.json")).unwrap()).unwrap()
    }
}

/// Little work, on the CPU wherever the test runs.
const QUICK: [&str; 5] = ["--engine", "native", "--quick", "--seconds", "0.01"];

#[test]
fn a_checkout_is_imported_benched_scored_and_exported() {
    let place = Place::new();
    insta::assert_snapshot!(
        "checkout_import",
        place.shown("dataset import PassNet --store s.pnds")
    );
    insta::assert_snapshot!(
        "checkout_again",
        place.shown("dataset import PassNet --store s.pnds --json")
    );
    insta::assert_snapshot!("checkout_export", place.shown("dataset export s.pnds --out back"));
    assert_eq!(tree(&place.at("back")), tree(&place.at("PassNet")));

    // What was exported is worked with as the checkout is.
    let list = "back/sample_lists/demo_fusible_samples.txt";
    let bench = format!("bench --list {list} --quick --seconds 0.01 --out run");
    let found = place.json(&bench);
    assert_eq!(found["graphs"].as_array().map(Vec::len), Some(1), "{found}");
    assert_eq!(found["graphs"][0]["graph"], DEMO_GRAPH);
    assert_eq!(found["graphs"][0]["verdict"], "correct");
    let scored = place.json("score run --scoring reference");
    assert!(scored["as"].as_f64().unwrap() > 0.0);
    let reported = place.passnet("report run --reference-files files");
    assert_eq!(reported.code, 0, "{}", reported.err);
    let id = serde_json::from_slice::<Value>(
        &fs::read(place.at("files/aggregated_score.json")).unwrap(),
    );
    assert_eq!(id.unwrap()["id"], 1);
}

#[test]
fn what_cannot_be_taken_over_is_said() {
    let place = Place::new();
    let sample = place.at("PassNet").join(DEMO_SAMPLE);
    fs::remove_file(sample.join("graphs")).unwrap();
    symlink("/etc", sample.join("graphs")).unwrap();
    fs::write(place.at("PassNet/graph_lists/hf_typical_subgraphs_v2.txt"), "abc\tx\n").unwrap();
    insta::assert_snapshot!(
        "checkout_refused",
        place.shown("dataset import PassNet --store s.pnds")
    );
    place.passnet("dataset import PassNet/graphs/hf_subgraphs_v2/typical_subgraphs --store t.pnds");
    insta::assert_snapshot!(
        "checkout_nothing",
        place.shown("dataset export t.pnds --out out --kind sole-op")
    );
    assert!(!place.at("out").exists());
}

#[test]
fn published_lists_name_samples() {
    let place = Place::new();
    let fusible = &place.written.samples["v2_fusible"];
    let solved = place.json(
        "solve --list PassNet/sample_lists/eval/hf_fusible_eval_samples_v2.csv --no-tune --no-bench --out solved",
    );
    let task = solved["tasks"][0]["task"].as_str().unwrap();
    assert!(fusible.ends_with(task), "{solved}");
    fs::write(place.at("tasks.jsonl"), format!("{{\"sample_dir\": \"PassNet/{DEMO_SAMPLE}\"}}\n"))
        .unwrap();
    let found = place.json("bench --list tasks.jsonl --compiler eager --quick --seconds 0.01");
    assert_eq!(found["graphs"][0]["graph"], DEMO_GRAPH);

    let empty = "--list PassNet/sample_lists/eval/test_empty_samples.txt";
    for command in ["bench", "solve", "agent run --model m --out o"] {
        let done = place.passnet(&format!("{command} {empty}"));
        assert_eq!(done.code, 2, "{command}");
        assert!(done.err.contains("the list names no sample"), "{command}: {}", done.err);
    }
    let graphs = "--list PassNet/sample_lists/eval/hf_typical_eval_graph_lists_v2.csv";
    insta::assert_snapshot!("checkout_graph_list", place.shown(&format!("bench {graphs}")));
    fs::write(place.at("lost.txt"), format!("PassNet/{DEMO_SAMPLE}\nsamples/lost\n")).unwrap();
    insta::assert_snapshot!(
        "checkout_lost_sample",
        place.shown("agent run --model m --out o --list lost.txt")
    );
}

#[test]
fn passes_look_at_the_graphs_of_a_samples_list() {
    let place = Place::new();
    let sample = format!("PassNet/{DEMO_SAMPLE}");
    let passes = format!("{sample}/pass_dir");
    // Its link leads to all graphs of the checkout, its list to one of them.
    let shown = place.shown(&format!("pass match {passes} --in {sample}"));
    insta::assert_snapshot!("checkout_match", shown);
    let explained = place.json(&format!("pass explain {passes} --in {sample}"));
    assert_eq!(explained["graph"], format!("{sample}/{DEMO_GRAPH}"), "{explained}");
    let applied = place.passnet(&format!("pass apply {passes} --in {sample}"));
    assert_eq!(applied.code, 0, "{}", applied.err);
    assert_eq!(applied.out.matches("class GraphModule").count(), 1, "{}", applied.out);
    fs::write(place.at("PassNet").join(DEMO_SAMPLE).join("graph_list.txt"), "graphs/lost\n")
        .unwrap();
    let lost = place.passnet(&format!("pass match {passes} --in {sample}"));
    assert!(lost.err.contains("/graphs/lost/model.py\nhint: the graph list names"), "{}", lost.err);
    assert_eq!(lost.code, 2);
}

#[test]
fn the_entry_script_of_a_checkout_can_be_ours() {
    let place = Place::new();
    let ran = place.entry(DEMO_SAMPLE, &QUICK, &[]);
    assert_eq!(ran.code, 0, "{}\n{}", ran.out, ran.err);
    // The reference's evaluator reads stdout alone, and nothing may be overlooked there.
    let warned = ran.out.find("** NO GPU: `--device cuda` was asked for").unwrap();
    assert!(warned < ran.out.find("[Processing]").unwrap());
    assert!(ran.out.contains("[Config] device: cpu\n"));
    assert!(ran.out.contains("[PassMgrBackend] Loaded 1 passes: ['FuseMulRelu']\n"), "{}", ran.out);
    assert!(ran.out.contains("[PassMgrBackend] Applied 1 replacements with FuseMulRelu.\n"));
    assert!(ran.out.contains("Has Any pass matched? [True]\n") && !ran.out.contains("[False]"));
    assert!(ran.out.contains("\naggregated_speedup="));
    assert_eq!(place.score()["id"], 1);
    assert!(place.score()["score"].as_f64().unwrap() > 0.0);

    // A sample without passes scores as the reference scores what fails, and says so.
    let ran = place.entry(&place.written.samples["v2_typical"], &QUICK, &[]);
    assert_eq!(ran.code, 0, "{}\n{}", ran.out, ran.err);
    assert!(
        ran.out.contains("Has Any pass matched? [False]\nPass testing early exits"),
        "{}",
        ran.out
    );
    assert!((place.score()["score"].as_f64().unwrap() - 0.1).abs() < 1e-9);

    let strict = [("PASSNET_REQUIRE_GPU", Path::new("1"))];
    let ran = place.entry(DEMO_SAMPLE, &QUICK, &strict);
    assert_eq!(ran.code, 3, "{}", ran.out);
    assert!(ran.out.contains("error: no GPU can be used"), "{}", ran.out);
    assert!(!place.at("output/aggregated_score.json").exists());
}

#[test]
fn the_references_command_lines_are_understood() {
    let place = Place::new();
    let graph = format!("PassNet/{DEMO_GRAPH}");
    let one = place.passnet(&format!(
        "reference test-compiler --model-path {graph} --compiler nope --device cpu --log-prompt mine --quick --seconds 0.01"
    ));
    assert_eq!(one.code, 0, "{}", one.err);
    assert!(one.out.contains(&format!("mine [Processing] {graph}")), "{}", one.out);
    assert!(
        one.out.contains("mine [Config] compiler: eager\n") && one.err.is_empty(),
        "{}",
        one.err
    );
    let tree = place.passnet(&format!(
        "reference test-compiler --model-path PassNet/{V2}/fusible_subgraphs --compiler nope --device cpu --quick --seconds 0.01"
    ));
    assert_eq!(tree.out.matches("[Processing]").count(), 2, "{}", tree.out);
    insta::assert_snapshot!("reference_config", place.shown(&format!(
        "reference test-compiler --model-path {graph} --compiler pass_mgr --device cpu --config ?"
    )));
    insta::assert_snapshot!(
        "reference_no_passes",
        place.shown(&format!(
            "reference test-compiler --model-path {graph} --compiler pass_mgr --device cpu"
        ))
    );

    let log = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/score/validation.log");
    fs::copy(log, place.at("validation.log")).unwrap();
    let aggregate = "reference aggregate --benchmark-path validation.log --sample-id 7 --disable-aggregation-mode \
                     --output-json-file-path score.json";
    insta::assert_snapshot!("reference_aggregate", place.shown(aggregate));
    let score: Value = serde_json::from_slice(&fs::read(place.at("score.json")).unwrap()).unwrap();
    assert_eq!(score["id"], 7);
    let expected = place.json("score validation.log --scoring reference");
    assert_eq!(score["score"], expected["as"]);
    let harder = place.passnet(&format!("{aggregate} --fpdb 0.001 --negative-speedup-penalty 1"));
    let expected = place.json("score validation.log --scoring reference --b 0.001 --p 1");
    assert_eq!(harder.code, 0);
    let score: Value = serde_json::from_slice(&fs::read(place.at("score.json")).unwrap()).unwrap();
    assert_eq!(score["score"], expected["as"]);
    fs::write(place.at("validation.log"), "nothing\n").unwrap();
    insta::assert_snapshot!("reference_nothing", place.shown(aggregate));
}

#[test]
#[ignore = "needs python3; tools/full-check runs it"]
fn checkers_and_weights_of_the_users_own_are_asked() {
    let place = Place::new();
    fs::write(
        place.at("checker.py"),
        "def validate_pass_source(source):\n    print('chatter')\n    return ['Line 1: too fused'] if 'fused' in source else []\n",
    )
    .unwrap();
    let checker = place.at("nothing.py").into_os_string();
    let mut paths = checker;
    paths.push(":");
    paths.push(place.at("checker.py"));
    let checked = [("PASSNET_CUSTOM_PASS_SOURCE_CHECKER_PATH", Path::new(&paths))];
    let ran = place.entry(DEMO_SAMPLE, &QUICK, &checked);
    assert_eq!(ran.code, 0, "{}\n{}", ran.out, ran.err);
    assert!(ran.out.contains(
        "Pass FuseMulRelu is refused by a custom checker and skipped: Line 1: too fused"
    ));
    assert!(
        ran.out.contains("Loaded 0 passes: []") && ran.out.contains("matched? [False]"),
        "{}",
        ran.out
    );
    // An honest pass beside it goes on alone, helpers and all.
    let passes = place.at("PassNet").join(DEMO_SAMPLE).join("pass_dir");
    fs::write(passes.join("Plain.py"), PASS.replace("fused", "joined")).unwrap();
    let manifest = "[\"FuseMulRelu\", \"Plain\"]";
    fs::write(passes.join("sorted_output_pass_rule_names.json"), manifest).unwrap();
    let ran = place.entry(DEMO_SAMPLE, &QUICK, &checked);
    assert!(
        ran.out.contains("Loaded 1 passes: ['Plain']") && ran.out.contains("matched? [True]"),
        "{}",
        ran.out
    );

    fs::write(place.at("broken.py"), "raise ValueError('on purpose')\n").unwrap();
    let broken = place.at("broken.py");
    let ran =
        place.entry(DEMO_SAMPLE, &QUICK, &[("AI4C_CUSTOM_PASS_SOURCE_CHECKER_PATH", &broken)]);
    assert_eq!(ran.code, 2);
    assert!(ran.out.contains("broken.py failed: ValueError: on purpose"), "{}", ran.out);
    let lacking = [
        ("AI4C_CUSTOM_PASS_SOURCE_CHECKER_PATH", broken.as_path()),
        ("PASSNET_PYTHON", Path::new("/nowhere")),
    ];
    assert_eq!(place.entry(DEMO_SAMPLE, &QUICK, &lacking).code, 3);

    // All weight on t = -5, where the one graph is right.
    fs::write(
        place.at("weights.py"),
        "def get_weights():\n    return {t: 1.0 if t == -5 else 0.0 for t in range(-10, 5)}\n",
    )
    .unwrap();
    let weights = place.at("weights.py");
    let ran = place.entry(DEMO_SAMPLE, &QUICK, &[("PASSNET_CUSTOM_WEIGHT_FUNC_PATH", &weights)]);
    assert_eq!(ran.code, 0, "{}\n{}", ran.out, ran.err);
    let level = ran.out.lines().find(|line| line.ends_with("for tolerance=-5.")).unwrap();
    let score = place.score()["score"].as_f64().unwrap();
    assert_eq!(level, format!("  - ESt={score:.3} for tolerance=-5."));
    fs::write(&weights, "def get_weights():\n    return {0: 1.0}\n").unwrap();
    let ran = place.entry(DEMO_SAMPLE, &QUICK, &[("PASSNET_CUSTOM_WEIGHT_FUNC_PATH", &weights)]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("weights.py: `get_weights` gave weights for t = 0"), "{}", ran.err);
}

#[test]
#[ignore = "needs python3; tools/full-check runs it"]
fn the_references_modules_become_the_program() {
    let place = Place::new();
    let harness = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python");
    for package in ["pass_bench", "graph_net_bench"] {
        let mut command = Command::new("python3");
        command.current_dir(place.dir.path()).env("PYTHONPATH", &harness);
        command.env("PASSNET", assert_cmd::cargo::cargo_bin("passnet"));
        let graph = format!("PassNet/{DEMO_GRAPH}");
        let module = format!("{package}.torch.test_compiler");
        command.args([
            "-m",
            &module,
            "--model-path",
            &graph,
            "--compiler",
            "nope",
            "--device",
            "cpu",
        ]);
        let ran = done(command.args(["--quick", "--seconds", "0.01"]));
        assert_eq!(ran.code, 0, "{}", ran.err);
        fs::write(place.at("validation.log"), &ran.out).unwrap();
        let mut command = Command::new("python3");
        command.current_dir(place.dir.path()).env("PYTHONPATH", &harness);
        command.env("PASSNET", assert_cmd::cargo::cargo_bin("passnet"));
        command.args([
            "-m",
            &format!("{package}.aggregate_es_scores"),
            "--benchmark-path",
            "validation.log",
        ]);
        let ran = done(command.args(["--sample-id", "3", "--output-json-file-path", "score.json"]));
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(ran.out.ends_with("Result is saved to score.json\n"), "{}", ran.out);
    }
}

#[test]
fn a_graph_without_metadata_is_not_called_fine() {
    let place = Place::new();
    fs::remove_file(place.at("PassNet").join(DEMO_GRAPH).join("weight_meta.py")).unwrap();
    let graph = format!("PassNet/{DEMO_GRAPH}");
    insta::assert_snapshot!("no_metadata_check", place.shown(&format!("graph check {graph}")));
    insta::assert_snapshot!(
        "no_metadata_run",
        place.shown(&format!("graph run {graph} --dry-run"))
    );
}

/// `docker run IMAGE bash …/entry.sh` gives the image a command, which an entry point would swallow.
#[test]
fn the_image_has_no_entry_point() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docker/Dockerfile");
    let text = fs::read_to_string(file).unwrap();
    let instructions: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(!instructions.iter().any(|line| line.starts_with("ENTRYPOINT")));
    assert!(instructions.contains(&"CMD [\"passnet\", \"doctor\"]"));
    assert!(instructions.contains(&"COPY bench/entry.sh /opt/passnet/entry.sh"));
}
