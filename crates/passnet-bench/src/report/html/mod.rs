//! A report as one HTML file that needs nothing else: no scripts, no fonts, no pictures from elsewhere. The leaderboard and the
//! dataset's page are made of the same parts and have the same look.
//!
//! Everything that comes from a run is foreign text. [`markup::Markup`] takes unescaped markup only where it is
//! written in this program's source, so there is no way to let foreign text through by mistake; a policy in the page
//! forbids scripts and requests besides.

pub mod chart;
pub mod markup;
mod matrix;
mod overview;
pub mod parts;
mod several;
mod source;
mod task;

pub use matrix::{matrix, matrix_runs};
pub use several::comparison;
pub use source::source;
pub use task::checks;

use super::{RunRecord, RunReport};
use crate::score::Parameters;
use markup::Markup;

/// What a page that needs no script allows itself.
pub const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// The look of every page: light and dark, narrow and wide, on paper.
pub const STYLE: &str = include_str!("style.css");

/// The page of one run, or of several compared.
pub fn page(runs: &[RunRecord], parameters: Parameters) -> String {
    page_with(runs, parameters, |_| {})
}

/// As [`page`], with what `more` writes below the results.
pub fn page_with(
    runs: &[RunRecord],
    parameters: Parameters,
    more: impl FnOnce(&mut Markup),
) -> String {
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    let title = format!("PassNet: {}", names.join(", "));
    document(&title, POLICY, "", |page| {
        match runs {
            [] => {}
            [run] => single(run, parameters, page),
            runs => several::write(runs, parameters, page),
        }
        more(page);
    })
}

/// A whole document around what `body` writes: its style inside, its script too where it has one.
pub fn document(
    title: &str,
    policy: &str,
    script: &'static str,
    body: impl FnOnce(&mut Markup),
) -> String {
    let mut page = Markup::default();
    page.raw("<!DOCTYPE html>\n");
    page.open("html", &[("lang", "en")]);
    page.open("head", &[]);
    page.void("meta", &[("charset", "utf-8")]);
    page.void("meta", &[("http-equiv", "Content-Security-Policy"), ("content", policy)]);
    page.void("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")]);
    page.void("meta", &[("name", "color-scheme"), ("content", "light dark")]);
    page.element("title", &[], title);
    page.open("style", &[]);
    page.raw(STYLE);
    page.close("style");
    page.close("head");
    page.open("body", &[]);
    body(&mut page);
    if !script.is_empty() {
        page.open("script", &[]);
        page.raw(script);
        page.close("script");
    }
    page.close("body");
    page.close("html");
    page.into_text()
}

fn single(run: &RunRecord, parameters: Parameters, page: &mut Markup) {
    let Some(report) = RunReport::of(run, parameters) else {
        page.element("p", &[], "The run has no results.");
        return;
    };
    overview::write(run, &report, parameters, page);
    doubts(std::slice::from_ref(run), page);
    for (index, (name, graphs)) in run.samples().into_iter().enumerate() {
        task::write(run, index, name, &graphs, parameters, page);
    }
}

/// What does not hold in the runs.
fn doubts(runs: &[RunRecord], page: &mut Markup) {
    for run in runs.iter().filter(|run| !run.doubts.is_empty()) {
        page.element("h2", &[], &format!("What does not hold in {}", run.name));
        let doubts: Vec<String> = run.doubts.iter().map(ToString::to_string).collect();
        parts::list(doubts.iter().map(String::as_str), page);
    }
}
