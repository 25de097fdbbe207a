//! `passnet kernel` on the demonstration passes, as people and machines call it.

use assert_cmd::Command;
use serde_json::Value;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn kernel(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::cargo_bin("passnet")
        .unwrap()
        .current_dir(ROOT)
        .arg("kernel")
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn lines(arguments: &[&str]) -> Vec<Value> {
    let (code, out, err) = kernel(&[arguments, &["--json"]].concat());
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn plans_are_made_for_the_shapes_of_the_graph() {
    let graphs = "bench/tasks/masked_softmax/graphs";
    let plans = lines(&["plan", "bench/passes/masked_softmax", "--graph", graphs]);
    assert!(plans.len() >= 2, "{plans:?}");
    for plan in &plans {
        assert_eq!(plan["pass"], "masked_softmax");
        let folder = plan["graph"].as_str().unwrap();
        let name = folder.rsplit('/').next().unwrap();
        // The folder is named after the dtype and the shape of the scores.
        let (dtype, shape) = name.split_once('_').unwrap();
        assert!(plan["plan"]["buffers"][0]["dtype"].to_string().contains(dtype), "{plan}");
        let elements: u64 = shape.split('x').map(|d| d.parse::<u64>().unwrap()).product();
        assert_eq!(plan["plan"]["buffers"][0]["elements"], elements);
        assert_eq!(plan["plan"]["steps"][0]["launch"]["kernel"], "masked_softmax_kernel");
    }
}

#[test]
fn passes_are_checked_where_they_match() {
    let graphs = "bench/tasks/add_layer_norm/graphs";
    for found in lines(&["check", "bench/passes/add_layer_norm", "--graph", graphs]) {
        let errors = found["findings"].as_array().unwrap().iter();
        let errors: Vec<_> = errors.filter(|f| f["severity"] == "error").collect();
        assert!(errors.is_empty(), "{errors:?}");
        assert!(found["bounds_proved"].is_boolean() && found["parallel"].is_array());
    }
}

#[test]
fn a_pass_that_matches_nowhere_says_why() {
    let graphs = "bench/tasks/masked_softmax/graphs";
    let (code, out, err) = kernel(&["plan", "bench/passes/add_layer_norm", "--graph", graphs]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("does not match"), "{err}");
}

#[test]
fn a_file_describes_its_own_inputs() {
    let file = "crates/passnet-kernel/tests/kernels/layer_norm.py";
    let run = &lines(&["run", file, "--repeat", "1"])[0];
    assert_eq!(run["outputs"][0]["shape"], serde_json::json!([7, 300]));
    assert!(run["first_result_seconds"].as_f64().unwrap() > 0.0);
    let (code, out, _) = kernel(&["plan", file, "--ir"]);
    assert_eq!(code, 0);
    assert!(out.contains("launch kernel[7, 1, 1]") && out.contains("reduce"), "{out}");
}

#[test]
fn checks_miss_nothing_and_invent_nothing() {
    let mut files = vec!["check".to_string(), "--self-check".to_string()];
    let folder = format!("{ROOT}/crates/passnet-kernel/tests/checks");
    let found = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    files.extend(found.map(|path| path.display().to_string()));
    let arguments: Vec<&str> = files.iter().map(String::as_str).collect();
    let (code, out, err) = kernel(&arguments);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("0 false negatives, 0 false positives"), "{out}");
}

/// A pass that insists on a GPU is planned as `passnet bench` would plan it, and refused where a CPU is asked for.
#[test]
fn arguments_are_where_the_device_option_says() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(format!("{ROOT}/bench/passes/swiglu/swiglu.py")).unwrap();
    let guard = "    assert gate_up.is_cuda\n    gate_up = gate_up.contiguous()\n";
    let text = text.replace("    gate_up = gate_up.contiguous()\n", guard);
    assert!(text.contains("is_cuda"));
    std::fs::write(folder.path().join("swiglu.py"), text).unwrap();
    std::fs::write(folder.path().join("sorted_output_pass_rule_names.json"), "[\"swiglu\"]")
        .unwrap();
    let pass = folder.path().display().to_string();
    let graph = "bench/tasks/swiglu/graphs/float16_2x96x4096";
    for command in ["plan", "check"] {
        let (code, out, err) = kernel(&[command, &pass, "--graph", graph]);
        assert_eq!(code, 0, "{out}{err}");
        let (code, out, err) = kernel(&[command, &pass, "--graph", graph, "--device", "cpu"]);
        assert_ne!(code, 0, "{out}");
        assert!(err.contains("assert"), "{err}");
        let (code, _, err) = kernel(&[command, &format!("{pass}/swiglu.py"), "--device", "cpu"]);
        assert_ne!(code, 0, "the inputs of a file's comments, too: {err}");
    }
}
