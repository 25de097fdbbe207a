//! Many episodes at once: nothing is lost, nothing waits for ever. `examples/scripted_episodes.rs` does it with a thousand.

mod support;

use passnet_agent::budget::EndReason;
use passnet_agent::model::Protocol;
use passnet_agent::run::read_attempts;
use passnet_agent::trajectory::Event;
use support::provider::Provider;
use support::{agent, routine, run_in, tasks};

#[test]
fn a_crowd_of_episodes_loses_no_step() {
    const ATTEMPTS: u32 = 20;
    let folder = tempfile::tempdir().unwrap();
    let tasks: Vec<_> =
        ["a", "b", "c", "d"].iter().map(|name| tasks::small_task(folder.path(), name)).collect();
    let provider = Provider::start(|asked| routine::reply(asked, 0));
    let run = folder.path().join("run");
    run_in(&run, &agent(&provider.openai(), Protocol::OpenAi), &tasks, ATTEMPTS, 80);
    let attempts = read_attempts(&run).unwrap();
    assert_eq!(attempts.len(), 80);
    assert_eq!(provider.seen(), 80 * routine::STEPS);
    for attempt in &attempts {
        assert_eq!((attempt.reason(), attempt.is_correct()), (Some(EndReason::Submitted), true));
        let replies =
            attempt.events.iter().filter(|event| matches!(event, Event::Reply(_))).count();
        let results =
            attempt.events.iter().filter(|event| matches!(event, Event::Result(_))).count();
        assert_eq!((replies, results), (routine::STEPS, routine::CALLS));
        // The same files on the same task are judged once.
        assert_eq!(attempt.evaluations.len(), 2);
        let first = attempts.iter().find(|other| other.start.task == attempt.start.task).unwrap();
        assert_eq!(attempt.evaluations, first.evaluations);
    }
}
