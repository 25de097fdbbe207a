//! What the reference published: a table of its own, for other machines and another judge.

use super::Page;
use super::links::Links;
use super::route::Route;
use super::shared::{link, open_sortable};
use passnet_bench::report::html::markup::Markup;
use serde::{Serialize, Serializer};

const PUBLISHED: &str = include_str!("../../data/reference.csv");

/// A row as published; shares are percentages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Published {
    model: &'static str,
    organisation: &'static str,
    kind: &'static str,
    #[serde(rename = "as", serialize_with = "number")]
    score: &'static str,
    #[serde(rename = "geometric_mean", serialize_with = "number")]
    mean: &'static str,
    #[serde(rename = "correct_percent", serialize_with = "number")]
    correct: &'static str,
    #[serde(rename = "fast_1_percent", serialize_with = "number")]
    fast_1: &'static str,
}

/// People see the digits that were published; machines get a number.
fn number<S: Serializer>(text: &&'static str, serializer: S) -> Result<S::Ok, S::Error> {
    match text.parse::<f64>() {
        Ok(value) => serializer.serialize_f64(value),
        Err(_) => serializer.serialize_str(text),
    }
}

/// What the reference published, row by row.
pub(crate) fn published() -> Vec<Published> {
    let rows = PUBLISHED.lines().skip(1).filter_map(|row| {
        let fields: Vec<&str> = row.split(',').collect();
        let &[model, organisation, kind, score, mean, correct, fast_1] = fields.as_slice() else {
            return None;
        };
        Some(Published { model, organisation, kind, score, mean, correct, fast_1 })
    });
    rows.collect()
}

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
    let heads = [
        ("model", false),
        ("AS", true),
        ("G-mean", true),
        ("correct", true),
        ("fast_1", true),
        ("organisation", false),
        ("kind", false),
    ];
    open_sortable("published", true, "NVIDIA A30, as published", &heads, &mut out);
    for row in published() {
        let class = if row.kind == "baseline" { "baseline" } else { "" };
        out.open("tr", &[("class", class)]);
        out.element("th", &[("scope", "row")], row.model);
        let shares = [row.correct, row.fast_1].map(|share| format!("{share} %"));
        for number in [row.score, row.mean, &shares[0], &shares[1]] {
            out.element("td", &[("class", "n")], number);
        }
        out.element("td", &[], row.organisation);
        out.element("td", &[], row.kind);
        out.close("tr");
    }
    out.close_table();
    Page { title: "Published results of the reference".into(), body: out }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_row_is_shown() {
        let page = write(&Links::absolute()).body.into_text();
        assert_eq!((PUBLISHED.lines().count(), published().len()), (12, 11));
        for row in PUBLISHED.lines().skip(1) {
            let fields: Vec<&str> = row.split(',').collect();
            assert_eq!(fields.len(), 7, "{row}");
            assert!(page.contains(fields[0]) && page.contains(fields[3]), "{row}");
        }
        let told = serde_json::json!(published());
        assert_eq!((&told[1]["as"], &told[1]["fast_1_percent"]), (&0.706.into(), &20.3.into()));
    }
}
