//! One run: its headline, its curves, every task and graph at a glance, where it comes from.

use super::links::Links;
use super::matrix::matrix_route;
use super::route::Route;
use super::shared::{
    CELLS, badges, count, date, facts, graph_cell, headline, link, list, open_sortable,
    optional_ratio, percent, verdict,
};
use super::{Page, Pages};
use crate::Error;
use crate::store::{Detail, Entry, EntryState, Filter, GroupScore, Rejudged, ResultRow};
use passnet_bench::report::html::chart;
use passnet_bench::report::html::markup::Markup;
use passnet_bench::report::{Histogram, ratio_text};
use std::collections::BTreeMap;

/// Failures that are named; all are in the tasks' pages.
const FAILURES: usize = 20;
/// Other runs that are offered for comparison.
const OTHERS: usize = 20;

pub(super) fn write(pages: &Pages<'_>, links: &Links, id: &str) -> Result<Option<Page>, Error> {
    let Some(entry) = pages.store.entry(id)? else { return Ok(None) };
    let detail = pages.store.detail(&entry)?;
    let results = pages.store.results(&entry)?;
    let mut out = Markup::default();
    out.element("h1", &[], &entry.name);
    out.open("p", &[]);
    badges(&entry, links, &mut out);
    out.text(&format!(
        " by {}, {}, {} against eager. ",
        entry.author,
        date(entry.added),
        entry.compiler
    ));
    link(links, &Route::Board(entry.board()), "Its ranking", &mut out);
    out.close("p");
    numbers(&entry, &detail, &results, &mut out);
    doubts(&detail, &mut out);
    curves(&entry, &detail, &results, &mut out);
    let again = pages.store.rejudged(&entry)?;
    rejudged(&again, &mut out);
    tasks(&entry, &detail, &results, links, &mut out);
    groups("By type of the first float input", "dtype", &detail.dtypes, &mut out);
    failures(&results, &mut out);
    attempts(&entry, &detail, links, &mut out);
    others(pages, &entry, links, &mut out)?;
    origin(pages, &entry, &detail, links, &mut out);
    Ok(Some(Page { title: entry.name.clone(), body: out }))
}

fn numbers(entry: &Entry, detail: &Detail, results: &[ResultRow], out: &mut Markup) {
    let right = results.iter().filter(|row| row.verdict == "correct").count();
    headline(
        &[
            (
                ratio_text(entry.score),
                format!("AS ({} to {})", ratio_text(entry.low), ratio_text(entry.high)),
            ),
            (percent(entry.correct), format!("correct ({right} of {} graphs)", results.len())),
            (percent(entry.task_rate), "tasks in full".into()),
            (optional_ratio(entry.mean), "G-mean of the right".into()),
            (percent(entry.fast_1), "fast_1".into()),
            (percent(entry.fast_15), "fast_1.5".into()),
            (percent(detail.fast_2), "fast_2".into()),
        ],
        out,
    );
}

fn doubts(detail: &Detail, out: &mut Markup) {
    if detail.doubts.is_empty() {
        return;
    }
    out.element("h2", &[], "What does not hold");
    list(detail.doubts.iter().take(FAILURES).map(String::as_str), out);
}

fn curves(entry: &Entry, detail: &Detail, results: &[ResultRow], out: &mut Markup) {
    out.open("div", &[("class", "pair")]);
    out.open("figure", &[]);
    chart::curves(&[(&entry.name, detail.es.clone())], out);
    out.element(
        "figcaption",
        &[],
        "ES(t): the mean speed-up where failures at level t count as 0.1; looser levels to the right forgive more.",
    );
    out.close("figure");
    let right = results.iter().filter(|row| row.verdict == "correct");
    out.open("figure", &[]);
    chart::histogram(&Histogram::of(right.filter_map(|row| row.speedup)), out);
    out.element("figcaption", &[], "Speed-ups of the graphs that are right.");
    out.close("figure");
    out.close("div");
}

/// What the author claims beside what came out here.
fn rejudged(again: &[Rejudged], out: &mut Markup) {
    if again.is_empty() {
        return;
    }
    out.element("h2", &[("id", "rejudged")], "Judged again here");
    out.open_table(
        "Graphs drawn at random. A speed-up is held against the claimed one only where the device is of the same class.",
        &["graph", "claimed", "here", "claimed speed-up", "speed-up here", "agree", "remark"],
    );
    for one in again {
        out.open("tr", &[]);
        out.element("th", &[("scope", "row")], &format!("{}/{}", one.task, one.graph));
        out.open("td", &[]);
        verdict(&one.claimed_verdict, out);
        out.close("td");
        out.open("td", &[]);
        match &one.verdict {
            Some(name) => verdict(name, out),
            None => out.text("not judged"),
        }
        out.close("td");
        out.element("td", &[("class", "n")], &optional_ratio(one.claimed_speedup));
        out.element("td", &[("class", "n")], &optional_ratio(one.speedup));
        let (class, text) = match one.agrees {
            Some(true) => ("right", "yes"),
            Some(false) => ("wrong", "no"),
            None => ("soft", "cannot be said"),
        };
        out.open("td", &[]);
        out.element("span", &[("class", class)], text);
        out.close("td");
        out.element("td", &[], &one.text);
        out.close("tr");
    }
    out.close_table();
    if let Some(place) = again.first().map(|one| &one.place) {
        out.element("p", &[("class", "soft")], &format!("Judged on: {place}."));
    }
}

fn tasks(entry: &Entry, detail: &Detail, results: &[ResultRow], links: &Links, out: &mut Markup) {
    let mut rows: BTreeMap<usize, Vec<&ResultRow>> = BTreeMap::new();
    for result in results {
        rows.entry(result.task).or_default().push(result);
    }
    let scores: BTreeMap<&str, &GroupScore> =
        detail.tasks.iter().map(|group| (group.name.as_str(), group)).collect();
    out.element("h2", &[("id", "tasks")], "Tasks and graphs");
    open_sortable(
        "task-table",
        true,
        CELLS,
        &[("task", false), ("AS", true), ("right", true), ("graphs", false)],
        out,
    );
    for (task, graphs) in rows {
        let name = graphs[0].task_name.as_str();
        out.open("tr", &[]);
        out.open("th", &[("scope", "row")]);
        link(links, &Route::Task(entry.id.clone(), task), name, out);
        out.close("th");
        let score = scores.get(name);
        let text = score.map_or("-".into(), |group| ratio_text(group.score));
        out.element("td", &[("class", "n")], &text);
        let right = graphs.iter().filter(|graph| graph.verdict == "correct").count();
        out.element("td", &[("class", "n")], &format!("{right} of {}", graphs.len()));
        out.open("td", &[]);
        out.open("div", &[("class", "cells")]);
        for graph in graphs {
            let (class, sign) = graph_cell(&graph.verdict, graph.decision.as_deref());
            let speed = graph.speedup.map_or(String::new(), |it| format!(" {}", ratio_text(it)));
            let title = format!("{}{speed}", graph.verdict);
            out.element("i", &[("class", class), ("title", &title)], sign);
        }
        out.close("div");
        out.close("td");
        out.close("tr");
    }
    out.close_table();
}

fn groups(title: &str, head: &str, groups: &[GroupScore], out: &mut Markup) {
    if groups.is_empty() {
        return;
    }
    out.open_table(title, &[head, "graphs", "correct", "AS", "fast_1", "G-mean"]);
    for group in groups {
        out.row(&[
            group.name.clone(),
            group.graphs.to_string(),
            group.correct.to_string(),
            ratio_text(group.score),
            percent(group.fast_1),
            optional_ratio(group.mean),
        ]);
    }
    out.close_table();
}

fn failures(results: &[ResultRow], out: &mut Markup) {
    let mut kinds: BTreeMap<&str, Vec<&ResultRow>> = BTreeMap::new();
    for row in results.iter().filter(|row| row.verdict != "correct") {
        kinds.entry(&row.verdict).or_default().push(row);
    }
    if kinds.is_empty() {
        return;
    }
    out.element("h2", &[], "Graphs that are not right");
    for (kind, rows) in kinds {
        out.open("details", &[]);
        out.element("summary", &[], &format!("{kind}: {}", count(rows.len(), "graph")));
        out.open("ul", &[]);
        for row in rows.iter().take(FAILURES) {
            out.element("li", &[], &format!("{}/{}: {}", row.task_name, row.graph, row.evidence));
        }
        if let Some(more) = rows.len().checked_sub(FAILURES).filter(|more| *more > 0) {
            out.element("li", &[("class", "soft")], &format!("and {more} more"));
        }
        out.close("ul");
        out.close("details");
    }
}

fn attempts(entry: &Entry, detail: &Detail, links: &Links, out: &mut Markup) {
    let Some(agent) = &detail.agent else { return };
    out.element("h2", &[], "The model's work");
    let cost = agent.cost.map_or("not known".into(), |cost| format!("{cost:.2} $"));
    facts(
        &[
            ("Model", agent.model.clone()),
            (
                "Attempts",
                format!(
                    "{} at {}, {} steps",
                    agent.attempts,
                    count(agent.tasks, "task"),
                    agent.steps
                ),
            ),
            ("Tokens", format!("{} in, {} out", agent.input_tokens, agent.output_tokens)),
            ("Cost", cost),
            ("Time", format!("{:.0} s of models and tools", agent.seconds)),
        ],
        out,
    );
    if detail.attempts.is_empty() {
        return;
    }
    out.open("ul", &[]);
    for (index, (task, attempt)) in detail.attempts.iter().enumerate() {
        out.open("li", &[]);
        let text = format!("{task}, attempt {}", u64::from(*attempt) + 1);
        link(links, &Route::Attempt(entry.id.clone(), index), &text, out);
        out.close("li");
    }
    out.close("ul");
}

/// Other runs of the same ranking, to be held against this one.
fn others(pages: &Pages<'_>, entry: &Entry, links: &Links, out: &mut Markup) -> Result<(), Error> {
    let Some(board) = pages.store.board(&entry.board())? else { return Ok(()) };
    let filter = Filter { state: Some(EntryState::Listed), limit: OTHERS, ..Filter::default() };
    let (entries, _) = pages.store.entries(&board, &filter)?;
    let place = entries.iter().position(|other| other.id == entry.id);
    // On a disk there is one page for every two standing runs, from the lower to the higher.
    if entries.len() < 2 || (pages.is_static && place.is_none()) {
        return Ok(());
    }
    out.element("h2", &[], "Compare");
    out.open("ul", &[]);
    if let Some(route) = place.and_then(|place| matrix_route(pages, &entries, place)) {
        out.open("li", &[]);
        link(links, &route, "All of the ranking against this one, task by task", out);
        out.close("li");
    }
    for (index, other) in entries.iter().enumerate().filter(|(_, other)| other.id != entry.id) {
        let (one, two) = match place.is_none_or(|place| index < place) {
            true => (entry, other),
            false => (other, entry),
        };
        out.open("li", &[]);
        let route = Route::Compare(one.id.clone(), two.id.clone());
        link(links, &route, &format!("From {} to {}", one.name, two.name), out);
        out.close("li");
    }
    out.close("ul");
    Ok(())
}

fn origin(pages: &Pages<'_>, entry: &Entry, detail: &Detail, links: &Links, out: &mut Markup) {
    out.element("h2", &[], "Where it comes from");
    let mut rows: Vec<(&str, String)> =
        detail.conditions.iter().map(|text| ("Conditions", text.clone())).collect();
    rows.extend([
        ("Begun", date(entry.time)),
        ("Noise floor", percent(detail.noise)),
        (
            "Decided",
            format!("{} faster, {} tied, {} slower", detail.faster, detail.tied, detail.slower),
        ),
        ("AS as the reference counts", optional_ratio(detail.reference)),
        ("Time", format!("{:.1} s", detail.seconds)),
        ("Record", format!("{}, bundle {}", detail.seal, entry.digest)),
    ]);
    if let Some(key) = &entry.public_key {
        rows.push(("Signed by", key.clone()));
    }
    facts(&rows, out);
    out.element("p", &[], "To make such a run:");
    out.open("pre", &[]);
    out.element("code", &[], &detail.command);
    out.close("pre");
    if !pages.is_static {
        out.open("p", &[]);
        let href = links.to_path(&format!("api/v1/bundles/{}", entry.digest));
        out.inline("a", &[("href", &href), ("download", "")], "Its bundle");
        out.text(", which `passnet bundle verify` finds again from raw samples.");
        out.close("p");
    }
}
