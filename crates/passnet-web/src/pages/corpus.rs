//! The dataset: its operations, its graphs, one graph.

use super::links::Links;
use super::route::{Query, Route, encoded};
use super::shared::{count, facts, link};
use super::{Page, Pages, drawing, highlight};
use crate::Error;
use crate::bundle::parse_model;
use crate::store::OperationCount;
use passnet_bench::report::html::markup::Markup;

/// Graphs on one page.
pub(crate) const ROWS: usize = 200;

pub(super) fn write(
    pages: &Pages<'_>,
    links: &Links,
    query: &Query,
    page: usize,
) -> Result<Page, Error> {
    let operation = query.get("op");
    let skip = page.saturating_sub(1).saturating_mul(ROWS);
    let (graphs, all) = pages.store.corpus(operation, skip, ROWS)?;
    let operations = pages.store.operations()?;
    let mut out = Markup::default();
    out.element("h1", &[], "Dataset");
    if operations.is_empty() {
        out.element("p", &[], "This site has no dataset; `--dataset FILE.pnds` names one.");
        return Ok(Page { title: "Dataset".into(), body: out });
    }
    let what = match operation.is_empty() {
        true => String::new(),
        false => format!(" with {operation}"),
    };
    out.element("p", &[], &format!("{}{what}.", count(all, "graph")));
    search(pages, &operations, operation, &mut out);
    out.open("div", &[("class", "wide")]);
    let mut attributes = vec![("id", "graphs")];
    if graphs.len() == all {
        attributes.push(("data-whole", ""));
    }
    out.open("table", &attributes);
    out.element("caption", &[], "Graphs by path; graphs of one structure share a digest");
    out.open("thead", &[]);
    out.open("tr", &[]);
    for title in ["graph", "kind", "family", "task", "operations", "structure"] {
        out.element("th", &[("scope", "col")], title);
    }
    out.close("tr");
    out.close("thead");
    out.open("tbody", &[]);
    for graph in &graphs {
        out.open("tr", &[]);
        out.open("th", &[("scope", "row")]);
        let number = pages.store.corpus_number(&graph.path)?;
        link(links, &Route::Graph(number), &graph.path, &mut out);
        out.close("th");
        out.element("td", &[], &graph.kind);
        out.element("td", &[], &graph.family);
        out.element("td", &[], graph.task.as_deref().unwrap_or("-"));
        out.element("td", &[("class", "n")], &graph.operations.to_string());
        let digest: String = graph.structure.chars().take(12).collect();
        out.open("td", &[]);
        out.element("code", &[], &digest);
        out.close("td");
        out.close("tr");
    }
    out.close("tbody");
    out.close("table");
    out.close("div");
    steps(pages, links, query, page, all, &mut out);
    if page == 1 {
        operation_table(pages, &operations, &mut out);
    }
    Ok(Page { title: "Dataset".into(), body: out })
}

fn search(pages: &Pages<'_>, operations: &[OperationCount], chosen: &str, out: &mut Markup) {
    out.open("form", &[("class", "filter"), ("method", "get"), ("role", "search")]);
    out.open("label", &[]);
    if pages.is_static {
        out.text("Part of a path, a family or a task");
        out.void("input", &[("type", "search"), ("data-filters", "graphs")]);
        out.close("label");
    } else {
        out.text("Operation");
        let attributes =
            [("name", "op"), ("value", chosen), ("list", "operations"), ("type", "search")];
        out.void("input", &attributes);
        out.close("label");
        out.open("datalist", &[("id", "operations")]);
        for operation in operations {
            out.void("option", &[("value", &operation.operation)]);
        }
        out.close("datalist");
        out.element("button", &[], "Show");
    }
    out.close("form");
}

/// To the graphs before and after: by a question on a server, by a page of its own on a disk.
fn steps(
    pages: &Pages<'_>,
    links: &Links,
    query: &Query,
    page: usize,
    all: usize,
    out: &mut Markup,
) {
    let last = all.div_ceil(ROWS).max(1);
    if last == 1 {
        return;
    }
    let address = |page: usize| match (pages.is_static, page) {
        (false, page) => query.with(&[("page", &page.to_string())]),
        (true, 1) => links.to(&Route::Dataset),
        (true, page) => links.to(&Route::DatasetPage(page)),
    };
    out.open("p", &[]);
    if page > 1 {
        out.element("a", &[("href", &address(page - 1))], "Before");
        out.text(" ");
    }
    out.text(&format!("Page {page} of {last}. "));
    if page < last {
        out.element("a", &[("href", &address(page + 1))], "Next");
    }
    out.close("p");
}

fn operation_table(pages: &Pages<'_>, operations: &[OperationCount], out: &mut Markup) {
    out.element("h2", &[], "Operations");
    out.open("div", &[("class", "wide")]);
    out.open("table", &[("data-whole", "")]);
    out.element("caption", &[], "The most used first");
    out.open("thead", &[]);
    out.open("tr", &[]);
    for (title, class) in [("operation", ""), ("graphs", "n"), ("calls", "n")] {
        out.open("th", &[("scope", "col"), ("class", class)]);
        out.element("button", &[("type", "button")], title);
        out.close("th");
    }
    out.close("tr");
    out.close("thead");
    out.open("tbody", &[]);
    for operation in operations {
        out.open("tr", &[]);
        out.open("th", &[("scope", "row")]);
        match pages.is_static {
            true => out.text(&operation.operation),
            false => {
                let href = format!("?op={}", encoded(&operation.operation));
                out.element("a", &[("href", &href)], &operation.operation);
            }
        }
        out.close("th");
        out.element("td", &[("class", "n")], &operation.graphs.to_string());
        out.element("td", &[("class", "n")], &operation.calls.to_string());
        out.close("tr");
    }
    out.close("tbody");
    out.close("table");
    out.close("div");
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
    facts(
        &[
            ("Kind", graph.kind.clone()),
            ("Family", graph.family.clone()),
            ("Task", graph.task.clone().unwrap_or_else(|| "-".into())),
            ("Operations", graph.operations.to_string()),
            ("Structure", graph.structure.clone()),
        ],
        &mut out,
    );
    if let Ok(parsed) = parse_model(model.clone().into_bytes()) {
        drawing::draw("The graph", &parsed, &|_| false, &mut out);
    }
    out.element("h2", &[], "Source");
    highlight::source(&model, &mut out);
    Ok(Some(Page { title: graph.path, body: out }))
}
