//! Runs task by task.

use super::super::{GraphDifference, Matrix, MatrixCell, MatrixTask, ratio_text};
use super::markup::Markup;
use super::parts::{CELLS, graph_cell, optional_ratio, sentence};
use crate::stats::Decision;

/// How each run as a whole compares with the first; `name` writes what a run is called.
pub fn matrix_runs(found: &Matrix, name: impl Fn(usize, &mut Markup), page: &mut Markup) {
    page.open_table("Every run held against the first", &["run", "AS", "AS against the first run"]);
    for (index, run) in found.runs.iter().enumerate() {
        page.open("tr", &[]);
        page.open("th", &[("scope", "row")]);
        name(index, page);
        page.close("th");
        page.element("td", &[], &optional_ratio(run.aggregated));
        let text = match (index, run.unlike, &run.score) {
            (0, ..) => "the others are held against this one".to_string(),
            (_, true, _) => "unlike the first: only verdicts are compared".to_string(),
            (_, false, Some(overall)) => sentence(overall),
            (_, false, None) => "no graph in common".to_string(),
        };
        page.element("td", &[], &text);
        page.close("tr");
    }
    page.close_table();
}

/// Some tasks of a matrix, one row each; `more` may add to the cell of a run and a task.
pub fn matrix(
    found: &Matrix,
    tasks: &[MatrixTask],
    more: impl Fn(usize, &str, &mut Markup),
    page: &mut Markup,
) {
    let names = found.runs.iter().map(|run| run.run.as_str());
    let heads: Vec<&str> = ["task", "graphs that differ"].into_iter().chain(names).collect();
    let caption = format!(
        "The most differences from the first run first, beyond noise. The mean speed-up of the right graphs, how many \
         are better and worse than in the first run. {CELLS}; framed where it differs"
    );
    page.open_table(&caption, &heads);
    for task in tasks {
        page.open("tr", &[]);
        page.element("th", &[("scope", "row")], &task.task);
        page.element("td", &[], &task.differences.to_string());
        for (index, cell) in task.cells.iter().enumerate() {
            page.open("td", &[]);
            match cell {
                Some(cell) => {
                    one_cell(cell, page);
                    more(index, &task.task, page);
                }
                None => page.element("span", &[("class", "soft")], "not run"),
            }
            page.close("td");
        }
        page.close("tr");
    }
    page.close_table();
}

fn one_cell(cell: &MatrixCell, page: &mut Markup) {
    page.text(&cell.geometric_mean.map_or("none right".into(), ratio_text));
    for (graphs, class, word) in [(cell.better, "right", "better"), (cell.worse, "wrong", "worse")]
    {
        if graphs > 0 {
            page.text(" ");
            page.element("span", &[("class", class)], &format!("{graphs} {word}"));
        }
    }
    page.open("div", &[("class", "cells")]);
    for graph in &cell.graphs {
        let decision = graph.decision.map(Decision::name);
        let (class, sign) = graph_cell(graph.verdict.name(), decision);
        match graph.difference.map(GraphDifference::text) {
            Some(text) => {
                let class = format!("{class} differs");
                page.element("i", &[("class", &class), ("title", text)], sign);
            }
            None => page.element("i", &[("class", class)], sign),
        }
    }
    page.close("div");
}
