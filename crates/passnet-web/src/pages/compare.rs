//! Run against run: significant differences first, then every task.

use super::links::Links;
use super::route::Route;
use super::shared::{cell, link, run_of};
use super::{Page, Pages};
use crate::Error;
use crate::store::{Entry, ResultRow};
use passnet_bench::report::html::markup::Markup;
use passnet_bench::report::html::{chart, comparison};
use passnet_bench::report::{Change, Comparison, RunRecord, compare, ratio_text};
use passnet_bench::score::Parameters;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Pairs that are shown of each kind; the matrix has all.
const PAIRS: usize = 60;

pub(super) fn write(
    pages: &Pages<'_>,
    links: &Links,
    one: &str,
    two: &str,
) -> Result<Option<Page>, Error> {
    let (Some(one), Some(two)) = (pages.store.entry(one)?, pages.store.entry(two)?) else {
        return Ok(None);
    };
    let (Some(before), Some(after)) = (run(pages, &one)?, run(pages, &two)?) else {
        return Ok(None);
    };
    let mut found = compare(&before, &after, Parameters::default());
    let mut out = Markup::default();
    out.element("h1", &[], &format!("{} against {}", two.name, one.name));
    out.open("p", &[]);
    link(links, &Route::Run(one.id.clone()), &one.name, &mut out);
    out.text(" · ");
    link(links, &Route::Run(two.id.clone()), &two.name, &mut out);
    out.close("p");
    curves(&found, &mut out);
    let changed = changed_tasks(&found);
    let left_out = cut(&mut found);
    comparison(&found, &mut out);
    if left_out > 0 {
        let text = format!("{left_out} more graphs are in the matrix below.");
        out.element("p", &[("class", "soft")], &text);
    }
    matrix(pages, links, (&one, &two), &changed, &mut out)?;
    Ok(Some(Page { title: format!("{} against {}", two.name, one.name), body: out }))
}

fn run(pages: &Pages<'_>, entry: &Entry) -> Result<Option<RunRecord>, Error> {
    match pages.store.bundle(&entry.digest)? {
        Some(bundle) => run_of(&bundle).map(Some),
        None => Ok(None),
    }
}

fn curves(found: &Comparison, out: &mut Markup) {
    let (Some(before), Some(after)) = (&found.before.common, &found.after.common) else { return };
    out.open("figure", &[]);
    let both = [
        (found.before.run.as_str(), before.es.iter().collect()),
        (found.after.run.as_str(), after.es.iter().collect()),
    ];
    chart::curves(&both, out);
    let caption = format!(
        "ES(t) over the graphs that both have: {} (first colour), AS {}; {}, AS {}.",
        found.before.run,
        ratio_text(before.aggregated),
        found.after.run,
        ratio_text(after.aggregated)
    );
    out.element("figcaption", &[], &caption);
    out.close("figure");
}

/// Keeps what matters most; gives how much was left out.
fn cut(found: &mut Comparison) -> usize {
    let mut left_out = 0;
    left_out += found.pairs.len().saturating_sub(PAIRS);
    found.pairs.truncate(PAIRS);
    left_out += found.verdicts.len().saturating_sub(PAIRS);
    found.verdicts.truncate(PAIRS);
    for names in [&mut found.only_before, &mut found.only_after, &mut found.other_models] {
        left_out += names.len().saturating_sub(PAIRS);
        names.truncate(PAIRS);
    }
    left_out
}

/// How many graphs of each task changed by more than noise, in speed or in verdict.
fn changed_tasks(found: &Comparison) -> BTreeMap<String, usize> {
    let speed = found.pairs.iter().filter(|pair| pair.change != Change::Same);
    let names = speed.map(|pair| &pair.name).chain(found.verdicts.iter().map(|it| &it.name));
    let mut changed = BTreeMap::new();
    for name in names {
        *changed.entry(name.sample.clone()).or_default() += 1;
    }
    changed
}

/// Every task of both runs, one row each; those with the most changes first.
fn matrix(
    pages: &Pages<'_>,
    links: &Links,
    (one, two): (&Entry, &Entry),
    changed: &BTreeMap<String, usize>,
    out: &mut Markup,
) -> Result<(), Error> {
    let by_task = |entry: &Entry| -> Result<BTreeMap<String, (usize, Vec<ResultRow>)>, Error> {
        let mut tasks: BTreeMap<String, (usize, Vec<ResultRow>)> = BTreeMap::new();
        for row in pages.store.results(entry)? {
            let task = tasks.entry(row.task_name.clone()).or_insert((row.task, Vec::new()));
            task.1.push(row);
        }
        Ok(tasks)
    };
    let (before, after) = (by_task(one)?, by_task(two)?);
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let mut names: Vec<(usize, &String)> =
        names.into_iter().map(|name| (changed.get(name).copied().unwrap_or(0), name)).collect();
    names.sort_by_key(|(changes, name)| (Reverse(*changes), *name));
    out.element("h2", &[], "Every task");
    out.open_table(
        "The most changed first. One cell for each graph: + faster than eager, = not told from it, - slower, x wrong \
         or failed",
        &["task", "graphs that changed", &one.name, &two.name],
    );
    for (changes, name) in names {
        out.open("tr", &[]);
        out.element("th", &[("scope", "row")], name);
        out.element("td", &[("class", "n")], &changes.to_string());
        for (entry, tasks) in [(one, &before), (two, &after)] {
            out.open("td", &[]);
            if let Some((task, rows)) = tasks.get(name) {
                out.open("div", &[("class", "cells")]);
                for row in rows {
                    let (class, sign) = cell(&row.verdict, row.decision.as_deref());
                    out.element("i", &[("class", class)], sign);
                }
                out.close("div");
                link(links, &Route::Task(entry.id.clone(), *task), "graphs", out);
            }
            out.close("td");
        }
        out.close("tr");
    }
    out.close_table();
    Ok(())
}
