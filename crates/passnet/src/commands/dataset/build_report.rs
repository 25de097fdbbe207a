//! What a build made, as one page: models tried, failures, unique graphs, operations, sizes, time.

use crate::commands::extract::{Record, failures};
use passnet_dataset::stats::{KindStats, Stats};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Operations shown, most used first; all of them are counted.
const OPERATIONS: usize = 60;
const EXAMPLE_LENGTH: usize = 160;
/// How a cell that holds a number begins.
const NUMBER: &str = "<td class=\"n\">";
const BAR_WIDTH: f64 = 360.0;

const STYLE: &str = "body{font:15px/1.5 sans-serif;max-width:62em;margin:2em auto;padding:0 1em}\
    table{border-collapse:collapse;margin:.5em 0 1.5em}td,th{padding:.15em .8em .15em 0;text-align:left;\
    vertical-align:top}.n{text-align:right;font-variant-numeric:tabular-nums}rect{fill:#4472a8}";

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
        vec![cell(name), format!("{NUMBER}{seconds:.1}"), cell(result)]
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
            "<h2>Models</h2><p>{} models tried, {} captured, {} graphs.",
            thousands(records.len() as u64),
            thousands(captured as u64),
            thousands(graphs)
        ),
    );
    let rows = failures(records).into_iter().map(|(kind, failed)| {
        let example = failed.first().map_or(String::new(), |record| {
            let reason = record.reason.as_deref().unwrap_or("");
            shortened(&format!("{}: {reason}", record.id))
        });
        vec![cell(&kind), number(failed.len() as u64), cell(&example)]
    });
    table(page, "Models without a graph", &["because", "models", "for example"], rows);
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (path, reason) in refused {
        reasons.entry(without_name(reason)).or_default().push(path);
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
    let rows: Vec<Vec<String>> = rows.collect();
    push(page, format_args!("<h2>{}</h2><table><tr>", escaped(title)));
    for (column, name) in head.iter().enumerate() {
        let numbers = |row: &Vec<String>| row.get(column).is_some_and(|c| c.starts_with(NUMBER));
        let class = if rows.first().is_some_and(numbers) { " class=\"n\"" } else { "" };
        push(page, format_args!("<th{class}>{}", escaped(name)));
    }
    for row in rows {
        push(page, format_args!("<tr>{}", row.concat()));
    }
    page.push_str("</table>");
}

/// Why a value has no type, whatever it is called: one line for graphs with the same trouble.
fn without_name(reason: &str) -> &str {
    reason.split_once(" is not known: ").map_or(reason, |(_, why)| why)
}

/// The beginning of a long text.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(EXAMPLE_LENGTH) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text)),
        None => text.into(),
    }
}

fn cell(text: &str) -> String {
    format!("<td>{}", escaped(text))
}

fn number(value: u64) -> String {
    format!("{NUMBER}{}", thousands(value))
}

/// Digits in groups of three.
fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn push(page: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = page.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graphs_with_the_same_trouble_share_a_line() {
        let trouble =
            |name: &str| format!("not decomposable: the type of `{name}` is not known: <w>");
        let refused = [("a", trouble("x")), ("b", trouble("y")), ("c", "unknown".into())];
        let refused = refused.map(|(path, reason)| (path.to_string(), reason)).into();
        let mut page = String::new();
        extraction(&mut page, &Models { records: BTreeMap::new(), refused });
        assert!(page.contains("<tr><td>&lt;w&gt;<td class=\"n\">2<td>a"), "{page}");
        assert!(page.contains("<tr><td>unknown<td class=\"n\">1<td>c"), "{page}");
        assert!(page.contains("<th>because<th class=\"n\">graphs<th>for example"), "{page}");
    }

    #[test]
    fn numbers_can_be_read_and_long_texts_end() {
        let texts = [0, 999, 1_000, 1_234_567].map(thousands);
        assert_eq!(texts, ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(shortened("short"), "short");
        let long = shortened(&"é".repeat(EXAMPLE_LENGTH + 1));
        assert_eq!(long.chars().count(), EXAMPLE_LENGTH + 1);
        assert!(long.ends_with("é…"));
    }
}
