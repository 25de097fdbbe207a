//! What a build made, as one page: models tried, failures, unique graphs, operations, sizes, time.

use crate::commands::extract::{Record, failures};
use passnet_dataset::stats::{KindStats, Stats};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Operations shown, most used first; all of them are counted.
const OPERATIONS: usize = 60;
const EXAMPLE_LENGTH: usize = 160;
const BAR_WIDTH: f64 = 360.0;

const STYLE: &str = "body{font:15px/1.5 sans-serif;max-width:62em;margin:2em auto;padding:0 1em}\
    table{border-collapse:collapse;margin:.5em 0 1.5em}td,th{padding:.15em .8em .15em 0;text-align:left;\
    vertical-align:top}td.n{text-align:right;font-variant-numeric:tabular-nums}rect{fill:#4472a8}";

/// What an extraction gave.
#[derive(Debug)]
pub(super) struct Models {
    pub records: BTreeMap<String, Record>,
    /// Why graphs were set aside, by path.
    pub refused: BTreeMap<String, String>,
}

/// Steps are names, seconds and results.
pub(super) fn page(
    models: Option<&Models>,
    steps: &[(String, f64, String)],
    stats: &Stats,
) -> String {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Dataset build</title>\
         <style>{STYLE}</style><h1>Dataset build</h1>"
    );
    if let Some(models) = models {
        extraction(&mut page, models);
    }
    let rows = stats.kinds.iter().map(|(kind, one)| {
        let counts = [one.graphs, one.unique_full, one.unique_literals, one.unique_structure];
        std::iter::once(cell(kind)).chain(counts.iter().map(|n| number(*n))).collect()
    });
    let head =
        ["kind", "graphs", "unique with shapes", "unique with literals", "unique structures"];
    table(&mut page, "Graphs", &head, rows);
    push(
        &mut page,
        format_args!("<p>Content {}, {:.1} MB.", stats.content, stats.store_bytes as f64 / 1e6),
    );
    for (kind, one) in &stats.kinds {
        families(&mut page, kind, one);
        sizes(&mut page, kind, one);
    }
    operations(&mut page, stats);
    let rows = steps.iter().map(|(name, seconds, result)| {
        vec![cell(name), format!("<td class=\"n\">{seconds:.1}"), cell(result)]
    });
    table(&mut page, "Steps", &["step", "seconds", "result"], rows);
    page
}

fn extraction(page: &mut String, Models { records, refused }: &Models) {
    let captured = records.values().filter(|record| record.is_captured()).count();
    let graphs: u64 = records.values().map(|record| record.graphs).sum();
    push(
        page,
        format_args!(
            "<h2>Models</h2><p>{} models tried, {captured} captured, {graphs} graphs.",
            records.len()
        ),
    );
    let rows = failures(records).into_iter().map(|(kind, failed)| {
        let example = failed.first().map_or(String::new(), |record| {
            let reason = record.reason.as_deref().unwrap_or("");
            format!("{}: {reason}", record.id).chars().take(EXAMPLE_LENGTH).collect()
        });
        vec![cell(&kind), number(failed.len() as u64), cell(&example)]
    });
    table(page, "Models without a graph", &["because", "models", "for example"], rows);
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (path, reason) in refused {
        reasons.entry(reason).or_default().push(path);
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, paths)| std::cmp::Reverse(paths.len()));
    let rows = reasons.into_iter().map(|(reason, paths)| {
        let example = paths.first().copied().unwrap_or_default();
        vec![cell(reason), number(paths.len() as u64), cell(example)]
    });
    table(page, "Graphs set aside", &["because", "graphs", "for example"], rows);
}

fn families(page: &mut String, kind: &str, one: &KindStats) {
    bars(
        page,
        &format!("{kind}: graphs by family"),
        one.families.iter().map(|(n, c)| (n.clone(), *c)),
    );
    if one.dtypes.len() > 1 {
        bars(
            page,
            &format!("{kind}: graphs by dtype"),
            one.dtypes.iter().map(|(n, c)| (n.clone(), *c)),
        );
    }
}

fn sizes(page: &mut String, kind: &str, one: &KindStats) {
    let (ops, elements) = (one.op_counts, one.elements);
    let row = |name: &str, spread: [u64; 5]| {
        std::iter::once(cell(name)).chain(spread.iter().map(|n| number(*n))).collect::<Vec<_>>()
    };
    let rows = [
        row("operations", [ops.min, ops.p10, ops.median, ops.p90, ops.max]),
        row(
            "elements of all inputs",
            [elements.min, elements.p10, elements.median, elements.p90, elements.max],
        ),
    ];
    let head = ["of a graph", "minimum", "10 %", "median", "90 %", "maximum"];
    table(page, &format!("{kind}: sizes"), &head, rows.into_iter());
}

fn operations(page: &mut String, stats: &Stats) {
    let mut ops: Vec<_> = stats.ops.iter().collect();
    ops.sort_by(|a, b| b.1.graphs.cmp(&a.1.graphs).then_with(|| a.0.cmp(b.0)));
    let shown = ops.iter().take(OPERATIONS).map(|(name, op)| ((*name).clone(), op.graphs));
    bars(page, &format!("{} operations, by the graphs that use them", ops.len()), shown);
}

/// A picture: one bar for each value.
fn bars(page: &mut String, title: &str, values: impl Iterator<Item = (String, u64)>) {
    let values: Vec<(String, u64)> = values.collect();
    let most = values.iter().map(|(_, count)| *count).max().unwrap_or(1).max(1);
    let rows = values.iter().map(|(name, count)| {
        let width = BAR_WIDTH * *count as f64 / most as f64;
        let bar = format!(
            "<td><svg width=\"{BAR_WIDTH}\" height=\"12\" role=\"img\" aria-label=\"{count}\">\
             <rect width=\"{width:.1}\" height=\"12\"/></svg>"
        );
        vec![cell(name), number(*count), bar]
    });
    table(page, title, &["", "graphs", ""], rows);
}

fn table(page: &mut String, title: &str, head: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    push(page, format_args!("<h2>{}</h2><table><tr>", escaped(title)));
    head.iter().for_each(|name| push(page, format_args!("<th>{}", escaped(name))));
    for row in rows {
        push(page, format_args!("<tr>{}", row.concat()));
    }
    page.push_str("</table>");
}

fn cell(text: &str) -> String {
    format!("<td>{}", escaped(text))
}

fn number(value: u64) -> String {
    format!("<td class=\"n\">{value}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn push(page: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = page.write_fmt(text);
}
