//! Any number of runs task by task, each held against the first.

use super::links::Links;
use super::route::Route;
use super::shared::{badges, link, run_of};
use super::{Page, Pages};
use crate::Error;
use crate::store::Entry;
use passnet_bench::report::html::markup::Markup;
use passnet_bench::report::html::{self, matrix_runs};
use passnet_bench::report::{Matrix, MatrixTask, RunRecord, matrix};
use passnet_bench::score::Parameters;
use std::collections::BTreeMap;
use std::ops::Range;

/// What one page holds: the cell of a task weighs as much as those of some graphs.
const MOST: usize = 10_000;
const OF_A_TASK: usize = 5;
/// Rankings up to this size have a page for every run on a disk, on which the others are held against it.
const EACH_FIRST: usize = 8;

/// Entries with their runs, and where each has its tasks.
pub(super) struct EntryRuns {
    pub entries: Vec<Entry>,
    pub runs: Vec<RunRecord>,
    tasks: Vec<BTreeMap<String, usize>>,
}

/// `None` where an entry or its bundle is not there.
pub(super) fn read(pages: &Pages<'_>, ids: &[String]) -> Result<Option<EntryRuns>, Error> {
    let mut chosen = EntryRuns { entries: Vec::new(), runs: Vec::new(), tasks: Vec::new() };
    for id in ids {
        let Some(entry) = pages.store.entry(id)? else { return Ok(None) };
        let Some(bundle) = pages.store.bundle(&entry.digest)? else { return Ok(None) };
        chosen.runs.push(run_of(&bundle)?);
        let tasks = pages.store.detail(&entry)?.tasks.into_iter().enumerate();
        chosen.tasks.push(tasks.map(|(number, task)| (task.name, number)).collect());
        chosen.entries.push(entry);
    }
    Ok(Some(chosen))
}

/// The same for machines.
pub(crate) fn compared(pages: &Pages<'_>, ids: &[String]) -> Result<Option<Matrix>, Error> {
    Ok(read(pages, ids)?.map(|chosen| matrix(&chosen.runs, Parameters::default())))
}

/// The page on which the others are held against one of these, of which the best comes first; every way leads to one
/// address. On a disk large rankings have the one page on which all are held against the best.
pub(crate) fn matrix_route(pages: &Pages<'_>, entries: &[Entry], first: usize) -> Option<Route> {
    let is_there = !pages.is_static || first == 0 || entries.len() <= EACH_FIRST;
    if entries.len() < 2 || !is_there {
        return None;
    }
    let mut others: Vec<&Entry> = entries.iter().collect();
    let first = others.remove(first);
    others.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.number.cmp(&b.number)));
    let ids = [first].into_iter().chain(others).map(|entry| entry.id.clone());
    Some(Route::Matrix(ids.collect(), 1))
}

pub(super) fn write(
    pages: &Pages<'_>,
    links: &Links,
    ids: &[String],
    page: usize,
) -> Result<Option<Page>, Error> {
    let Some(chosen) = read(pages, ids)? else { return Ok(None) };
    let found = matrix(&chosen.runs, Parameters::default());
    let all = pages_of(&found.tasks);
    let Some(shown) = page.checked_sub(1).and_then(|index| all.get(index)) else {
        return Ok(None);
    };
    let title = format!("{} runs, task by task", ids.len());
    let mut out = Markup::default();
    out.element("h1", &[], &title);
    let name = |index: usize, out: &mut Markup| {
        let entry = &chosen.entries[index];
        link(links, &Route::Run(entry.id.clone()), &entry.name, out);
        out.text(&format!(" by {} ", entry.author));
        badges(entry, links, out);
        let route = matrix_route(pages, &chosen.entries, index).filter(|_| index > 0);
        if let Some(route) = route {
            out.void("br", &[]);
            link(links, &route, "Hold the others against it", out);
        }
    };
    matrix_runs(&found, name, &mut out);
    out.element("h2", &[], "Every task");
    rows(&chosen, &found, shown.clone(), links, &mut out);
    steps(ids, page, all.len(), links, &mut out);
    Ok(Some(Page { title, body: out }))
}

/// These tasks of a matrix, with links to the pages of each run.
fn rows(chosen: &EntryRuns, found: &Matrix, shown: Range<usize>, links: &Links, out: &mut Markup) {
    let task_link = |run: usize, task: &str, out: &mut Markup| {
        if let Some(number) = chosen.tasks[run].get(task) {
            link(links, &Route::Task(chosen.entries[run].id.clone(), *number), "graphs", out);
        }
    };
    html::matrix(found, &found.tasks[shown], task_link, out);
}

/// All tasks of two runs, below what else is said about them; the rest has pages of its own.
pub(super) fn below(chosen: &EntryRuns, links: &Links, out: &mut Markup) {
    let found = matrix(&chosen.runs, Parameters::default());
    let all = pages_of(&found.tasks);
    let Some(first) = all.first() else { return };
    out.element("h2", &[], "Every task");
    rows(chosen, &found, first.clone(), links, out);
    let ids: Vec<String> = chosen.entries.iter().map(|entry| entry.id.clone()).collect();
    steps(&ids, 1, all.len(), links, out);
}

/// Which tasks are on which page.
fn pages_of(tasks: &[MatrixTask]) -> Vec<Range<usize>> {
    let weight = |task: &MatrixTask| -> usize {
        let graphs = task.cells.iter().flatten().map(|cell| cell.graphs.len());
        graphs.sum::<usize>() + OF_A_TASK * task.cells.len()
    };
    let mut pages: Vec<Range<usize>> = Vec::new();
    let mut left = 0;
    for (index, task) in tasks.iter().enumerate() {
        let weight = weight(task);
        match pages.last_mut().filter(|_| weight <= left) {
            Some(page) => page.end = index + 1,
            None => {
                pages.push(index..index + 1);
                left = MOST;
            }
        }
        left = left.saturating_sub(weight);
    }
    pages
}

fn steps(ids: &[String], page: usize, all: usize, links: &Links, out: &mut Markup) {
    if all < 2 {
        return;
    }
    out.open("nav", &[("aria-label", "Pages of the tasks")]);
    out.open("p", &[]);
    let to = |page: usize| links.to(&Route::Matrix(ids.to_vec(), page));
    if page > 1 {
        out.element("a", &[("href", &to(page - 1)), ("rel", "prev")], "More differences");
        out.text(" ");
    }
    out.text(&format!("Page {page} of {all}. "));
    if page < all {
        out.element("a", &[("href", &to(page + 1)), ("rel", "next")], "Fewer differences");
    }
    out.close("p");
    out.close("nav");
}

#[cfg(test)]
mod tests {
    use super::*;
    use passnet_bench::report::{MatrixCell, MatrixGraph};
    use passnet_bench::verdict::VerdictKind;

    fn task(runs: usize, graphs: usize) -> MatrixTask {
        let graph = MatrixGraph {
            graph: String::new(),
            verdict: VerdictKind::Correct,
            decision: None,
            speedup: None,
            difference: None,
        };
        let graphs = vec![graph; graphs];
        let cell = MatrixCell { right: 0, geometric_mean: None, better: 0, worse: 0, graphs };
        MatrixTask { task: String::new(), differences: 0, cells: vec![Some(cell); runs] }
    }

    #[test]
    fn every_task_is_on_one_page_and_no_page_is_too_heavy() {
        for (tasks, runs, graphs) in
            [(0, 2, 1), (1, 2, 1), (400, 2, 2), (400, 20, 2), (3, 2, 90_000)]
        {
            let tasks = vec![task(runs, graphs); tasks];
            let pages = pages_of(&tasks);
            let shown: Vec<usize> = pages.iter().cloned().flatten().collect();
            assert_eq!(shown, (0..tasks.len()).collect::<Vec<_>>());
            for page in pages {
                let weight = page.len() * runs * (graphs + OF_A_TASK);
                assert!(weight <= MOST || page.len() == 1, "{weight}");
            }
        }
        assert_eq!(pages_of(&vec![task(2, 2); 400]).len(), 1);
    }
}
