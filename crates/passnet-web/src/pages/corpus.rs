//! The dataset: its graphs, one graph.

use super::links::Links;
use super::route::{Query, Route};
use super::shared::{count, facts, link, open_sortable};
use super::shelves::{self, shelf_route};
use super::{Page, Pages, drawing};
use crate::Error;
use crate::bundle::parse_model;
use crate::store::{CorpusGraph, Shelf, operation_name};
use passnet_bench::report::html::markup::Markup;
use passnet_bench::report::html::source;
use passnet_graph::Graph;
use std::collections::BTreeSet;

/// Graphs on one page.
pub(crate) const ROWS: usize = 200;

pub(super) fn write(
    pages: &Pages<'_>,
    links: &Links,
    query: &Query,
    page: usize,
) -> Result<Page, Error> {
    let skip = page.saturating_sub(1).saturating_mul(ROWS);
    let (graphs, all) = pages.store.corpus(None, skip, ROWS)?;
    let mut out = Markup::default();
    out.element("h1", &[], "Dataset");
    if all == 0 {
        out.element("p", &[], "This site has no dataset; `--dataset FILE.pnds` names one.");
        return Ok(Page { title: "Dataset".into(), body: out });
    }
    out.element("p", &[], &format!("{}.", count(all, "graph")));
    shelves::search(links, &pages.store.shelf(Shelf::Operation)?, "", &mut out);
    shelves::overview(pages, links, &mut out)?;
    let address = |page: usize| match (pages.is_static, page) {
        (false, page) => query.with(&[("page", &page.to_string())]),
        (true, 1) => links.to(&Route::Dataset),
        (true, page) => links.to(&Route::DatasetPage(page)),
    };
    table(links, &graphs, graphs.len() == all, &mut out);
    steps(page, all, address, &mut out);
    Ok(Page { title: "Dataset".into(), body: out })
}

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

pub(super) fn write_graph(
    pages: &Pages<'_>,
    links: &Links,
    number: usize,
) -> Result<Option<Page>, Error> {
    let Some((graph, model)) = pages.store.corpus_graph(number)? else { return Ok(None) };
    let mut out = Markup::default();
    out.element("h1", &[], &graph.path);
    out.open("p", &[]);
    link(links, &Route::Dataset, "All graphs", &mut out);
    out.close("p");
    facts(&[("Kind", graph.kind.clone()), ("Family", graph.family.clone())], &mut out);
    let parsed = parse_model(model.clone().into_bytes()).ok();
    let operations: BTreeSet<String> =
        parsed.iter().flat_map(Graph::calls).map(|(_, call)| operation_name(call)).collect();
    out.open("ul", &[]);
    let shelved =
        [(Shelf::Task, graph.task.as_deref()), (Shelf::Structure, Some(&*graph.structure))];
    for (shelf, name) in shelved {
        let Some(name) = name else { continue };
        out.open("li", &[]);
        out.text(&format!("All graphs of its {}: ", shelf.name()));
        link(links, &shelf_route(shelf, name), name, &mut out);
        out.close("li");
    }
    if !operations.is_empty() {
        out.open("li", &[]);
        out.text(&format!(
            "{}: ",
            count(usize::try_from(graph.operations).unwrap_or(0), "operation")
        ));
        for (index, name) in operations.iter().enumerate() {
            out.text(if index > 0 { ", " } else { "" });
            link(links, &shelf_route(Shelf::Operation, name), name, &mut out);
        }
        out.close("li");
    }
    out.close("ul");
    if let Some(parsed) = &parsed {
        drawing::draw("The graph", parsed, &|_| false, &mut out);
    }
    out.element("h2", &[], "Source");
    source(&model, &mut out);
    Ok(Some(Page { title: graph.path, body: out }))
}
