//! A real model end to end: three bundled tasks through the real protocol, in both protocols.
//!
//! Asks for nothing but form: whatever the model says must be recorded, answered and brought to an end. Needs a server
//! on loopback (`tools/serve_local_model.py`) whose address stands in `PASSNET_LOCAL_MODEL`, for example
//! `http://127.0.0.1:8080`.

mod support;

use passnet_agent::budget::{EndReason, Limits};
use passnet_agent::model::retry::Pace;
use passnet_agent::model::{Endpoint, Protocol, Sampling};
use passnet_agent::prompt::CallStyle;
use passnet_agent::run::read_attempts;
use passnet_agent::task::Task;
use passnet_agent::trajectory::Event;
use std::sync::Arc;
use std::time::Duration;
use support::{agent, run_in, tasks};

const TASKS: [&str; 3] = ["geglu_tanh", "quick_gelu_add", "channel_glu"];

#[test]
#[ignore = "needs a local model; tools/full-check runs it"]
fn a_local_model_runs_three_tasks() {
    let address = std::env::var("PASSNET_LOCAL_MODEL");
    let address = address.expect("PASSNET_LOCAL_MODEL must hold the address of a local model");
    for (protocol, base_url) in
        [(Protocol::OpenAi, format!("{address}/v1")), (Protocol::Anthropic, address.clone())]
    {
        let mut agent = agent(&base_url, protocol);
        let sampling = Sampling { temperature: Some(0.2), max_output_tokens: Some(256) };
        let endpoint = Endpoint {
            protocol,
            base_url,
            model: "smollm2".into(),
            key: None,
            sampling,
            silence: Duration::from_secs(300),
            stall: Duration::from_secs(300),
        };
        agent.model = endpoint.connect();
        agent.calls = CallStyle::Text;
        agent.pace = Pace::new(None);
        agent.limits = Limits { steps: 4, context: Some(8000), ..Limits::default() };
        let tasks: Vec<Arc<Task>> =
            TASKS.iter().map(|name| Arc::new(Task::read(&tasks::bundled(name)).unwrap())).collect();
        let folder = tempfile::tempdir().unwrap();
        run_in(folder.path(), &agent, &tasks, 1, 1);
        let attempts = read_attempts(folder.path()).unwrap();
        assert_eq!(attempts.len(), TASKS.len());
        for attempt in attempts {
            let reason = attempt.reason().unwrap();
            assert!(reason != EndReason::ModelError, "{:?}", attempt.end);
            assert!((1..=4).contains(&attempt.steps()));
            for event in &attempt.events {
                if let Event::Reply(reply) = event {
                    assert!(reply.usage.input > 500 && !reply.usage.estimated, "{:?}", reply.usage);
                    assert!(!reply.message.content.is_empty() || reply.usage.output <= 1);
                }
            }
        }
    }
}
