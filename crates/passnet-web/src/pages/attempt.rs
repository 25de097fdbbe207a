//! One attempt of a model, step by step, as its trajectory tells it.

use super::links::Links;
use super::route::Route;
use super::shared::{count, facts, link, verdict};
use super::{Page, Pages};
use crate::Error;
use passnet_agent::chat::Message;
use passnet_agent::evaluator::Assessment;
use passnet_agent::run::AttemptRecord;
use passnet_agent::trajectory::{Event, ReplyEvent, ResultEvent};
use passnet_bench::report::html::markup::Markup;
use passnet_bench::report::html::source;
use passnet_bench::report::ratio_text;

/// Longer texts are shown in part.
const MAX_CHARS: usize = 8_000;
/// Steps that are shown.
const MAX_STEPS: usize = 200;
/// Characters of the whole page's texts.
const MAX_PAGE: usize = 200_000;

pub(super) fn write(
    pages: &Pages<'_>,
    links: &Links,
    id: &str,
    index: usize,
) -> Result<Option<Page>, Error> {
    let Some(entry) = pages.store.entry(id)? else { return Ok(None) };
    let Some(bundle) = pages.store.bundle(&entry.digest)? else { return Ok(None) };
    let Some(attempt) = bundle.manifest.attempts.get(index) else { return Ok(None) };
    let bytes = bundle.blob(&attempt.trajectory)?;
    let lines = bytes.split(|byte| *byte == b'\n');
    let events: Vec<Event> = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
    let title = format!("{}, attempt {}", attempt.task, u64::from(attempt.attempt) + 1);
    let mut out = Markup::default();
    out.element("h1", &[], &title);
    out.open("p", &[]);
    out.text("Of the run ");
    link(links, &Route::Run(entry.id.clone()), &entry.name, &mut out);
    out.close("p");
    match AttemptRecord::of(events) {
        Some(record) => {
            buttons(&mut out);
            replay(&record, &mut out);
        }
        None => out.element("p", &[], "The trajectory has no beginning."),
    }
    Ok(Some(Page { title, body: out }))
}

/// To go through the steps one by one; the page's script shows them.
fn buttons(out: &mut Markup) {
    out.open("div", &[("class", "steps"), ("hidden", "")]);
    for (name, text) in [("first", "First"), ("back", "Back"), ("next", "Next"), ("all", "All")] {
        out.element("button", &[("type", "button"), ("name", name)], text);
    }
    out.element("output", &[("aria-live", "polite")], "");
    out.close("div");
}

/// What was spent, every step with its verdicts, and the best version.
pub(super) fn replay(record: &AttemptRecord, out: &mut Markup) {
    let end = record.end.as_ref();
    let reason = record.reason().map_or("not ended".to_string(), |reason| reason.to_string());
    let tokens = end.map_or("-".into(), |end| end.spent.usage.total().to_string());
    let cost = end.and_then(|end| end.spent.cost).map_or("-".into(), |cost| format!("{cost:.4}"));
    facts(
        &[
            ("Model", record.start.model.name.clone()),
            ("Steps", record.steps().to_string()),
            ("Ended", reason),
            ("Best AS", record.best_score().map_or("none".into(), ratio_text)),
            ("Tokens", tokens),
            ("Cost", cost),
        ],
        out,
    );
    let mut left = MAX_PAGE;
    let mut steps = 0;
    for event in &record.events {
        if left == 0 || steps >= MAX_STEPS {
            out.element("p", &[("class", "soft")], "The rest of the attempt is left out.");
            break;
        }
        steps += usize::from(one_event(event, &mut left, out));
    }
    if let Some(best) = &record.best {
        out.element("h2", &[], &format!("The best version, of step {}", best.step));
        for (name, text) in record.best_files() {
            out.element("h3", &[], name);
            source(text, out);
        }
    }
}

/// Whether the event is a step of its own.
fn one_event(event: &Event, left: &mut usize, out: &mut Markup) -> bool {
    match event {
        Event::Start(_) | Event::Best(_) => false,
        Event::Message { message } => {
            let (who, text) = match message {
                Message::System { content } => ("Instructions", content.as_str()),
                Message::User { content } => ("Task", content.as_str()),
                Message::Assistant(said) => ("Model", said.content.as_str()),
                Message::Tool { name, content, .. } => (name.as_str(), content.as_str()),
            };
            out.open("details", &[("class", "step")]);
            out.element("summary", &[], who);
            passage(text, left, out);
            out.close("details");
            true
        }
        Event::Reply(reply) => {
            said(reply, left, out);
            true
        }
        Event::Result(result) => {
            answered(result, left, out);
            true
        }
        Event::End(end) => {
            out.open("section", &[("class", "step")]);
            out.element("h2", &[], &format!("Ended: {}", end.reason));
            passage(&end.detail, left, out);
            out.close("section");
            true
        }
    }
}

fn said(reply: &ReplyEvent, left: &mut usize, out: &mut Markup) {
    out.open("section", &[("class", "step")]);
    out.element("h2", &[], &format!("Step {}: the model", reply.step));
    let usage = &reply.usage;
    out.element(
        "p",
        &[("class", "soft")],
        &format!(
            "{} tokens in, {} out, {:.1} s{}",
            usage.input,
            usage.output,
            reply.seconds,
            reply.cost.map_or(String::new(), |cost| format!(", cost {cost:.4}"))
        ),
    );
    if let Some(reasoning) = &reply.message.reasoning {
        out.open("details", &[]);
        out.element("summary", &[], "Thoughts");
        passage(reasoning, left, out);
        out.close("details");
    }
    passage(&reply.message.content, left, out);
    for call in reply.calls() {
        out.element("h3", &[], &format!("Calls {}", call.name));
        passage(&call.arguments, left, out);
    }
    out.close("section");
}

fn answered(result: &ResultEvent, left: &mut usize, out: &mut Markup) {
    out.open("section", &[("class", "step")]);
    let word = if result.is_error { "refuses" } else { "answers" };
    out.element("h2", &[], &format!("Step {}: {} {word}", result.step, result.tool));
    if let Some(found) = &result.assessment {
        assessment(found, out);
    }
    passage(&result.content, left, out);
    out.close("section");
}

fn assessment(found: &Assessment, out: &mut Markup) {
    if let Some(score) = found.score {
        out.element(
            "p",
            &[],
            &format!("AS {} over {}", ratio_text(score), count(found.graphs_in_task, "graph")),
        );
    }
    out.open("ul", &[]);
    for graph in &found.graphs {
        out.open("li", &[]);
        out.text(&format!("graph {}: ", graph.graph));
        verdict(graph.verdict.kind.name(), out);
        if let Some(speedup) = graph.speedup {
            out.text(&format!(", speed-up {}", ratio_text(speedup)));
        }
        out.close("li");
    }
    out.close("ul");
}

fn passage(text: &str, left: &mut usize, out: &mut Markup) {
    if text.trim().is_empty() {
        return;
    }
    let most = MAX_CHARS.min(*left);
    let shown: String = text.chars().take(most).collect();
    *left -= shown.chars().count().min(*left);
    out.open("pre", &[("tabindex", "0")]);
    out.element("code", &[], &shown);
    out.close("pre");
    if shown.len() < text.len() {
        out.element("p", &[("class", "soft")], "The rest of the text is left out.");
    }
}
