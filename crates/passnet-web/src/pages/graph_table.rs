//! A list of the dataset's graphs, a page at a time.

use super::links::Links;
use super::route::{Route, shelf_route};
use super::shared::{link, open_sortable};
use crate::store::{CorpusGraph, Shelf};
use passnet_bench::report::html::markup::Markup;

/// Graphs on one page.
pub(crate) const ROWS: usize = 200;

/// The first digits of what is mostly a digest.
fn short(name: &str) -> String {
    name.chars().take(12).collect()
}

/// Graphs, one row each.
pub(super) fn table(links: &Links, graphs: &[CorpusGraph], is_whole: bool, out: &mut Markup) {
    if is_whole {
        out.open("form", &[("class", "filter"), ("role", "search"), ("hidden", "")]);
        out.open("label", &[]);
        out.text("Part of a path, a family or a task");
        out.void("input", &[("type", "search"), ("data-filters", "graphs")]);
        out.close("label");
        out.close("form");
    }
    let caption = "Graphs by path; graphs of one structure share a digest";
    let heads = ["graph", "kind", "family", "task", "operations", "structure"];
    open_sortable(
        "graphs",
        is_whole,
        caption,
        &heads.map(|title| (title, title == "operations")),
        out,
    );
    for graph in graphs {
        out.open("tr", &[]);
        out.open("th", &[("scope", "row")]);
        link(links, &Route::Graph(graph.number), &graph.path, out);
        out.close("th");
        out.element("td", &[], &graph.kind);
        out.element("td", &[], &graph.family);
        out.open("td", &[]);
        match &graph.task {
            Some(task) => link(links, &shelf_route(Shelf::Task, task), &short(task), out),
            None => out.text("-"),
        }
        out.close("td");
        out.element("td", &[("class", "n")], &graph.operations.to_string());
        out.open("td", &[]);
        let route = shelf_route(Shelf::Structure, &graph.structure);
        link(links, &route, &short(&graph.structure), out);
        out.close("td");
        out.close("tr");
    }
    out.close_table();
}

/// To the graphs before and after.
pub(super) fn steps(page: usize, all: usize, address: impl Fn(usize) -> String, out: &mut Markup) {
    let last = all.div_ceil(ROWS).max(1);
    if last == 1 {
        return;
    }
    out.open("nav", &[("aria-label", "Pages of the graphs")]);
    out.open("p", &[]);
    if page > 1 {
        out.element("a", &[("href", &address(page - 1)), ("rel", "prev")], "Before");
        out.text(" ");
    }
    out.text(&format!("Page {page} of {last}. "));
    if page < last {
        out.element("a", &[("href", &address(page + 1)), ("rel", "next")], "Next");
    }
    out.close("p");
    out.close("nav");
}
