//! What a model reads about tasks with few and with hundreds of variants.

mod support;

use passnet_agent::chat::ToolCall;
use passnet_agent::episode::Episode;
use passnet_agent::prompt::{CallStyle, Prompts, Target};
use passnet_agent::task::Task;
use passnet_bench::roofline::Rates;
use passnet_engine::Identity;
use passnet_engine::identity::DeviceIdentity;
use passnet_engine::native::NativeEngine;
use serde_json::{Value, json};
use std::sync::Arc;
use support::tasks::{MANIFEST, PASS, bundled, write_task};

fn episode_with(graphs: usize, pass: &str) -> (tempfile::TempDir, Episode) {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<(String, String)> =
        (0..graphs).map(|n| (format!("g{n}"), format!("[{}, {}]", n % 7 + 1, n + 3))).collect();
    let names: Vec<(&str, &str)> = names.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    write_task(&folder.path().join("task"), &names);
    let task = Arc::new(Task::read(&folder.path().join("task")).unwrap());
    let mut episode = Episode::new(task, support::evaluator());
    perform(&mut episode, "create", json!({ "path": MANIFEST, "file_text": "[\"fuse\"]" }));
    perform(&mut episode, "create", json!({ "path": "fuse.py", "file_text": pass }));
    (folder, episode)
}

fn perform(episode: &mut Episode, name: &str, arguments: Value) -> String {
    let call = ToolCall { id: String::new(), name: name.into(), arguments: arguments.to_string() };
    episode.perform(&call).unwrap().content
}

#[test]
fn hundreds_of_variants_are_summarised() {
    let (_folder, mut episode) = episode_with(300, PASS);
    let text = perform(&mut episode, "match", json!({}));
    assert!(text.starts_with("300 graphs: 300 matched\n"), "{text}");
    assert!(text.lines().count() < 6, "{text}");
    let (_folder, mut episode) =
        episode_with(300, &PASS.replace("relu(x * y, inplace=False)", "gelu(x * y)"));
    let text = perform(&mut episode, "match", json!({}));
    assert!(text.contains("300 graphs no_match (graphs 0, 1, 2, …)"), "{text}");
    assert!(text.contains("the graph has no `gelu`") || text.contains("gelu"), "{text}");
    assert!(text.lines().count() < 10 && text.len() < 2000, "{text}");
}

#[test]
fn many_evaluated_variants_show_the_slowest_and_one_failure_of_each_kind() {
    // Wrong where a row has more than 20 elements: the mask ends too early.
    let wrong = PASS.replace("inside = place < n", "inside = place < tl.minimum(n, 40)");
    let (_folder, mut episode) = episode_with(24, &wrong);
    let text = perform(&mut episode, "evaluate", json!({}));
    assert!(text.starts_with("score (AS) "), "{text}");
    assert!(text.contains("24 graphs: "), "{text}");
    assert!(text.contains("try: ") && text.len() < 4100, "{text}");
    assert!(text.lines().count() < 24, "{text}");
    let again = perform(&mut episode, "evaluate", json!({}));
    assert!(again.contains("not better than the best"), "{again}");
}

#[test]
fn answers_name_the_place_and_the_next_thing_to_do() {
    for (pass, question, parts) in [
        (
            PASS.replace("def pattern(", "def pattern(("),
            "match",
            vec!["compile_fail", "pass_dir/fuse.py:6"],
        ),
        (
            PASS.replace("x * y, inplace", "x + y, inplace"),
            "match",
            vec!["no_match", "try: ", "`mul`"],
        ),
        (
            PASS.replace("mask=inside)\n    product", "mask=place >= 0)\n    product"),
            "check",
            vec!["runtime_fail", "pass_dir/fuse.py:"],
        ),
        (
            PASS.replace("x * y\n    tl.store", "x * y + 1.0\n    tl.store"),
            "check",
            vec!["accuracy", "first at [0, 0]", "try: "],
        ),
        (
            PASS.replace(
                "    out = torch.empty_like(x)\n",
                "    return torch.relu(x * y)\n    out = torch.empty_like(x)\n",
            ),
            "check",
            vec!["try: ", "pass_dir/fuse.py"],
        ),
        (PASS.to_string(), "check", vec!["2 correct", "`evaluate` times it"]),
        (PASS.to_string(), "evaluate", vec!["x eager", "hardware floor", "first evaluation"]),
    ] {
        let (_folder, mut episode) = episode_with(2, &pass);
        let text = perform(&mut episode, question, json!({}));
        for part in parts {
            assert!(
                text.contains(part),
                "`{part}` is missing in the answer to {question}:\n{text}\n{pass}"
            );
        }
        assert!(!text.contains("/tmp"), "{text}");
    }
    let (_folder, mut episode) = episode_with(2, PASS);
    perform(&mut episode, "undo", json!({ "path": MANIFEST }));
    let text = perform(&mut episode, "check", json!({}));
    assert!(text.contains("sorted_output_pass_rule_names.json"), "{text}");
}

#[test]
fn the_example_of_the_prompt_is_a_good_pass() {
    let (_folder, mut episode) = episode_with(2, include_str!("../prompts/example.py"));
    let text = perform(&mut episode, "check", json!({}));
    assert!(text.contains("2 graphs: 2 correct"), "{text}");
}

/// The first messages about a task, as a person reads them.
fn prompt(target: &Target) -> String {
    let task = Task::read(&bundled("geglu_tanh")).unwrap();
    let limits = passnet_agent::budget::Limits::default();
    let messages = Prompts::built_in().messages(&task, &limits, CallStyle::Text, target);
    serde_json::to_string_pretty(&messages).unwrap().replace("\\n", "\n").replace("\\\"", "\"")
}

#[test]
fn the_prompt_tells_the_task_and_nothing_twice() {
    insta::assert_snapshot!("prompt", prompt(&Target::of(&NativeEngine)));
}

#[test]
fn the_prompt_describes_the_gpu_that_evaluations_run_on() {
    let gpu = Target {
        identity: Identity {
            engine: "torch".into(),
            device: DeviceIdentity {
                kind: "cuda".into(),
                name: "NVIDIA H200".into(),
                driver: Some("570.1".into()),
                capability: Some([9, 0]),
            },
            torch: Some("2.11.0".into()),
            triton: Some("3.6.0".into()),
            ..Identity::default()
        },
        rates: Rates {
            bytes_per_second: Some(4.123e12),
            least_seconds: Some(2.08e-6),
            flops_per_second: vec![("float32".into(), 5.12e13), ("bfloat16".into(), 7.41e14)],
        },
    };
    insta::assert_snapshot!("target_gpu", gpu.describe());
    let (on_gpu, on_cpu) = (prompt(&gpu), prompt(&Target::of(&NativeEngine)));
    assert!(!on_gpu.contains("runs on a CPU") && !on_cpu.contains("GPU"), "{on_gpu}");
    let unmeasured = Target { rates: Rates::default(), ..gpu }.describe();
    assert!(!unmeasured.contains("Measured") && unmeasured.contains("What pays"), "{unmeasured}");
}
