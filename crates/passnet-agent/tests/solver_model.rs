//! The solver as a model: its attempts are records like any other's, and its mistakes are real ones.

mod support;

use passnet_agent::agent::Agent;
use passnet_agent::evaluator::{Evaluator, Files, Question};
use passnet_agent::model::SolverModel;
use passnet_agent::model::solver::Mistake;
use passnet_agent::prompt::CallStyle;
use passnet_agent::run::{AttemptRecord, read_attempts};
use passnet_agent::task::Task;
use passnet_agent::trajectory::{Event, Source};
use std::path::Path;
use std::sync::Arc;
use support::tasks::{bundled, small_task, write_task};
use support::{evaluator, run_in};

fn solver(evaluator: Arc<Evaluator>, with_mistakes: bool) -> Agent {
    let mut agent = support::agent("http://127.0.0.1:1", passnet_agent::model::Protocol::OpenAi);
    agent.info.name = "solver".into();
    agent.info.source = if with_mistakes { Source::SolverWithMistakes } else { Source::Solver };
    agent.model = Box::new(SolverModel::new(evaluator.clone(), with_mistakes));
    agent.evaluator = evaluator;
    agent
}

/// Assessments of an attempt, in order.
fn assessments(attempt: &AttemptRecord) -> Vec<&passnet_agent::evaluator::Assessment> {
    let found = attempt.events.iter().filter_map(|event| match event {
        Event::Result(result) => result.assessment.as_ref(),
        _ => None,
    });
    found.collect()
}

#[test]
fn the_solver_solves_in_both_ways_of_calling_tools() {
    let place = tempfile::tempdir().unwrap();
    let task = small_task(place.path(), "relu");
    for calls in [CallStyle::Native, CallStyle::Text] {
        let mut agent = solver(evaluator(), false);
        agent.calls = calls;
        let out = place.path().join(format!("{calls:?}"));
        run_in(&out, &agent, std::slice::from_ref(&task), 1, 1);
        let attempts = read_attempts(&out).unwrap();
        let [attempt] = &attempts[..] else { panic!("{}", attempts.len()) };
        assert!(attempt.is_finished() && attempt.is_correct(), "{:?}", attempt.end);
        assert_eq!(attempt.steps(), 2, "written and evaluated, then submitted");
        assert_eq!(attempt.start.model.source, Source::Solver);
    }
}

#[test]
fn what_the_solver_cannot_do_is_submitted_without_a_score() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("product");
    write_task(&folder, &[("one", "[4, 4]")]);
    let model = "import torch\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, x, y):\n        \
                 tmp_0 = torch.matmul(x, y)\n        return (tmp_0,)\n";
    std::fs::write(folder.join("graphs/one/model.py"), model).unwrap();
    let task = Arc::new(Task::read(&folder).unwrap());
    let agent = solver(evaluator(), true);
    let out = place.path().join("run");
    run_in(&out, &agent, &[task], 1, 1);
    let attempts = read_attempts(&out).unwrap();
    assert!(attempts[0].is_finished() && attempts[0].best_score().is_none());
    assert_eq!(attempts[0].steps(), 1);
}

#[test]
fn a_short_reply_holds_fewer_passes_and_is_right_too() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("two_chains");
    write_task(&folder, &[("one", "[4, 4]")]);
    let model = "import torch\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, x, y):\n        \
                 tmp_0 = x * y\n        tmp_1 = torch.relu(tmp_0)\n        tmp_2 = torch.matmul(tmp_1, y)\n        \
                 tmp_3 = tmp_2 + x\n        tmp_4 = torch.sigmoid(tmp_3)\n        tmp_5 = tmp_4 * 2.0\n        \
                 return (tmp_5,)\n";
    std::fs::write(folder.join("graphs/one/model.py"), model).unwrap();
    let task = Arc::new(Task::read(&folder).unwrap());
    let passes = |most_output: Option<u64>, most_operations: Option<usize>| -> Vec<String> {
        let evaluator = evaluator();
        let mut agent = solver(evaluator.clone(), false);
        let model = SolverModel::new(evaluator, false).within(most_output, most_operations);
        agent.model = Box::new(model);
        let out = place.path().join(format!("run-{most_output:?}-{most_operations:?}"));
        run_in(&out, &agent, std::slice::from_ref(&task), 1, 1);
        let attempts = read_attempts(&out).unwrap();
        assert!(attempts[0].is_correct(), "{:?}", attempts[0].end);
        let list = out.join("attempts/two_chains/0/best/sorted_output_pass_rule_names.json");
        serde_json::from_slice(&std::fs::read(list).unwrap()).unwrap()
    };
    assert_eq!(passes(None, None), ["add_sigmoid_mul", "mul_relu"]);
    assert_eq!(passes(Some(300), None), ["add_sigmoid_mul"], "the larger one is told");
    assert_eq!(passes(Some(1), None), ["mul_relu"], "the shortest one where nothing fits");
    assert_eq!(passes(None, Some(2)), ["fused", "fused_2", "fused_3"], "two operations each");
    assert_eq!(passes(Some(1), Some(2)), ["fused"], "one of them");
}

#[test]
fn mistakes_are_told_by_the_environment_and_repaired() {
    let place = tempfile::tempdir().unwrap();
    let task = small_task(place.path(), "relu");
    let agent = solver(evaluator(), true);
    let out = place.path().join("run");
    run_in(&out, &agent, &[task], 6, 2);
    let attempts = read_attempts(&out).unwrap();
    assert_eq!(attempts.len(), 6);
    let mut first_answers = Vec::new();
    for attempt in &attempts {
        assert!(attempt.is_finished() && attempt.is_correct(), "{:?}", attempt.end);
        let found = assessments(attempt);
        assert!(found.last().unwrap().is_all_correct());
        if found.len() > 1 {
            first_answers.push(found[0].clone());
        }
    }
    assert!(
        (1..=3).contains(&first_answers.len()),
        "{} attempts begin with a mistake",
        first_answers.len()
    );
    for answer in &first_answers {
        let is_named = Mistake::ALL
            .iter()
            .any(|mistake| mistake.question() == answer.question && mistake.shows_in(answer));
        assert!(is_named, "{answer:?}");
    }
}

/// The passes of a solver's sample.
fn sample_passes(name: &str) -> Files {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/solver-samples").join(name);
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| {
            let text = std::fs::read_to_string(entry.path()).unwrap();
            (entry.file_name().to_string_lossy().into_owned(), text)
        })
        .collect()
}

#[test]
fn each_mistake_gives_the_feedback_it_is_named_for() {
    let evaluator = evaluator();
    let tasks: Vec<(Arc<Task>, Files)> = ["masked_softmax", "add_layer_norm"]
        .map(|name| (Arc::new(Task::read(&bundled(name)).unwrap()), sample_passes(name)))
        .into();
    for mistake in Mistake::ALL {
        // How fast a version is, a test cannot ask; that it is still right, it can.
        let question = match mistake {
            Mistake::Slow => Question::Check,
            other => other.question(),
        };
        let shows = |task: &Arc<Task>, files: &Files| {
            mistake.shows_in(&evaluator.ask(task, files, question).unwrap().answer.assessment)
        };
        let is_shown = tasks.iter().any(|(task, right)| {
            mistake.versions(right, 0).iter().take(6).any(|version| {
                assert_ne!(version, right);
                shows(task, version)
            })
        });
        assert!(is_shown, "{mistake:?} never shows");
        let (task, right) = &tasks[0];
        assert_eq!(shows(task, right), mistake == Mistake::Slow, "{mistake:?} in the right one");
    }
}

#[test]
fn an_attempt_of_the_solver_stopped_anywhere_goes_on() {
    let place = tempfile::tempdir().unwrap();
    let task = small_task(place.path(), "relu");
    let agent = solver(evaluator(), true);
    let out = place.path().join("whole");
    run_in(&out, &agent, std::slice::from_ref(&task), 1, 1);
    let path = out.join("attempts").join(&task.id).join("0/trajectory.jsonl");
    let whole = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    for kept in 1..lines.len() {
        std::fs::write(&path, lines[..kept].join("\n") + "\n").unwrap();
        // Another process would know nothing of the first one's choices.
        let agent = solver(agent.evaluator.clone(), true);
        run_in(&out, &agent, std::slice::from_ref(&task), 1, 1);
        let attempts = read_attempts(&out).unwrap();
        assert!(attempts[0].is_finished() && attempts[0].is_correct(), "after {kept} lines");
    }
}
