//! What the reference published: a table of its own, for other machines and another judge.

use super::Page;
use super::links::Links;
use super::route::Route;
use super::shared::link;
use passnet_bench::report::html::markup::Markup;

/// As published: model, organisation, category, AS, G-mean, correct, fast_1.
const PUBLISHED: &str = include_str!("../../data/reference.csv");

pub(super) fn write(links: &Links) -> Page {
    let mut out = Markup::default();
    out.element("h1", &[], "Published results of the reference");
    out.open("p", &[]);
    out.text(
        "As the PassNet benchmark published them: an NVIDIA A30, the reference's own harness and scoring. They are \
         not ranked beside runs judged here, where the device, the checks and the timing differ. ",
    );
    link(links, &Route::Home, "Runs judged here", &mut out);
    out.close("p");
    out.open("div", &[("class", "wide")]);
    out.open("table", &[("data-whole", "")]);
    out.element("caption", &[], "NVIDIA A30, as published");
    out.open("thead", &[]);
    out.open("tr", &[]);
    let heads = [
        ("model", ""),
        ("organisation", ""),
        ("kind", ""),
        ("AS", "n"),
        ("G-mean", "n"),
        ("correct", "n"),
        ("fast_1", "n"),
    ];
    for (title, class) in heads {
        out.open("th", &[("scope", "col"), ("class", class)]);
        out.element("button", &[("type", "button")], title);
        out.close("th");
    }
    out.close("tr");
    out.close("thead");
    out.open("tbody", &[]);
    for row in PUBLISHED.lines().skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        let &[model, organisation, kind, score, mean, correct, fast] = fields.as_slice() else {
            continue;
        };
        let class = if kind == "baseline" { "baseline" } else { "" };
        out.open("tr", &[("class", class)]);
        out.element("th", &[("scope", "row")], model);
        out.element("td", &[], organisation);
        out.element("td", &[], kind);
        for number in [score.to_string(), mean.into(), format!("{correct} %"), format!("{fast} %")]
        {
            out.element("td", &[("class", "n")], &number);
        }
        out.close("tr");
    }
    out.close("tbody");
    out.close("table");
    out.close("div");
    Page { title: "Published results of the reference".into(), body: out }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_row_is_shown() {
        let page = write(&Links::absolute()).body.into_text();
        assert_eq!(PUBLISHED.lines().count(), 12);
        for row in PUBLISHED.lines().skip(1) {
            let fields: Vec<&str> = row.split(',').collect();
            assert_eq!(fields.len(), 7, "{row}");
            assert!(page.contains(fields[0]) && page.contains(fields[3]), "{row}");
        }
    }
}
