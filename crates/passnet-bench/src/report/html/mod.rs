//! A report as one HTML file that needs nothing else: no scripts, no fonts, no pictures from elsewhere.
//!
//! Everything that comes from a run is foreign text. [`markup::Markup`] takes unescaped markup only where it is
//! written in this program's source, so there is no way to let foreign text through by mistake; a policy in the page
//! forbids scripts and requests besides.

mod chart;
mod markup;
mod overview;
mod several;
mod task;

use super::{RunRecord, RunReport};
use crate::score::Parameters;
use markup::Markup;

const STYLE: &str = include_str!("style.css");

/// The page of one run, or of several compared.
pub fn page(runs: &[RunRecord], parameters: Parameters) -> String {
    let mut page = Markup::default();
    page.raw("<!DOCTYPE html>\n");
    page.open("html", &[("lang", "en")]);
    page.open("head", &[]);
    page.void("meta", &[("charset", "utf-8")]);
    page.void(
        "meta",
        &[
            ("http-equiv", "Content-Security-Policy"),
            ("content", "default-src 'none'; style-src 'unsafe-inline'"),
        ],
    );
    page.void("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")]);
    page.void("meta", &[("name", "color-scheme"), ("content", "light dark")]);
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    page.element("title", &[], &format!("PassNet: {}", names.join(", ")));
    page.open("style", &[]);
    page.raw(STYLE);
    page.close("style");
    page.close("head");
    page.open("body", &[]);
    match runs {
        [run] => single(run, parameters, &mut page),
        runs => several::write(runs, parameters, &mut page),
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
        page.open("ul", &[]);
        run.doubts.iter().for_each(|doubt| page.element("li", &[], &doubt.to_string()));
        page.close("ul");
    }
}
