//! The ways from a ranking to its runs side by side.

use super::Pages;
use super::links::Links;
use super::matrix::matrix_route;
use super::route::Route;
use super::shared::link;
use crate::store::Entry;
use passnet_bench::report::html::markup::Markup;

/// The form that the boxes of a ranking belong to.
const FORM: &str = "matrix";

/// A box to choose a run with; on a disk nobody answers a form.
pub(super) fn choice(entry: &Entry, links: &Links, out: &mut Markup) {
    if links.is_static() {
        return;
    }
    let label = format!("Choose {}", entry.name);
    let attributes = [
        ("type", "checkbox"),
        ("form", FORM),
        ("name", "run"),
        ("value", &*entry.id),
        ("aria-label", &label),
    ];
    out.void("input", &attributes);
}

/// `entries` are those of this page, `best` the best standing ones of the ranking.
pub(super) fn write(
    pages: &Pages<'_>,
    links: &Links,
    entries: &[Entry],
    best: &[Entry],
    out: &mut Markup,
) {
    if entries.len() < 2 {
        return;
    }
    out.element("h2", &[], "Run against run");
    if let Some(route) = matrix_route(pages, best, 0) {
        out.open("p", &[]);
        let text = format!("The best {} runs, task by task", best.len());
        link(links, &route, &text, out);
        out.close("p");
    }
    match pages.is_static {
        true => pairs(links, best, out),
        false => forms(links, entries, out),
    }
}

/// Those that were chosen, or two of this page.
fn forms(links: &Links, entries: &[Entry], out: &mut Markup) {
    let action = links.to_path("matrix/");
    let attributes = [("id", FORM), ("class", "filter"), ("method", "get"), ("action", &*action)];
    out.open("form", &attributes);
    out.element("button", &[], "The chosen runs, task by task");
    out.close("form");
    let action = links.to_path("compare/");
    out.open("form", &[("class", "filter"), ("method", "get"), ("action", &action)]);
    for (name, title, chosen) in [("one", "From", 1), ("two", "To", 0)] {
        out.open("label", &[]);
        out.text(title);
        out.open("select", &[("name", name)]);
        for (index, entry) in entries.iter().enumerate() {
            let selected: &[_] = if index == chosen { &[("selected", "")] } else { &[] };
            let attributes = [&[("value", entry.id.as_str())], selected].concat();
            out.element("option", &attributes, &entry.name);
        }
        out.close("select");
        out.close("label");
    }
    out.element("button", &[], "Compare");
    out.close("form");
}

/// Every two on a disk.
fn pairs(links: &Links, best: &[Entry], out: &mut Markup) {
    out.open("ul", &[]);
    for (index, one) in best.iter().enumerate() {
        for two in &best[index + 1..] {
            out.open("li", &[]);
            let route = Route::Compare(two.id.clone(), one.id.clone());
            link(links, &route, &format!("From {} to {}", two.name, one.name), out);
            out.close("li");
        }
    }
    out.close("ul");
}
