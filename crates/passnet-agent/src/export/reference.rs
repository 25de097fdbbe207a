//! The reference's two files: one trajectory a line, and one list of messages a line.

use super::{Arguments, conversation, plain};
use crate::budget::EndReason;
use crate::chat::{Message, ToolCall};
use crate::run::AttemptRecord;
use crate::tools::Tool;
use crate::trajectory::{Event, ReplyEvent, ResultEvent};
use serde_json::{Map, Value, json};
use std::fmt::Write;

const IMAGE: &str = "passnet:latest";
/// The reference's pass evaluator stops after so many seconds.
const TOOL_SECONDS: u64 = 610;

/// `<exp>_completions.jsonl`.
pub fn completions(attempts: &[AttemptRecord]) -> Vec<Value> {
    let line = |attempt: &AttemptRecord| json!({ "sample_dir": attempt.start.folder, "messages": conversation(attempt, None) });
    attempts.iter().map(line).collect()
}

/// `<exp>.jsonl`.
pub fn trajectories(attempts: &[AttemptRecord], experiment: &str) -> Vec<Value> {
    attempts.iter().map(|attempt| trajectory(attempt, experiment)).collect()
}

fn trajectory(attempt: &AttemptRecord, experiment: &str) -> Value {
    let limits = &attempt.start.limits;
    let problem = attempt.events.iter().find_map(|event| match event {
        Event::Message { message: Message::User { content } } => Some(content.as_str()),
        _ => None,
    });
    let system = attempt.events.iter().find_map(|event| match event {
        Event::Message { message: message @ Message::System { .. } } => {
            Some(plain(message, Arguments::Text))
        }
        _ => None,
    });
    // The rule the reference intends and does not implement: right and faster than eager.
    let is_solved = attempt.is_correct() && attempt.best_score().is_some_and(|score| score > 1.0);
    json!({
        "trajectory_steps": steps(attempt),
        "problem_statement": problem,
        "docker_image": IMAGE,
        "exp_name": experiment,
        "env_args": {
            "ds": { "sample_dir": attempt.start.folder, "docker_image": IMAGE },
            "engine": attempt.start.identity,
        },
        "agent_args": { "llm_name": attempt.start.model.name, "system_prompt": system },
        "ds": {
            "swe_type": "passnet",
            "sample_dir": attempt.start.folder,
            "repo_name": "passnet",
            "docker_image": IMAGE,
            "instance_id": attempt.start.sample,
        },
        "max_steps": limits.steps,
        "max_steps_absolute": limits.steps,
        "max_token_limit": limits.context,
        "max_llm_time": limits.call_seconds,
        "max_exec_time": TOOL_SECONDS,
        "max_total_time": limits.seconds,
        "exit_reason": exit_reason(attempt.reason()),
        "output_patch": output_patch(attempt),
        "reward": if is_solved { 1.0 } else { 0.0 },
        "test_output": "",
        "custom_test_outputs": {},
        "regression_test_output": "",
    })
}

fn exit_reason(reason: Option<EndReason>) -> &'static str {
    match reason {
        Some(EndReason::Submitted | EndReason::NoAction | EndReason::Refused) => "agent",
        Some(EndReason::TokenLimit | EndReason::ContextLimit) => "token_limit",
        Some(EndReason::StepLimit) => "abs_step_limit",
        Some(EndReason::TimeLimit) => "traj_time_limit",
        Some(EndReason::CostLimit | EndReason::ModelError | EndReason::RunBudget) | None => {
            "unknown"
        }
    }
}

/// The best version in one text; empty if nothing was ever evaluated.
fn output_patch(attempt: &AttemptRecord) -> String {
    let Some(best) = &attempt.best else { return String::new() };
    let dashes = "-".repeat(20);
    let score = ("score.txt".to_string(), best.score.to_string());
    let files = best.files.iter().map(|(name, text)| (name.clone(), text.clone()));
    let mut out = String::new();
    for (name, text) in files.chain([score]) {
        let _ = write!(out, "{dashes} pass_dir/{name} {dashes}\n{text}\n\n");
    }
    out
}

fn steps(attempt: &AttemptRecord) -> Vec<Value> {
    let mut steps = Vec::new();
    let mut total = 0.0;
    for (place, event) in attempt.events.iter().enumerate() {
        let Event::Reply(reply) = event else { continue };
        let results: Vec<&ResultEvent> = attempt.events[place + 1..]
            .iter()
            .take_while(|event| !matches!(event, Event::Reply(_)))
            .filter_map(|event| match event {
                Event::Result(result) => Some(&**result),
                _ => None,
            })
            .collect();
        let tools: f64 = results.iter().map(|result| result.seconds).sum();
        total += reply.seconds + tools;
        let is_submitted = reply.calls().iter().any(|call| call.name == Tool::Submit.name());
        steps.push(step(reply, &results, tools, total, is_submitted));
    }
    steps
}

fn step(reply: &ReplyEvent, results: &[&ResultEvent], tools: f64, total: f64, done: bool) -> Value {
    let observations: Vec<&str> = results.iter().map(|result| result.content.as_str()).collect();
    json!({
        "step_idx": reply.step - 1,
        "thought": reply.message.content,
        "action": reply.calls().iter().map(action).collect::<Vec<_>>().join("\n"),
        "observation": observations.join("\n"),
        "done": done,
        "info": {},
        "token_usage_prompt": reply.usage.input,
        "token_usage_completion": reply.usage.output,
        "token_usage_total": reply.usage.total(),
        "llm_exec_time": reply.seconds,
        "env_exec_time": tools,
        "total_step_time": reply.seconds + tools,
        "total_time_traj": total,
        "step_count": reply.step,
    })
}

/// A call as the reference writes it: an XML-like text, under the reference's names of tools.
fn action(call: &ToolCall) -> String {
    let arguments: Map<String, Value> = serde_json::from_str(&call.arguments).unwrap_or_default();
    let (function, command) = match Tool::from_name(&call.name) {
        Some(Tool::Evaluate) => ("pass_evaluator", None),
        Some(Tool::Undo) => ("file_editor", Some("undo_edit")),
        Some(tool @ (Tool::View | Tool::Create | Tool::StrReplace | Tool::Insert)) => {
            ("file_editor", Some(tool.name()))
        }
        _ => (call.name.as_str(), None),
    };
    let mut out = format!("<function={function}>\n");
    if let Some(command) = command {
        let _ = writeln!(out, "  <parameter=command>{command}</parameter>");
    }
    for (name, value) in &arguments {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_string);
        let _ = writeln!(out, "  <parameter={name}>{text}</parameter>");
    }
    out + "</function>"
}
