//! The dataset: its graphs, one graph.

use super::graph_table::{ROWS, steps, table};
use super::links::Links;
use super::route::{Query, Route, shelf_route};
use super::shared::{count, facts, link};
use super::shelves;
use super::{Page, Pages, drawing};
use crate::Error;
use crate::bundle::parse_model;
use crate::store::{Shelf, operation_name};
use passnet_bench::report::html::markup::Markup;
use passnet_bench::report::html::source;
use passnet_graph::Graph;
use std::collections::BTreeSet;

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
