//! The dataset by operation, by task, by structure: what there is, and the graphs with one of it.

use super::graph_table::{ROWS, steps, table};
use super::links::Links;
use super::route::{Query, Route, shelf_route, slug};
use super::shared::{count, link, open_sortable};
use super::{Page, Pages};
use crate::Error;
use crate::store::{Shelf, Shelved, Store};
use passnet_bench::report::html::markup::Markup;

/// Names of a shelf on one page; the others are found through their graphs.
const NAMES: usize = 800;
/// Where the names of a shelf stand.
const TABLE: &str = "names";

/// Where a question for an operation leads: to its graphs where there is one of that name, otherwise to those with such a
/// name.
pub(crate) fn searched(store: &Store, text: &str) -> Result<Option<Route>, Error> {
    let text = text.trim();
    let names = store.shelf(Shelf::Operation)?;
    let found = names.iter().find(|shelved| shelved.name.eq_ignore_ascii_case(text));
    Ok(found.map(|shelved| shelf_route(Shelf::Operation, &shelved.name)))
}

/// Leads to each shelf.
pub(super) fn overview(pages: &Pages<'_>, links: &Links, out: &mut Markup) -> Result<(), Error> {
    out.open("ul", &[]);
    for shelf in Shelf::ALL {
        let names = pages.store.shelf(shelf)?.len();
        out.open("li", &[]);
        link(links, &Route::Shelves(shelf), &format!("By {}", shelf.name()), out);
        out.text(&format!(": {}", count(names, shelf.name())));
        out.close("li");
    }
    out.close("ul");
    Ok(())
}

/// Asks for an operation. A server answers with its graphs; on a disk the list of operations opens, and its script finds
/// the one that was asked for.
pub(super) fn search(links: &Links, operations: &[Shelved], text: &str, out: &mut Markup) {
    let action = links.to(&Route::Shelves(Shelf::Operation));
    let attributes =
        [("class", "filter"), ("method", "get"), ("role", "search"), ("action", &*action)];
    out.open("form", &attributes);
    out.open("label", &[]);
    out.text("Operation");
    let attributes = [
        ("name", "op"),
        ("value", text),
        ("list", "operations"),
        ("type", "search"),
        ("data-leads", TABLE),
    ];
    out.void("input", &attributes);
    out.close("label");
    out.open("datalist", &[("id", "operations")]);
    for operation in operations {
        out.void("option", &[("value", &operation.name)]);
    }
    out.close("datalist");
    out.element("button", &[], "Show");
    out.close("form");
}

/// All names of a shelf, or those that hold a text.
pub(super) fn write(
    pages: &Pages<'_>,
    links: &Links,
    shelf: Shelf,
    query: &Query,
) -> Result<Page, Error> {
    let title = match shelf {
        Shelf::Operation => "Operations",
        Shelf::Task => "Tasks",
        Shelf::Structure => "Structures",
    };
    let names = pages.store.shelf(shelf)?;
    let mut out = Markup::default();
    out.element("h1", &[], &format!("{title} of the dataset"));
    out.open("p", &[]);
    link(links, &Route::Dataset, "All graphs", &mut out);
    out.close("p");
    let wanted = query.get("op").trim().to_lowercase();
    let text = if shelf == Shelf::Operation { wanted.as_str() } else { "" };
    if shelf == Shelf::Operation {
        search(links, &names, query.get("op"), &mut out);
    }
    let fits = |shelved: &&Shelved| text.is_empty() || shelved.name.to_lowercase().contains(text);
    let found: Vec<&Shelved> = names.iter().filter(fits).collect();
    if !text.is_empty() {
        let number = count(found.len(), shelf.name());
        out.element("p", &[], &format!("{number} with \u{201c}{text}\u{201d} in the name."));
    }
    let caption = match found.len() > NAMES {
        true => format!(
            "The most used first; {} more are found through their graphs",
            found.len() - NAMES
        ),
        false => "The most used first".to_string(),
    };
    let last = if shelf == Shelf::Operation { "calls" } else { "operations in all" };
    let heads = [(shelf.name(), false), ("graphs", true), (last, true)];
    open_sortable(TABLE, true, &caption, &heads, &mut out);
    for shelved in found.iter().take(NAMES) {
        out.open("tr", &[]);
        out.open("th", &[("scope", "row")]);
        link(links, &shelf_route(shelf, &shelved.name), &shelved.name, &mut out);
        out.close("th");
        out.element("td", &[("class", "n")], &shelved.graphs.to_string());
        out.element("td", &[("class", "n")], &shelved.calls.to_string());
        out.close("tr");
    }
    out.close_table();
    Ok(Page { title: format!("{title} of the dataset"), body: out })
}

/// Most names are their own slugs; only for the others all have to be gone through.
fn name_behind(store: &Store, shelf: Shelf, slug_of: &str) -> Result<Option<String>, Error> {
    if slug(slug_of) == slug_of {
        return Ok(Some(slug_of.to_string()));
    }
    let names = store.shelf(shelf)?;
    Ok(names.into_iter().map(|shelved| shelved.name).find(|name| slug(name) == slug_of))
}

/// The graphs with one name of a shelf.
pub(super) fn write_one(
    pages: &Pages<'_>,
    links: &Links,
    (shelf, slug): (Shelf, &str),
    query: &Query,
    page: usize,
) -> Result<Option<Page>, Error> {
    let Some(name) = name_behind(pages.store, shelf, slug)? else { return Ok(None) };
    let skip = page.saturating_sub(1).saturating_mul(ROWS);
    let (graphs, all) = pages.store.corpus(Some((shelf, &name)), skip, ROWS)?;
    if graphs.is_empty() {
        return Ok(None);
    }
    let mut out = Markup::default();
    out.element("h1", &[], &name);
    out.open("p", &[]);
    out.text(&format!("{} of this {} in the dataset. ", count(all, "graph"), shelf.name()));
    link(links, &Route::Shelves(shelf), &format!("Every {}", shelf.name()), &mut out);
    out.close("p");
    if shelf == Shelf::Operation {
        search(links, &pages.store.shelf(shelf)?, &name, &mut out);
    }
    table(links, &graphs, graphs.len() == all, &mut out);
    let address = |page: usize| match pages.is_static {
        true => links.to(&Route::Shelf(shelf, slug.to_string(), page)),
        false => query.with(&[("page", &page.to_string())]),
    };
    steps(page, all, address, &mut out);
    Ok(Some(Page { title: format!("Graphs of {} {name}", shelf.name()), body: out }))
}
