//! Two runs compared, or more ranked.

use super::super::{Change, Comparison, RankedGroup, RunRecord};
use super::super::{compare, leaderboard, matrix, ratio_text};
use super::chart;
use super::markup::Markup;
use super::parts::sentence;
use crate::score::Parameters;

pub(super) fn write(runs: &[RunRecord], parameters: Parameters, page: &mut Markup) {
    page.open("header", &[]);
    page.element("h1", &[], "PassNet runs compared");
    page.close("header");
    for group in leaderboard(runs, parameters) {
        ranking(&group, page);
    }
    super::doubts(runs, page);
    if let [before, after] = runs {
        comparison(&compare(before, after, parameters), page);
        return;
    }
    let found = matrix(runs, parameters);
    page.element("h2", &[], "Task by task");
    super::matrix_runs(&found, |run, page| page.text(&found.runs[run].run), page);
    super::matrix(&found, &found.tasks, |_, _, _| {}, page);
}

fn ranking(group: &RankedGroup, page: &mut Markup) {
    let standings = &group.standings;
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    for conditions in &group.conditions {
        page.element("p", &[("class", "soft")], &format!("{}.", conditions.describe()));
    }
    for difference in &group.differences {
        page.element(
            "p",
            &[("class", "soft")],
            &format!("Not ranked with the first: {difference}."),
        );
    }
    page.open_table(
        "Over the graphs that these runs have, best first; runs that cannot be told from the best of a rank share it",
        &[
            "run",
            "rank",
            "AS",
            "at least",
            "at most",
            "graphs right",
            "tasks right",
            "fast_1",
            "speed-up",
            "graphs left out",
        ],
    );
    for standing in standings {
        let summary = &standing.score.summary;
        page.row(&[
            standing.run.clone(),
            standing.rank.to_string(),
            format!("{:.4}", standing.score.aggregated),
            ratio_text(standing.interval.low),
            ratio_text(standing.interval.high),
            percent(summary.correctness_rate),
            percent(standing.task_correctness_rate),
            percent(summary.fast_1),
            summary.geometric_mean.map_or("-".into(), ratio_text),
            standing.left_out.to_string(),
        ]);
    }
    page.close_table();
    for pair in standings.chunks(2) {
        let curves: Vec<_> = pair
            .iter()
            .map(|standing| (standing.run.as_str(), standing.score.es.iter().collect()))
            .collect();
        let names: Vec<&str> = curves.iter().map(|(name, _)| *name).collect();
        page.open("figure", &[]);
        chart::curves(&curves, page);
        page.element(
            "figcaption",
            &[],
            &format!("ES(t) of {}", names.join(" (first colour) and ")),
        );
        page.close("figure");
    }
}

/// Everything that differs between two runs, for a page that has its own heading above.
pub fn comparison(found: &Comparison, page: &mut Markup) {
    page.element("h2", &[], &format!("From {} to {}", found.before.run, found.after.run));
    for caution in &found.cautions {
        page.element("p", &[("class", "soft")], &format!("Note: {caution}."));
    }
    if found.unlike {
        let text = "These runs are unlike: no speed of one is held against one of the other.";
        page.element("p", &[], text);
    }
    page.open("dl", &[]);
    for (what, overall) in [("AS", &found.score), ("Speed-up", &found.speed)] {
        if let Some(overall) = overall {
            page.element("dt", &[], what);
            page.element("dd", &[], &sentence(overall));
        }
    }
    page.close("dl");
    page.open_table(
        "Graphs that are right in both runs",
        &["graph", "change", "before", "after", "after / before", "at least", "at most"],
    );
    for pair in &found.pairs {
        let change = match pair.change {
            Change::Faster => "faster",
            Change::Slower => "slower",
            Change::Same => "not told from noise",
        };
        page.open("tr", &[]);
        page.element("th", &[("scope", "row")], &pair.name.to_string());
        page.element("td", &[], change);
        page.element("td", &[], &ratio_text(pair.before));
        page.element("td", &[], &ratio_text(pair.after));
        page.open("td", &[]);
        page.text(&ratio_text(pair.ratio.ratio));
        page.void("br", &[]);
        chart::interval_bar("after / before", &pair.ratio, page);
        page.close("td");
        page.element("td", &[], &ratio_text(pair.ratio.low));
        page.element("td", &[], &ratio_text(pair.ratio.high));
        page.close("tr");
    }
    page.close_table();
    if !found.verdicts.is_empty() {
        page.open_table("Other verdicts", &["graph", "before", "after", "evidence"]);
        for change in &found.verdicts {
            page.row(&[
                change.name.to_string(),
                change.before.to_string(),
                change.after.to_string(),
                change.evidence.join("; "),
            ]);
        }
        page.close_table();
    }
    for (title, names) in [
        ("Only in the first run", &found.only_before),
        ("Only in the second run", &found.only_after),
        ("Other model text under the same name", &found.other_models),
    ] {
        if !names.is_empty() {
            page.element("h3", &[], title);
            page.open("ul", &[]);
            names.iter().for_each(|name| page.element("li", &[], &name.to_string()));
            page.close("ul");
        }
    }
}
