//! What reports, the leaderboard and the dataset's page show alike.

use super::super::{Overall, ratio_text};
use super::markup::Markup;

/// `0.5` as `50.0 %`.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A ratio, or a dash where there is none.
pub fn optional_ratio(ratio: Option<f64>) -> String {
    ratio.map_or("-".into(), ratio_text)
}

/// `1 graph`, `2 graphs`.
pub fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// Numbers that are seen first, each with what it is.
pub fn headline(numbers: &[(String, String)], out: &mut Markup) {
    out.open("ul", &[("class", "headline")]);
    for (number, text) in numbers {
        out.open("li", &[]);
        out.element("b", &[], number);
        out.text(text);
        out.close("li");
    }
    out.close("ul");
}

/// A description list.
pub fn facts(rows: &[(&str, String)], out: &mut Markup) {
    out.open("dl", &[]);
    for (term, description) in rows {
        out.element("dt", &[], term);
        out.element("dd", &[], description);
    }
    out.close("dl");
}

/// A verdict, coloured.
pub fn verdict(name: &str, out: &mut Markup) {
    let class = if name == "correct" { "right" } else { "wrong" };
    out.element("span", &[("class", class)], name);
}

/// The class and the sign of a graph's cell: colour is never the only difference.
pub fn graph_cell(verdict: &str, decision: Option<&str>) -> (&'static str, &'static str) {
    match (verdict, decision) {
        ("correct", Some("faster")) => ("f", "+"),
        ("correct", Some("slower")) => ("s", "-"),
        ("correct", _) => ("t", "="),
        _ => ("w", "x"),
    }
}

/// What [`graph_cell`]'s signs mean.
pub const CELLS: &str =
    "One cell for each graph: + faster than eager, = not told from it, - slower, x wrong or failed";

/// Texts, one below the other; nothing where there are none.
pub fn list<'a>(texts: impl IntoIterator<Item = &'a str>, out: &mut Markup) {
    let mut texts = texts.into_iter().peekable();
    if texts.peek().is_none() {
        return;
    }
    out.open("ul", &[]);
    texts.for_each(|text| out.element("li", &[], text));
    out.close("ul");
}

/// How two runs compare, in words.
pub(super) fn sentence(overall: &Overall) -> String {
    let conclusion = overall.conclusion.text();
    format!(
        "times {} (99 % interval {} to {}; {} up, {} down, sign test p = {}): {conclusion}",
        ratio_text(overall.ratio.ratio),
        ratio_text(overall.ratio.low),
        ratio_text(overall.ratio.high),
        overall.better,
        overall.worse,
        ratio_text(overall.p_value)
    )
}
