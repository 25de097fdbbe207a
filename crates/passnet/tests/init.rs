//! `passnet init` as a person with a graph meets it, and what follows: bench and solve on what it made.

use assert_cmd::Command;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/graphs").join(name)
}

fn passnet(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::cargo_bin("passnet").unwrap();
    let output = command.current_dir(folder).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Little timing: no test may depend on it.
const QUICK: [&str; 6] = ["--warmup", "1", "--trials", "10", "--seconds", "0"];

#[test]
fn a_task_of_graphs_is_matched_and_correct_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let all = example("").display().to_string();
    let (code, out, err) = passnet(folder.path(), &["init", "mine", "--from", &all]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("3 of 3 graphs are matched and correct"), "{out}");
    assert!(out.contains("next: edit mine/pass_dir, then `passnet bench mine`"), "{out}");
    let list = std::fs::read_to_string(folder.path().join("mine/graph_list.txt")).unwrap();
    assert_eq!(list.lines().count(), 3);
    let (code, out, err) =
        passnet(folder.path(), &[&["bench", "mine", "--json"][..], &QUICK].concat());
    let result: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
    assert_eq!(code, 0, "{err}");
    for graph in result["graphs"].as_array().unwrap() {
        assert_eq!(graph["verdict"], "correct", "{graph}");
    }
}

#[test]
fn what_has_no_kernel_form_gets_an_honest_skeleton() {
    let folder = tempfile::tempdir().unwrap();
    let graph = folder.path().join("product");
    std::fs::create_dir(&graph).unwrap();
    let model = "import torch\n\nclass GraphModule(torch.nn.Module):\n\n    def forward(self, in_0, in_1):\n        \
                 tmp_0 = torch.matmul(in_0, in_1)\n        return (tmp_0,)\n";
    std::fs::write(graph.join("model.py"), model).unwrap();
    let meta = |name: &str, shape: &str| {
        format!(
            "class Program_weight_tensor_meta_{name}:\n    name = \"{name}\"\n    shape = {shape}\n    \
             dtype = \"torch.float32\"\n    device = \"cpu\"\n    mean = 0.0\n    std = 1.0\n    data = None\n\n"
        )
    };
    let metas = meta("in_0", "[17, 32]") + &meta("in_1", "[32, 48]");
    std::fs::write(graph.join("weight_meta.py"), metas).unwrap();
    let (code, out, err) = passnet(folder.path(), &["init", "product", "--json"]);
    let result: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
    assert_eq!(code, 1, "it is not right yet");
    assert!(result["to_write"].is_string(), "{result}");
    // It compiles, matches and runs: only the numbers are missing.
    assert_eq!(result["verdicts"][0]["verdict"], "accuracy", "{result}");
    let pass = std::fs::read_to_string(graph.join("pass_dir/matmul.py")).unwrap();
    for part in ["To be written", "mask=inside", "# Write here", "torch.matmul(in_0, in_1)"] {
        assert!(pass.contains(part), "{part} is missing in\n{pass}");
    }
}

#[test]
fn a_bare_graph_is_a_task_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let graph = folder.path().join("softmax");
    std::fs::create_dir(&graph).unwrap();
    for item in std::fs::read_dir(example("masked_softmax")).unwrap() {
        let path = item.unwrap().path();
        std::fs::copy(&path, graph.join(path.file_name().unwrap())).unwrap();
    }
    let arguments = ["solve", "softmax", "--no-tune", "--quick", "--seconds", "0", "--json"];
    let (code, out, err) = passnet(folder.path(), &arguments);
    assert_eq!(code, 0, "{out}{err}");
    assert!(graph.join("pass_dir/sorted_output_pass_rule_names.json").is_file());
    let (code, out, err) =
        passnet(folder.path(), &[&["bench", "softmax", "--json"][..], &QUICK].concat());
    let result: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
    assert_eq!((code, &result["graphs"][0]["verdict"]), (0, &"correct".into()), "{result}");
    assert_eq!(result["graphs"][0]["sample"], "softmax");
}

#[test]
fn nothing_is_overwritten_unasked() {
    let folder = tempfile::tempdir().unwrap();
    let graph = example("rms_norm_gate").display().to_string();
    assert_eq!(passnet(folder.path(), &["init", "mine", "--from", &graph]).0, 0);
    let pass = folder.path().join("mine/pass_dir/sorted_output_pass_rule_names.json");
    std::fs::write(&pass, "[\"edited\"]").unwrap();
    for (arguments, message) in [
        (&["init", "mine"][..], "there are passes already"),
        (&["init", "mine", "--from", &graph], "this is a task already"),
        (&["init", "nowhere"], "`--from PATH` names the graphs"),
        (&["init", "other", "--from", "nowhere"], "nowhere"),
    ] {
        let (code, out, err) = passnet(folder.path(), arguments);
        assert_eq!(code, 2, "{arguments:?}: {out}");
        assert!(err.contains(message), "{arguments:?}: {err}");
    }
    assert_eq!(std::fs::read_to_string(&pass).unwrap(), "[\"edited\"]");
    assert_eq!(passnet(folder.path(), &["init", "mine", "--force"]).0, 0);
    assert_ne!(std::fs::read_to_string(&pass).unwrap(), "[\"edited\"]");
}
