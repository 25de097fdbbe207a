//! What a store holds, drawn: one page that needs nothing else.

use passnet_bench::report::html::chart::{label, line, number, open};
use passnet_bench::report::html::markup::Markup;
use passnet_bench::report::html::{POLICY, document};
use passnet_dataset::pictures::{Counts, KindPictures, Pictures};
use passnet_dataset::stats::Stats;
use std::collections::BTreeMap;

/// Operations and families of the map; the page says how many there are in all.
const OPERATIONS: usize = 48;
const FAMILIES: usize = 16;
/// The rarest operations, by name.
const RARE: usize = 40;
/// An operation of the long tail is in fewer graphs than this share.
const TAIL: f64 = 0.001;
const WIDTH: f64 = 680.0;
const LEFT: f64 = 150.0;
const ROW: f64 = 18.0;

pub(super) fn page(stats: &Stats, pictures: &Pictures) -> String {
    document("What the store holds", POLICY, "", |page| {
        page.element("h1", &[], "What the store holds");
        let megabytes = stats.store_bytes as f64 / 1e6;
        let text = format!(
            "{} graphs, {megabytes:.1} MB, {} operations. Content {}.",
            stats.graphs,
            stats.ops.len(),
            stats.content
        );
        page.element("p", &[], &text);
        let head = ["kind", "graphs", "unique with shapes", "unique with literals", "structures"];
        page.open_table("Graphs", &head);
        for (kind, one) in &stats.kinds {
            let counts = [one.graphs, one.unique_full, one.unique_literals, one.unique_structure];
            let cells: Vec<String> = std::iter::once((*kind).to_string())
                .chain(counts.iter().map(u64::to_string))
                .collect();
            page.row(&cells);
        }
        page.close_table();
        families(page, pictures);
        tail(page, stats);
        for (kind, one) in &pictures.kinds {
            kind_pictures(page, kind, one);
        }
    })
}

fn kind_pictures(page: &mut Markup, kind: &str, one: &KindPictures) {
    let title = |what: &str| format!("{kind}: {what}");
    bars(
        page,
        &title("elements of all inputs"),
        one.sizes.iter().map(|(power, graphs)| (format!("2^{power} to 2^{}", power + 1), *graphs)),
    );
    // Short pieces are counted one by one, long ones in powers of two.
    let is_short = one.lengths.keys().all(|length| *length <= 40);
    let lengths = if is_short { single(&one.lengths) } else { doubling(&one.lengths) };
    bars(page, &title("operations a graph"), lengths.into_iter());
    bars(page, &title("depth, in operations"), doubling(&one.depths).into_iter());
    bars(
        page,
        &title("structures, by the graphs that share them"),
        doubling(&one.alike).into_iter(),
    );
    let alike = doubling(&one.alike_with_literals).into_iter();
    bars(page, &title("structures with literals, by the graphs that share them"), alike);
}

fn single(counts: &Counts) -> Vec<(String, u64)> {
    counts.iter().map(|(value, graphs)| (value.to_string(), *graphs)).collect()
}

/// Counts of 1, 2 to 3, 4 to 7, and so on.
fn doubling(counts: &Counts) -> Vec<(String, u64)> {
    let mut powers: BTreeMap<u32, u64> = BTreeMap::new();
    for (value, graphs) in counts {
        *powers.entry(value.max(&1).ilog2()).or_insert(0) += graphs;
    }
    let name = |power: u32| match (1u64 << power, (1u64 << power) * 2 - 1) {
        (low, high) if low == high => low.to_string(),
        (low, high) => format!("{low} to {high}"),
    };
    powers.into_iter().map(|(power, graphs)| (name(power), graphs)).collect()
}

/// A picture: one bar for each value.
fn bars(page: &mut Markup, title: &str, values: impl Iterator<Item = (String, u64)>) {
    let values: Vec<(String, u64)> = values.collect();
    if values.is_empty() {
        return;
    }
    let most = values.iter().map(|(_, count)| *count).max().unwrap_or(1).max(1) as f64;
    let said: Vec<String> = values.iter().map(|(name, count)| format!("{name}: {count}")).collect();
    page.element("h2", &[], title);
    page.open("figure", &[]);
    open(page, WIDTH, ROW * values.len() as f64 + 8.0, title, &said.join("; "));
    for (index, (name, count)) in values.iter().enumerate() {
        let top = 4.0 + ROW * index as f64;
        let width = *count as f64 / most * (WIDTH - LEFT - 90.0);
        label(page, "end", (LEFT - 8.0, top + 13.0), name);
        let [x, y, w, h] = [LEFT, top + 2.0, width, ROW - 4.0].map(number);
        page.void("rect", &[("class", "bar"), ("x", &x), ("y", &y), ("width", &w), ("height", &h)]);
        label(page, "start", (LEFT + width + 6.0, top + 13.0), &count.to_string());
    }
    page.close("svg");
    page.close("figure");
}

/// Which families use which operations: the darker, the larger the share of the family's graphs.
fn families(page: &mut Markup, pictures: &Pictures) {
    let mut families: Vec<(&String, u64)> =
        pictures.families.iter().map(|(name, graphs)| (name, *graphs)).collect();
    families.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let all = families.len();
    families.truncate(FAMILIES);
    let mut ops: Vec<(&String, u64, &BTreeMap<String, u64>)> = pictures
        .operations
        .iter()
        .map(|(name, families)| (name, families.values().sum(), families))
        .collect();
    ops.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    page.element("h2", &[], "Operations over families");
    let text = format!(
        "The {} most used of {} operations in the {} largest of {all} families; the darker, the more of the family's graphs.",
        ops.len().min(OPERATIONS),
        ops.len(),
        families.len()
    );
    page.element("p", &[], &text);
    ops.truncate(OPERATIONS);
    const CELL: f64 = 26.0;
    const HEAD: f64 = 120.0;
    let (width, height) =
        (LEFT + CELL * families.len() as f64 + 100.0, HEAD + ROW * ops.len() as f64);
    page.open("figure", &[]);
    open(page, width, height, "Operations over families", &text);
    for (column, (name, _)) in families.iter().enumerate() {
        let (x, y) = (LEFT + CELL * (column as f64 + 0.6), HEAD - 6.0);
        let turned = format!("rotate(-50 {} {})", number(x), number(y));
        let at = [("x", &*number(x)), ("y", &*number(y)), ("transform", &*turned)];
        page.element("text", &at, name);
    }
    for (row, (name, _, used)) in ops.iter().enumerate() {
        let top = HEAD + ROW * row as f64;
        label(page, "end", (LEFT - 8.0, top + 13.0), name);
        for (column, (family, graphs)) in families.iter().enumerate() {
            let count = used.get(*family).copied().unwrap_or(0);
            let share = count as f64 / (*graphs).max(1) as f64;
            let [x, y, w, h] =
                [LEFT + CELL * column as f64, top + 1.0, CELL - 2.0, ROW - 2.0].map(number);
            let shade = format!("{share:.3}");
            page.open(
                "rect",
                &[
                    ("class", "bar"),
                    ("fill-opacity", &shade),
                    ("x", &x),
                    ("y", &y),
                    ("width", &w),
                    ("height", &h),
                ],
            );
            page.element(
                "title",
                &[],
                &format!("{name} in {count} of {graphs} graphs of {family}"),
            );
            page.close("rect");
        }
    }
    page.close("svg");
    page.close("figure");
}

/// Operations by rank on logarithmic axes, and the rarest by name.
fn tail(page: &mut Markup, stats: &Stats) {
    let mut ops: Vec<(&String, u64)> = stats
        .ops
        .iter()
        .map(|(name, op)| (name, op.graphs))
        .filter(|(_, graphs)| *graphs > 0)
        .collect();
    ops.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let Some(((_, most), count)) = ops.first().map(|first| (*first, ops.len())) else { return };
    let rare =
        ops.iter().filter(|(_, graphs)| (*graphs as f64) < TAIL * stats.graphs as f64).count();
    page.element("h2", &[], "The long tail");
    let text = format!(
        "{count} operations by how many graphs have them; {rare} are in fewer than one graph of a thousand."
    );
    page.element("p", &[], &text);
    const HEIGHT: f64 = 260.0;
    const BOTTOM: f64 = 230.0;
    let x = |rank: usize| {
        let span = (count.max(2) as f64).ln();
        60.0 + (rank as f64 + 1.0).ln() / span * (WIDTH - 90.0)
    };
    let y = |graphs: u64| {
        let span = (most.max(2) as f64).ln();
        BOTTOM - (graphs.max(1) as f64).ln() / span * (BOTTOM - 20.0)
    };
    page.open("figure", &[]);
    open(page, WIDTH, HEIGHT, "Operations by rank", &text);
    line(page, "axis", (60.0, BOTTOM), (WIDTH - 20.0, BOTTOM));
    line(page, "axis", (60.0, 20.0), (60.0, BOTTOM));
    label(page, "end", (54.0, y(most) + 4.0), &most.to_string());
    label(page, "end", (54.0, BOTTOM), "1");
    label(page, "start", (60.0, HEIGHT - 10.0), "most used");
    label(page, "end", (WIDTH - 20.0, HEIGHT - 10.0), "rarest");
    for (rank, (name, graphs)) in ops.iter().enumerate() {
        let (cx, cy) = (number(x(rank)), number(y(*graphs)));
        page.open("circle", &[("class", "point"), ("cx", &cx), ("cy", &cy), ("r", "2.5")]);
        page.element("title", &[], &format!("{name}: {graphs} graphs"));
        page.close("circle");
    }
    page.close("svg");
    page.close("figure");
    let rarest: Vec<String> =
        ops.iter().rev().take(RARE).map(|(name, graphs)| format!("{name} {graphs}")).collect();
    page.element("p", &[], &format!("The rarest: {}.", rarest.join(", ")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_scales_go_in_powers_of_two() {
        let counts = Counts::from([(1, 5), (2, 1), (3, 1), (4, 7), (9, 2)]);
        let named = |name: &str, graphs| (name.to_string(), graphs);
        let expected = [named("1", 5), named("2 to 3", 2), named("4 to 7", 7), named("8 to 15", 2)];
        assert_eq!(doubling(&counts), expected);
    }

    #[test]
    fn names_of_families_are_text_and_nothing_else() {
        let mut pictures = Pictures::default();
        pictures.families.insert("<b>".into(), 2);
        pictures.operations.insert("add".into(), BTreeMap::from([("<b>".to_string(), 1)]));
        let page = page(&Stats::default(), &pictures);
        assert!(
            page.contains("add in 1 of 2 graphs of &lt;b&gt;") && !page.contains("<b>"),
            "{page}"
        );
        assert!(page.contains("fill-opacity=\"0.500\""), "{page}");
    }
}
