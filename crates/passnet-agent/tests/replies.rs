//! Every shape a provider's reply can take, in both protocols: what the loop makes of it and what it records.

mod support;

use passnet_agent::agent::{AgentError, Hooks};
use passnet_agent::budget::{EndReason, Limits};
use passnet_agent::chat::Stop;
use passnet_agent::model::{ErrorKind, Protocol};
use passnet_agent::trajectory::{Event, Log, ReplyEvent, ResultEvent, read};
use serde_json::json;
use std::time::Duration;
use support::provider::{Asked, Provider, Shape, call, create};
use support::{KEY, agent, tasks};

const BOTH: [Protocol; 2] = [Protocol::OpenAi, Protocol::Anthropic];

/// What became of an attempt.
struct Attempted {
    end: Result<EndReason, ErrorKind>,
    replies: Vec<ReplyEvent>,
    results: Vec<ResultEvent>,
    text: String,
    provider: Provider,
}

fn attempt_with(
    protocol: Protocol,
    limits: Limits,
    script: impl Fn(&Asked<'_>) -> Shape + Send + Sync + 'static,
) -> Attempted {
    let folder = tempfile::tempdir().unwrap();
    let task = tasks::small_task(folder.path(), "small");
    let provider = Provider::start(script);
    let url = if protocol == Protocol::OpenAi { provider.openai() } else { provider.anthropic() };
    let mut agent = agent(&url, protocol);
    agent.limits = limits;
    let path = folder.path().join("trajectory.jsonl");
    let (log, past) = Log::open(&path).unwrap();
    let hooks = Hooks { keep_best: &|_| Ok(()), moved: &|_| {} };
    let end = match agent.attempt(&task, 0, log, &past, &hooks) {
        Ok(end) => Ok(end.reason),
        Err(AgentError::Denied(error)) => Err(error.kind),
        Err(error) => panic!("{error}"),
    };
    let (mut replies, mut results) = (Vec::new(), Vec::new());
    for event in read(&path).unwrap() {
        match event {
            Event::Reply(reply) => replies.push(*reply),
            Event::Result(result) => results.push(*result),
            _ => {}
        }
    }
    let text = std::fs::read_to_string(&path).unwrap();
    Attempted { end, replies, results, text, provider }
}

/// The shape first, then `submit`.
fn attempt(protocol: Protocol, shape: Shape) -> Attempted {
    let limits = Limits { steps: 6, ..Limits::default() };
    attempt_with(protocol, limits, move |asked| match (asked.replies, asked.before) {
        (0, 0) => shape.clone(),
        _ => Shape::Calls(vec![call("submit", json!({}))]),
    })
}

#[test]
fn parallel_calls_are_all_done_in_order() {
    for protocol in BOTH {
        let calls = vec![
            create("pass_dir/a.py", "x = 1\n"),
            call("view", json!({ "path": "pass_dir/a.py" })),
            call("match", json!({})),
        ];
        let seen = attempt(protocol, Shape::Calls(calls));
        assert_eq!(seen.end, Ok(EndReason::Submitted));
        let tools: Vec<&str> = seen.results.iter().map(|result| result.tool.as_str()).collect();
        assert_eq!(tools, ["create", "view", "match", "submit"]);
        assert!(seen.results[1].content.contains("x = 1"));
        assert!(seen.results[2].content.contains("compile_fail"), "{}", seen.results[2].content);
        assert!(seen.results[2].content.contains("Steps remaining: 5"), "the notice comes last");
        assert!(!seen.results[1].content.contains("Steps remaining"));
        let usage = seen.replies[0].usage;
        assert_eq!((usage.input, usage.cached, usage.output), (1000, 600, 50), "{protocol:?}");
        assert!(
            (seen.replies[0].cost.unwrap() - 560e-6).abs() < 1e-12,
            "{:?}",
            seen.replies[0].cost
        );
    }
}

#[test]
fn malformed_arguments_are_told_to_the_model() {
    for protocol in BOTH {
        for (arguments, said) in [
            ("{\"path\": \"a.py\", ", "not valid JSON"),
            ("[1, 2]", "not a JSON object"),
            ("{\"path\": 7, \"file_text\": \"x\"}", "must be a string"),
            ("{\"file_text\": \"x\"}", "needs `path`"),
            ("{\"path\": \"a.py\"}", "needs `file_text`"),
        ] {
            let seen = attempt(protocol, Shape::Calls(vec![("create".into(), arguments.into())]));
            assert_eq!(seen.end, Ok(EndReason::Submitted));
            assert!(
                seen.results[0].is_error && seen.results[0].content.contains(said),
                "{said}: {:?}",
                seen.results[0]
            );
        }
        let seen = attempt(protocol, Shape::Calls(vec![call("rm_rf", json!({}))]));
        assert!(seen.results[0].content.contains("there is no tool `rm_rf`"));
        let seen = attempt(protocol, Shape::Calls(vec![(String::new(), String::new())]));
        assert!(seen.results[0].is_error);
    }
}

#[test]
fn replies_without_a_call_are_answered_with_a_reminder_and_end_after_three() {
    for protocol in BOTH {
        for text in ["", "I am thinking about it."] {
            let seen = attempt(protocol, Shape::Say(text.into()));
            assert_eq!(seen.end, Ok(EndReason::Submitted));
            assert!(seen.text.contains("There was no tool call"));
        }
        let limits = Limits { steps: 10, ..Limits::default() };
        let seen = attempt_with(protocol, limits.clone(), |_| Shape::Say("hm".into()));
        assert_eq!((seen.end, seen.replies.len()), (Ok(EndReason::NoAction), 3));
        let seen = attempt_with(protocol, limits, |_| Shape::Refuse("I cannot help".into()));
        assert_eq!((seen.end, seen.replies.len()), (Ok(EndReason::Refused), 3));
        assert_eq!(seen.replies[0].stop, Stop::Refusal);
        assert!(seen.replies[0].message.content.contains("cannot help"));
    }
}

#[test]
fn a_call_in_the_text_is_understood() {
    for protocol in BOTH {
        let text = "Let me look.\n```json\n{\"tool\": \"view\", \"arguments\": {\"path\": \"graphs/0/model.py\"}}\n```";
        let seen = attempt(protocol, Shape::Say(text.into()));
        assert_eq!(seen.end, Ok(EndReason::Submitted));
        assert_eq!((seen.results[0].tool.as_str(), seen.results[0].is_error), ("view", false));
        assert!(seen.results[0].content.contains("relu"));
        assert!(
            seen.replies[0].message.tool_calls.is_empty() && seen.replies[0].text_calls.len() == 1
        );
    }
}

#[test]
fn replies_in_one_piece_and_replies_cut_short() {
    for protocol in BOTH {
        let text = "```json\n{\"tool\": \"submit\"}\n```";
        let seen = attempt(protocol, Shape::Whole(text.into()));
        assert_eq!((seen.end, seen.replies.len()), (Ok(EndReason::Submitted), 1));
        assert_eq!((seen.replies[0].usage.input, seen.replies[0].usage.output), (100, 10));
        let seen = attempt(protocol, Shape::Cut("def pattern(".into()));
        assert_eq!(seen.replies[0].stop, Stop::Length);
        assert!(seen.text.contains("cut off"));
    }
}

#[test]
fn what_passes_is_tried_again_and_recorded() {
    for protocol in BOTH {
        let slow_down = vec![("retry-after".to_string(), "0.02".to_string())];
        for (shape, kind) in [
            (
                Shape::Status(429, slow_down, "{\"error\": {\"message\": \"slow down\"}}".into()),
                ErrorKind::RateLimited,
            ),
            (Shape::Status(500, vec![], "oops".into()), ErrorKind::Server),
            (Shape::Status(529, vec![], String::new()), ErrorKind::RateLimited),
            (Shape::Status(503, vec![], String::new()), ErrorKind::Server),
            (Shape::Torn, ErrorKind::Truncated),
            (Shape::Garbage, ErrorKind::Malformed),
            (Shape::ErrorEvent("overloaded_error".into(), "busy".into()), ErrorKind::RateLimited),
            (Shape::ErrorEvent("api_error".into(), "internal".into()), ErrorKind::Server),
        ] {
            let seen = attempt(protocol, shape.clone());
            assert_eq!(seen.end, Ok(EndReason::Submitted), "{shape:?}");
            let kinds: Vec<ErrorKind> =
                seen.replies[0].retries.iter().map(|retry| retry.error).collect();
            assert_eq!(kinds, [kind], "{protocol:?} {shape:?}: {:?}", seen.replies[0].retries);
            assert_eq!(seen.provider.seen(), 2);
        }
        // Whether a closed connection is noticed while sending or reading depends on the system.
        let seen = attempt(protocol, Shape::HangUp);
        assert_eq!(seen.end, Ok(EndReason::Submitted));
    }
}

#[test]
fn silence_ends_a_call_and_patience_ends() {
    for protocol in BOTH {
        let limits = Limits { steps: 6, call_seconds: 0.3, ..Limits::default() };
        let seen = attempt_with(protocol, limits, |_| Shape::Silence(Duration::from_secs(3)));
        assert_eq!(seen.end, Ok(EndReason::ModelError));
        assert!(seen.text.contains("timeout"), "{}", seen.text.lines().last().unwrap());
        let limits = Limits { steps: 6, ..Limits::default() };
        let seen = attempt_with(protocol, limits, |_| Shape::Status(500, vec![], String::new()));
        assert_eq!((seen.end, seen.provider.seen()), (Ok(EndReason::ModelError), 5));
    }
}

#[test]
fn what_does_not_pass_is_not_tried_again() {
    for protocol in BOTH {
        let page = "{\"error\": {\"type\": \"invalid_request_error\", \"message\": \"too long\"}}";
        let limits = Limits { steps: 6, ..Limits::default() };
        let refused = |status| move |_: &Asked<'_>| Shape::Status(status, vec![], page.into());
        let seen = attempt_with(protocol, limits.clone(), refused(400));
        assert_eq!((seen.end, seen.provider.seen()), (Ok(EndReason::ModelError), 1));
        assert!(seen.text.contains("too long"));
        for said in [
            "prompt is too long: 9 tokens > 8 maximum",
            "exceeds the available context size (8 tokens)",
        ] {
            let page = json!({ "error": { "message": said } }).to_string();
            let script = move |_: &Asked<'_>| Shape::Status(400, vec![], page.clone());
            let seen = attempt_with(protocol, limits.clone(), script);
            assert_eq!((seen.end, seen.provider.seen()), (Ok(EndReason::ContextLimit), 1));
        }
        for status in [401, 403, 404] {
            let seen = attempt_with(protocol, limits.clone(), refused(status));
            assert_eq!((seen.end, seen.provider.seen()), (Err(ErrorKind::Denied), 1));
        }
        let redirect = vec![("location".to_string(), "http://127.0.0.1:1/".to_string())];
        let script = move |_: &Asked<'_>| Shape::Status(302, redirect.clone(), String::new());
        let seen = attempt_with(protocol, limits.clone(), script);
        assert_eq!(
            (seen.end, seen.provider.seen()),
            (Ok(EndReason::ModelError), 1),
            "keys do not follow redirects"
        );
    }
}

#[test]
fn budgets_end_an_attempt() {
    let view = |_: &Asked<'_>| Shape::Calls(vec![call("view", json!({ "path": "." }))]);
    for (limits, reason, replies) in [
        (Limits { steps: 3, ..Limits::default() }, EndReason::StepLimit, 3),
        (Limits { tokens: Some(2000), ..Limits::default() }, EndReason::TokenLimit, 2),
        (Limits { context: Some(1000), ..Limits::default() }, EndReason::ContextLimit, 1),
        (Limits { cost: Some(1.0e-3), ..Limits::default() }, EndReason::CostLimit, 2),
    ] {
        let seen = attempt_with(Protocol::OpenAi, limits, view);
        assert_eq!((seen.end, seen.replies.len()), (Ok(reason), replies));
    }
    let limits = Limits { steps: 2, ..Limits::default() };
    let seen = attempt_with(Protocol::OpenAi, limits, view);
    assert!(seen.results[0].content.contains("Please submit your answer NOW"));
}

#[test]
fn requests_say_what_the_protocols_want_and_the_key_is_in_its_header_alone() {
    for protocol in BOTH {
        let limits = Limits { steps: 3, ..Limits::default() };
        let seen = attempt_with(protocol, limits, move |asked| {
            let head = asked.headers.to_ascii_lowercase();
            assert!(!asked.body.to_string().contains(KEY));
            assert_eq!(asked.body["stream"], true);
            let tools = asked.body["tools"].as_array().unwrap();
            assert_eq!(tools.len(), 9);
            match protocol {
                Protocol::OpenAi => {
                    assert!(head.contains(&format!("authorization: bearer {KEY}")), "{head}");
                    assert_eq!(tools[0]["function"]["name"], "view");
                    assert_eq!(asked.body["messages"][0]["role"], "system");
                }
                Protocol::Anthropic => {
                    assert!(
                        head.contains(&format!("x-api-key: {KEY}"))
                            && head.contains("anthropic-version: 2023-06-01")
                    );
                    let mark = json!({ "type": "ephemeral" });
                    assert_eq!(asked.body["system"][0]["cache_control"], mark);
                    assert_eq!(tools[8]["cache_control"], mark);
                    let last = asked.body["messages"].as_array().unwrap().last().unwrap();
                    assert_eq!(
                        last["content"].as_array().unwrap().last().unwrap()["cache_control"],
                        mark
                    );
                    let roles: Vec<&str> = asked.body["messages"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(|message| message["role"].as_str().unwrap())
                        .collect();
                    assert!(roles.windows(2).all(|pair| pair[0] != pair[1]), "{roles:?}");
                }
            }
            match asked.replies {
                0 => Shape::Calls(vec![
                    call("view", json!({ "path": "." })),
                    ("create".into(), "{bad".into()),
                ]),
                1 => Shape::Say("and now?".into()),
                _ => Shape::Calls(vec![call("submit", json!({}))]),
            }
        });
        assert_eq!(seen.end, Ok(EndReason::Submitted), "{}", seen.text);
        assert!(!seen.text.contains(KEY));
    }
}
