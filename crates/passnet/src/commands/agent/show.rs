//! `passnet agent show`: attempts listed, or one replayed.

use super::attempts;
use crate::error::{CommandError, Outcome};
use crate::output::{Output, table};
use clap::Args;
use passnet_agent::chat::Message;
use passnet_agent::run::AttemptRecord;
use passnet_agent::trajectory::Event;
use passnet_bench::report::printable;
use serde_json::json;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  passnet agent show runs/gpt                      all attempts of a run
  passnet agent show runs/gpt swiglu               the best attempt at a task, step by step
  passnet agent show runs/gpt swiglu --attempt 2 --full")]
pub struct ShowArgs {
    /// A folder that `passnet agent run --out` wrote
    run: PathBuf,

    /// Replay an attempt at this task
    task: Option<String>,

    /// Which attempt [default: the best one]
    #[arg(long, requires = "task")]
    attempt: Option<u32>,

    /// Every line of every text
    #[arg(long)]
    full: bool,
}

/// Lines of a text that are shown unless `--full`.
const LINES: usize = 12;

pub fn run(args: &ShowArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    let found = attempts(&args.run)?;
    match &args.task {
        None => list(&found, out)?,
        Some(task) => {
            let of_task: Vec<&AttemptRecord> =
                found.iter().filter(|attempt| attempt.start.task == *task).collect();
            let chosen = match args.attempt {
                Some(number) => of_task.iter().find(|attempt| attempt.start.attempt == number),
                None => of_task.iter().reduce(|best, other| {
                    let score = |attempt: &AttemptRecord| attempt.best_score().unwrap_or(-1.0);
                    if score(other) > score(best) { other } else { best }
                }),
            };
            let Some(chosen) = chosen else {
                let message = format!("{}: no such attempt", args.run.display());
                return Err(CommandError::input(message)
                    .with_hint("`passnet agent show RUN` lists tasks and attempts"));
            };
            replay(chosen, args.full, out)?;
        }
    }
    out.flush()?;
    Ok(Outcome::Done)
}

fn list(attempts: &[AttemptRecord], out: &mut Output) -> Result<(), CommandError> {
    let mut rows = table(["task", "attempt", "end", "steps", "evaluations", "correct", "AS"]);
    for attempt in attempts {
        let reason = attempt.reason().map_or("unfinished", |reason| reason.name());
        if out.is_json() {
            out.json(&json!({
                "task": attempt.start.task,
                "attempt": attempt.start.attempt,
                "end": reason,
                "steps": attempt.steps(),
                "evaluations": attempt.evaluations,
                "correct": attempt.is_correct(),
                "as": attempt.best_score(),
            }))?;
            continue;
        }
        rows.add_row([
            printable(&attempt.start.task),
            attempt.start.attempt.to_string(),
            reason.to_string(),
            attempt.steps().to_string(),
            attempt.evaluations.len().to_string(),
            if attempt.is_correct() { "yes" } else { "no" }.to_string(),
            attempt.best_score().map_or("-".into(), |score| format!("{score:.4}")),
        ]);
    }
    if out.is_json() { Ok(()) } else { out.table(&rows) }
}

fn replay(attempt: &AttemptRecord, full: bool, out: &mut Output) -> Result<(), CommandError> {
    for event in &attempt.events {
        if out.is_json() {
            let value = serde_json::to_value(event)
                .map_err(|error| CommandError::bug(error.to_string()))?;
            out.json(&value)?;
            continue;
        }
        match event {
            Event::Start(start) => {
                out.line(format!("task {}, attempt {}", printable(&start.task), start.attempt))?;
                let (name, url) = (printable(&start.model.name), printable(&start.model.base_url));
                out.line(format!("model {name} at {url}, at most {} steps", start.limits.steps))?;
            }
            Event::Message { message } => {
                let (who, text) = match message {
                    Message::System { content } => ("system", content),
                    Message::User { content } => ("user", content),
                    Message::Assistant(_) | Message::Tool { .. } => continue,
                };
                out.line(format!("\n{who}"))?;
                text_lines(text, full, out)?;
            }
            Event::Reply(reply) => {
                let cost = reply.cost.map_or(String::new(), |cost| format!(", cost {cost:.4}"));
                out.line(format!(
                    "\nstep {}: {} tokens in, {} out, {:.1} s{cost}",
                    reply.step, reply.usage.input, reply.usage.output, reply.seconds
                ))?;
                for retry in &reply.retries {
                    out.line(format!("  tried again after {}", printable(&retry.message)))?;
                }
                if let Some(reasoning) = &reply.message.reasoning {
                    text_lines(reasoning, full, out)?;
                }
                text_lines(&reply.message.content, full, out)?;
                for call in reply.calls() {
                    out.line(format!("  > {}", printable(&call.name)))?;
                    call_lines(&call.arguments, full, out)?;
                }
            }
            Event::Result(result) => {
                let mark = if result.is_error { "!" } else { "<" };
                out.line(format!(
                    "  {mark} {} ({:.2} s)",
                    printable(&result.tool),
                    result.seconds
                ))?;
                text_lines(&result.content, full, out)?;
            }
            Event::Best(best) => out.line(format!("  * best so far: AS {:.4}", best.score))?,
            Event::End(end) => {
                let best = end.best.map_or("no score".into(), |score| format!("AS {score:.4}"));
                let detail = printable(&end.detail);
                out.line(
                    format!("\nend: {}, {best}, {} steps {detail}", end.reason, end.spent.steps)
                        .trim_end(),
                )?;
            }
        }
    }
    Ok(())
}

/// Arguments as a person reads them: one line each, texts with their line breaks.
fn call_lines(arguments: &str, full: bool, out: &mut Output) -> Result<(), CommandError> {
    match serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(arguments) {
        Ok(map) => map.iter().try_for_each(|(name, value)| match value.as_str() {
            Some(text) if text.contains('\n') => {
                out.line(format!("    {}:", printable(name)))?;
                text_lines(text, full, out)
            }
            Some(text) => out.line(format!("    {}: {}", printable(name), printable(text))),
            None => out.line(format!("    {}: {}", printable(name), printable(&value.to_string()))),
        }),
        Err(_) => text_lines(arguments, full, out),
    }
}

fn text_lines(text: &str, full: bool, out: &mut Output) -> Result<(), CommandError> {
    let count = text.lines().count();
    let shown = if full { count } else { LINES };
    for line in text.lines().take(shown) {
        out.line(format!("    {}", printable(line)).trim_end())?;
    }
    match count.checked_sub(shown) {
        None | Some(0) => Ok(()),
        Some(more) => out.line(format!("    … {more} more lines")),
    }
}
