//! An attempt stopped anywhere goes on as if nothing had happened.

mod support;

use passnet_agent::budget::EndReason;
use passnet_agent::model::Protocol;
use passnet_agent::run::{AttemptRecord, read_attempts};
use passnet_agent::trajectory::Event;
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use support::provider::{Asked, Provider, Shape, call, create};
use support::tasks::{MANIFEST, PASS, small_task};
use support::{agent, run_in};

/// Edits, an undo, two evaluations with different scores, `submit`.
fn script(asked: &Asked<'_>) -> Shape {
    let wrong = PASS.replace("x * y\n    tl.store", "x + y\n    tl.store");
    let replace = |old: &str, new: &str| {
        call("str_replace", json!({ "path": "fuse.py", "old_str": old, "new_str": new }))
    };
    Shape::Calls(match asked.replies {
        0 => vec![
            create(MANIFEST, "[\"fuse\"]"),
            create("fuse.py", &wrong),
            call("evaluate", json!({})),
        ],
        1 => vec![
            replace("x + y", "x - y"),
            call("undo", json!({ "path": "fuse.py" })),
            replace("x + y", "x * y"),
        ],
        2 => vec![call("match", json!({})), call("check", json!({}))],
        3 => vec![call("evaluate", json!({})), call("view", json!({ "path": "fuse.py" }))],
        _ => vec![call("submit", json!({}))],
    })
}

/// What happened, without times.
fn outline(record: &AttemptRecord) -> Vec<String> {
    let of = |event: &Event| match event {
        Event::Start(start) => Some(format!("start {}", start.task)),
        Event::Message { message } => Some(format!("{message:?}")),
        Event::Reply(reply) => {
            Some(format!("{} {:?} {:?}", reply.step, reply.message, reply.usage))
        }
        Event::Result(result) => {
            let verdicts = result.assessment.as_ref().map(|found| {
                found.graphs.iter().map(|graph| graph.verdict.kind).collect::<Vec<_>>()
            });
            let text = if verdicts.is_some() { "" } else { &result.content };
            Some(format!("{} {} {} {text} {verdicts:?}", result.step, result.index, result.tool))
        }
        Event::Best(best) => Some(format!("best {} {:?}", best.step, best.files)),
        Event::End(end) => {
            Some(format!("end {} {} {:?}", end.reason, end.spent.steps, end.spent.usage))
        }
    };
    record.events.iter().filter_map(of).collect()
}

#[test]
fn a_trajectory_cut_anywhere_is_completed_to_the_same_one() {
    let folder = tempfile::tempdir().unwrap();
    let task = small_task(folder.path(), "task");
    let provider = Provider::start(script);
    let agent = agent(&provider.openai(), Protocol::OpenAi);
    let run = folder.path().join("run");
    run_in(&run, &agent, std::slice::from_ref(&task), 1, 1);
    let whole = outline(&read_attempts(&run).unwrap()[0]);
    assert_eq!(whole.last().unwrap().split(' ').nth(1), Some("submitted"));
    let path = run.join("attempts/task/0/trajectory.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
    assert!(ends.len() > 15);
    for end in ends.iter().rev().skip(1) {
        // In the middle of the next line, as a kill would leave it.
        std::fs::write(&path, &text[..end + 5]).unwrap();
        let before = provider.seen();
        run_in(&run, &agent, std::slice::from_ref(&task), 1, 1);
        assert_eq!(outline(&read_attempts(&run).unwrap()[0]), whole, "cut after {end} bytes");
        let replies = text[..*end].matches("\"event\":\"reply\"").count();
        assert_eq!(provider.seen() - before, 5 - replies, "no reply is asked for twice");
    }
    let before = provider.seen();
    run_in(&run, &agent, &[task], 1, 1);
    assert_eq!(provider.seen(), before, "a finished run does nothing");
}

#[test]
fn an_attempt_that_failed_for_the_provider_s_sake_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let task = small_task(folder.path(), "task");
    static IS_DOWN: AtomicBool = AtomicBool::new(true);
    let provider =
        Provider::start(|asked| match IS_DOWN.load(Ordering::SeqCst) && asked.replies == 2 {
            true => Shape::Status(500, vec![], String::new()),
            false => script(asked),
        });
    let agent = agent(&provider.openai(), Protocol::OpenAi);
    let run = folder.path().join("run");
    run_in(&run, &agent, std::slice::from_ref(&task), 1, 1);
    let record = read_attempts(&run).unwrap().remove(0);
    assert_eq!((record.reason(), record.steps()), (Some(EndReason::ModelError), 2));
    IS_DOWN.store(false, Ordering::SeqCst);
    run_in(&run, &agent, &[task], 1, 1);
    let record = read_attempts(&run).unwrap().remove(0);
    assert_eq!((record.reason(), record.steps()), (Some(EndReason::Submitted), 5));
    assert!(record.is_correct());
}

#[test]
fn more_attempts_are_added_and_the_run_s_money_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let task = small_task(folder.path(), "task");
    let provider = Provider::start(script);
    let run = folder.path().join("run");
    // One reply costs 560e-6: the money is spent in the middle of the second attempt.
    let mut poor = agent(&provider.openai(), Protocol::OpenAi);
    poor.purse = passnet_agent::budget::Purse::new(Some(7.0 * 560e-6 - 1e-9));
    run_in(&run, &poor, std::slice::from_ref(&task), 2, 1);
    let reasons =
        |run| read_attempts(run).unwrap().iter().map(|r| r.reason().unwrap()).collect::<Vec<_>>();
    assert_eq!(reasons(&run), [EndReason::Submitted, EndReason::RunBudget]);
    let mut poor = agent(&provider.openai(), Protocol::OpenAi);
    poor.purse = passnet_agent::budget::Purse::new(Some(7.0 * 560e-6 - 1e-9));
    let before = provider.seen();
    run_in(&run, &poor, std::slice::from_ref(&task), 2, 1);
    assert_eq!(provider.seen(), before, "what was spent stays spent");
    let rich = agent(&provider.openai(), Protocol::OpenAi);
    run_in(&run, &rich, &[task], 3, 2);
    assert_eq!(reasons(&run), [EndReason::Submitted; 3]);
    assert_eq!(provider.seen(), 15, "five replies for each of three attempts");
}
