//! What a build made, as one page: models tried, failures, unique graphs, operations, sizes, time.

use crate::commands::extract::{Record, failures};
use passnet_bench::report::html::chart;
use passnet_bench::report::html::markup::Markup;
use passnet_bench::report::html::{POLICY, document};
use passnet_dataset::stats::{KindStats, Stats};
use std::collections::BTreeMap;

/// Operations shown, most used first; all of them are counted.
const OPERATIONS: usize = 60;
const EXAMPLE_LENGTH: usize = 160;
const BAR_WIDTH: f64 = 360.0;
const BAR_HEIGHT: f64 = 12.0;

/// What an extraction gave.
#[derive(Debug)]
pub(super) struct Models {
    pub records: BTreeMap<String, Record>,
    /// Why graphs were set aside, by path.
    pub refused: BTreeMap<String, String>,
}

/// A cell of a table.
enum Cell {
    Text(String),
    Number(String),
    /// A count, drawn beside the largest of its column.
    Bar(u64, u64),
}

/// Steps are names, seconds and results.
pub(super) fn page(
    models: Option<&Models>,
    steps: &[(String, f64, String)],
    stats: &Stats,
) -> String {
    document("Dataset build", POLICY, "", |page| {
        page.element("h1", &[], "Dataset build");
        if let Some(models) = models {
            extraction(page, models);
        }
        let rows = stats.kinds.iter().map(|(kind, one)| {
            let counts = [one.graphs, one.unique_full, one.unique_literals, one.unique_structure];
            std::iter::once(cell(kind)).chain(counts.iter().map(|n| number(*n))).collect()
        });
        let head =
            ["kind", "graphs", "unique with shapes", "unique with literals", "unique structures"];
        table(page, "Graphs", &head, rows);
        let megabytes = stats.store_bytes as f64 / 1e6;
        page.element("p", &[], &format!("Content {}, {megabytes:.1} MB.", stats.content));
        for (kind, one) in &stats.kinds {
            families(page, kind, one);
            sizes(page, kind, one);
        }
        operations(page, stats);
        let rows = steps.iter().map(|(name, seconds, result)| {
            vec![cell(name), Cell::Number(format!("{seconds:.1}")), cell(result)]
        });
        table(page, "Steps", &["step", "seconds", "result"], rows);
    })
}

fn extraction(page: &mut Markup, Models { records, refused }: &Models) {
    let captured = records.values().filter(|record| record.is_captured()).count();
    let graphs: u64 = records.values().map(|record| record.graphs).sum();
    page.element("h2", &[], "Models");
    let text = format!(
        "{} models tried, {} captured, {} graphs.",
        thousands(records.len() as u64),
        thousands(captured as u64),
        thousands(graphs)
    );
    page.element("p", &[], &text);
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

fn families(page: &mut Markup, kind: &str, one: &KindStats) {
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

fn sizes(page: &mut Markup, kind: &str, one: &KindStats) {
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

fn operations(page: &mut Markup, stats: &Stats) {
    let mut ops: Vec<_> = stats.ops.iter().collect();
    ops.sort_by(|a, b| b.1.graphs.cmp(&a.1.graphs).then_with(|| a.0.cmp(b.0)));
    let shown = ops.iter().take(OPERATIONS).map(|(name, op)| ((*name).clone(), op.graphs));
    bars(page, &format!("{} operations, by the graphs that use them", ops.len()), shown);
}

/// A picture: one bar for each value.
fn bars(page: &mut Markup, title: &str, values: impl Iterator<Item = (String, u64)>) {
    let values: Vec<(String, u64)> = values.collect();
    let most = values.iter().map(|(_, count)| *count).max().unwrap_or(1).max(1);
    let rows = values
        .iter()
        .map(|(name, count)| vec![cell(name), number(*count), Cell::Bar(*count, most)]);
    table(page, title, &["", "graphs", ""], rows);
}

fn table(page: &mut Markup, title: &str, head: &[&str], rows: impl Iterator<Item = Vec<Cell>>) {
    let rows: Vec<Vec<Cell>> = rows.collect();
    page.open("div", &[("class", "wide")]);
    page.element("h2", &[], title);
    page.open("table", &[]);
    page.open("thead", &[]);
    page.open("tr", &[]);
    for (column, name) in head.iter().enumerate() {
        let is_number = |row: &Vec<Cell>| matches!(row.get(column), Some(Cell::Number(_)));
        let class = if rows.first().is_some_and(is_number) { "n" } else { "" };
        page.element("th", &[("scope", "col"), ("class", class)], name);
    }
    page.close("tr");
    page.close("thead");
    page.open("tbody", &[]);
    for row in &rows {
        page.open("tr", &[]);
        row.iter().for_each(|cell| show(page, cell));
        page.close("tr");
    }
    page.close("tbody");
    page.close("table");
    page.close("div");
}

fn show(page: &mut Markup, cell: &Cell) {
    match cell {
        Cell::Text(text) => page.element("td", &[], text),
        Cell::Number(text) => page.element("td", &[("class", "n")], text),
        Cell::Bar(count, most) => {
            page.open("td", &[]);
            chart::open(page, BAR_WIDTH, BAR_HEIGHT, &count.to_string(), "");
            let width = chart::number(BAR_WIDTH * *count as f64 / *most as f64);
            let height = chart::number(BAR_HEIGHT);
            page.void("rect", &[("class", "bar"), ("width", &width), ("height", &height)]);
            page.close("svg");
            page.close("td");
        }
    }
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

fn cell(text: &str) -> Cell {
    Cell::Text(text.to_string())
}

fn number(value: u64) -> Cell {
    Cell::Number(thousands(value))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graphs_with_the_same_trouble_share_a_line() {
        let trouble =
            |name: &str| format!("not decomposable: the type of `{name}` is not known: <w>");
        let refused = [("a", trouble("x")), ("b", trouble("y")), ("c", "unknown".into())];
        let refused = refused.map(|(path, reason)| (path.to_string(), reason)).into();
        let mut page = Markup::default();
        extraction(&mut page, &Models { records: BTreeMap::new(), refused });
        let page = page.into_text().replace('\n', "");
        for row in [
            "<td>&lt;w&gt;</td><td class=\"n\">2</td><td>a</td>",
            "<td>unknown</td><td class=\"n\">1</td><td>c</td>",
        ] {
            assert!(page.contains(row), "{page}");
        }
        assert!(page.contains("<th scope=\"col\" class=\"n\">graphs</th>"), "{page}");
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
