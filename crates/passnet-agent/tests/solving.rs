//! A scripted model solves bundled tasks in several steps with wrong turns; what is left behind is looked at whole.

mod support;

use passnet_agent::export::{
    ChatFilter, PairFilter, chat_lines, completions, preference_pairs, trajectories,
};
use passnet_agent::metrics::Metrics;
use passnet_agent::model::Protocol;
use passnet_agent::run::{AttemptRecord, RunFolder, read_attempts};
use passnet_agent::task::Task;
use passnet_agent::trajectory::Event;
use passnet_bench::report::RunRecord;
use passnet_bench::score::Parameters;
use passnet_bench::verdict::VerdictKind;
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use support::provider::{Asked, Provider, Shape};
use support::wrong_turns::{self, TASKS};
use support::{agent, run_in, tasks};

fn solve(
    run: &Path,
    script: impl Fn(&Asked<'_>) -> Shape + Send + Sync + 'static,
    attempts: u32,
) -> Vec<AttemptRecord> {
    let provider = Provider::start(script);
    let tasks: Vec<Arc<Task>> = TASKS
        .iter()
        .map(|(name, ..)| Arc::new(Task::read(&tasks::bundled(name)).unwrap()))
        .collect();
    run_in(run, &agent(&provider.openai(), Protocol::OpenAi), &tasks, attempts, 2);
    read_attempts(run).unwrap()
}

/// A text without what depends on the machine: decimals, and advice that depends on them.
fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines().filter(|line| !line.starts_with("try: ")) {
        // On which extreme values it showed depends on the run's secret.
        if line.starts_with("  with ") {
            continue;
        }
        if line.starts_with("  output ") {
            // How many elements are wrong depends on how the machine rounds.
            out.push_str("  output …\n");
            continue;
        }
        let words: Vec<String> = line
            .split(' ')
            .map(|word| {
                let is_decimal = word.contains('.')
                    && word.chars().any(|c| c.is_ascii_digit())
                    && !word.contains(".py");
                if is_decimal { "#".to_string() } else { word.to_string() }
            })
            .collect();
        let _ = writeln!(out, "{}", words.join(" ").trim_end());
    }
    out
}

/// A trajectory as a person would retell it.
fn retold(record: &AttemptRecord) -> String {
    let mut out = String::new();
    for event in &record.events {
        let _ = match event {
            Event::Start(start) => writeln!(
                out,
                "START {} attempt {}, {} graphs",
                start.task, start.attempt, start.graphs
            ),
            Event::Message { .. } => writeln!(out, "MESSAGE"),
            Event::Reply(reply) => {
                let calls: Vec<&str> =
                    reply.calls().iter().map(|call| call.name.as_str()).collect();
                writeln!(out, "STEP {}: {}", reply.step, calls.join(", "))
            }
            Event::Result(result) => {
                let mark = if result.is_error { "ERROR" } else { "RESULT" };
                write!(out, "{mark} {}\n{}", result.tool, without_numbers(&result.content))
            }
            Event::Best(best) => writeln!(out, "BEST {:?}", best.files.keys().collect::<Vec<_>>()),
            Event::End(end) => writeln!(out, "END {} after {} steps", end.reason, end.spent.steps),
        };
    }
    out
}

/// The shape of a JSON value: keys and types, first elements of lists.
fn shape(value: &Value, depth: usize) -> String {
    let pad = "  ".repeat(depth);
    match value {
        Value::Object(map) => {
            let inner: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{pad}  {key}: {}", shape(value, depth + 1)))
                .collect();
            format!("{{\n{}\n{pad}}}", inner.join("\n"))
        }
        Value::Array(items) => match items.first() {
            Some(first) => format!("[{}] x {}", shape(first, depth), items.len()),
            None => "[]".into(),
        },
        Value::String(_) => "string".into(),
        Value::Number(_) => "number".into(),
        Value::Bool(_) => "bool".into(),
        Value::Null => "null".into(),
    }
}

#[test]
fn wrong_turns_lead_to_a_good_pass() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let attempts = solve(&run, wrong_turns::reply, 1);
    assert_eq!(attempts.len(), 2);
    for record in &attempts {
        // Wrong numbers, slow, good: three evaluations, each better than the one before.
        let scores: Vec<f64> = record.evaluations.iter().map(|found| found.score).collect();
        assert_eq!(scores.len(), 3, "{}", retold(record));
        assert!(scores[0] < scores[1] && scores[1] < scores[2], "{scores:?}");
        assert_eq!(
            record.evaluations[0].failures.keys().collect::<Vec<_>>(),
            [&VerdictKind::Accuracy]
        );
        assert!(record.is_correct() && record.best.as_ref().unwrap().step == 5);
        let best = RunFolder::reader(&run).attempt(&record.start.task, 0).join("best");
        let kept = std::fs::read_to_string(best.join("fuse.py")).unwrap();
        assert_eq!(
            kept,
            tasks::bundled_pass(&record.start.task),
            "the best version is the good pass"
        );
    }
    insta::assert_snapshot!("trajectory", retold(&attempts[0]));

    let lines = chat_lines(
        &attempts,
        &ChatFilter { success: true, deduplicate: true, ..ChatFilter::default() },
    );
    insta::assert_snapshot!("chat_line", shape(&lines[0], 0));
    insta::assert_snapshot!("reference_trajectory", shape(&trajectories(&attempts, "exp")[0], 0));
    insta::assert_snapshot!("reference_completion", shape(&completions(&attempts)[0], 0));
    let patch = trajectories(&attempts, "exp")[0]["output_patch"].as_str().unwrap().to_string();
    assert!(
        patch.starts_with(&format!("{0} pass_dir/fuse.py {0}\n# wrapper", "-".repeat(20))),
        "{patch}"
    );
    assert!(patch.contains("pass_dir/score.txt"));

    let record = RunRecord::read(&RunFolder::reader(&run).best_run()).unwrap();
    assert_eq!(record.graphs.len(), 8);
    assert!(record.graphs.iter().all(|graph| graph.is_right()));
    let texts =
        record.graphs[0].artefact("fuse.py").and_then(|digest| record.text(digest, 1 << 20));
    assert!(texts.is_some_and(|text| text.contains("def pattern")));

    let metrics = Metrics::of(&attempts, Parameters::default()).unwrap();
    assert_eq!((metrics.tasks, metrics.pass_at[0].value, metrics.steps), (2, 1.0, 12));
    assert_eq!(metrics.over_steps.len(), 6);
    assert!(metrics.over_steps.windows(2).all(|pair| pair[0].value <= pair[1].value));
    assert!(metrics.failures.is_empty() && metrics.ends["submitted"] == 2);
    assert!((metrics.cost.unwrap() - 12.0 * 560e-6).abs() < 1e-9);
}

#[test]
fn a_pass_that_matches_nowhere_fails_by_that() {
    let folder = tempfile::tempdir().unwrap();
    let pass = tasks::bundled_pass("rotary_half");
    let create = |name: &str, text: &str| {
        let arguments =
            serde_json::json!({ "path": format!("pass_dir/{name}"), "file_text": text });
        ("create".to_string(), arguments.to_string())
    };
    let list = create("sorted_output_pass_rule_names.json", "[\"fuse\"]");
    let calls = vec![list, create("fuse.py", &pass), ("evaluate".into(), "{}".into())];
    let submit = vec![("submit".into(), "{}".into())];
    let provider = Provider::start(move |asked: &Asked<'_>| {
        Shape::Calls(if asked.replies == 0 { calls.clone() } else { submit.clone() })
    });
    let tasks = [Arc::new(Task::read(&tasks::bundled("geglu_tanh")).unwrap())];
    run_in(folder.path(), &agent(&provider.openai(), Protocol::OpenAi), &tasks, 1, 1);
    let attempts = read_attempts(folder.path()).unwrap();
    assert!(attempts[0].best.is_none(), "{}", retold(&attempts[0]));
    let metrics = Metrics::of(&attempts, Parameters::default()).unwrap();
    assert_eq!(metrics.failures.keys().collect::<Vec<_>>(), ["no_match"]);
}

#[test]
fn filters_keep_what_they_should() {
    let folder = tempfile::tempdir().unwrap();
    // Every second conversation gives up after the inaccurate version.
    let count = std::sync::Mutex::new(std::collections::BTreeMap::<String, usize>::new());
    let attempts = {
        let script = move |asked: &Asked<'_>| {
            let mut count = count.lock().unwrap();
            let task = asked.prompt.split(':').next().unwrap().to_string();
            let seen = count.entry(task).or_insert(0);
            *seen += usize::from(asked.replies == 0);
            match *seen > 1 && asked.replies >= 3 {
                true => Shape::Calls(vec![("submit".into(), "{}".into())]),
                false => wrong_turns::reply(asked),
            }
        };
        let provider = Provider::start(script);
        let tasks = [Arc::new(Task::read(&tasks::bundled("geglu_tanh")).unwrap())];
        // One after the other, so that the second one is the second one.
        run_in(folder.path(), &agent(&provider.openai(), Protocol::OpenAi), &tasks, 3, 1);
        read_attempts(folder.path()).unwrap()
    };
    let lines = |filter: ChatFilter| chat_lines(&attempts, &filter).len();
    assert_eq!(lines(ChatFilter::default()), 3);
    assert_eq!(lines(ChatFilter { success: true, ..ChatFilter::default() }), 1);
    // What the good version scores depends on the machine; the others score less.
    let scores = attempts.iter().flat_map(|attempt| &attempt.evaluations).map(|found| found.score);
    let most = scores.fold(0.0, f64::max);
    assert_eq!(lines(ChatFilter { min_score: Some(most), ..ChatFilter::default() }), 1);
    assert_eq!(lines(ChatFilter { deduplicate: true, ..ChatFilter::default() }), 2);
    assert_eq!(lines(ChatFilter { max_chars: Some(10), ..ChatFilter::default() }), 0);
    let whole = chat_lines(&attempts, &ChatFilter { success: true, ..ChatFilter::default() });
    let cut = chat_lines(
        &attempts,
        &ChatFilter { success: true, until_best: true, ..ChatFilter::default() },
    );
    let messages = |line: &Value| line["messages"].as_array().unwrap().len();
    // `submit` and its answer are left out; so is the good version where the clock took the slow one for better.
    let left_out = messages(&whole[0]) - messages(&cut[0]);
    assert!([2, 5].contains(&left_out), "{left_out} messages are left out");

    let pairs = preference_pairs(&attempts, PairFilter::default());
    assert_eq!(pairs.len(), 2, "the good one against each of the others");
    assert!(pairs[0]["chosen_score"].as_f64() > pairs[0]["rejected_score"].as_f64());
    assert_eq!(pairs[0]["prompt"].as_array().unwrap().len(), 2);
    assert_eq!(pairs[0]["chosen"][0]["role"], "assistant");
    let metrics = Metrics::of(&attempts, Parameters::default()).unwrap();
    assert!(
        (metrics.pass_at[0].value - 1.0 / 3.0).abs() < 1e-12 && metrics.pass_at[2].value == 1.0
    );
    assert_eq!(metrics.failures["accuracy"], 2);
}
