//! What the backend made of a program as one page that needs nothing else: a map of every graph, its regions with their times,
//! and the graph drawn. Operations tell by colour, by sign and in words what became of them; nothing needs a script.

use passnet_bench::report::html::chart::{label, number, open};
use passnet_bench::report::html::markup::Markup;
use passnet_bench::report::html::parts::{count, facts, headline, list};
use passnet_bench::report::html::{POLICY, document};
use serde::Deserialize;
use serde_json::Value as Json;
use std::collections::{BTreeMap, HashMap};

/// Larger graphs have a map and a table, and no drawing.
const MAX_DRAWN: usize = 5_000;
const ROW: f64 = 34.0;
const TALL: f64 = 20.0;
const GAP: f64 = 8.0;
const LETTER: f64 = 6.6;
const MAX_LABEL: usize = 22;

const LOOK: &str = "<style>svg .used { fill: var(--good); opacity: .45; stroke: var(--good); }
svg .slower { fill: var(--slow); opacity: .45; stroke: var(--slow); }
svg .dropped { fill: var(--bad); opacity: .45; stroke: var(--bad); }
svg g:target rect { stroke: var(--ink); stroke-width: 3; opacity: 1; } figure.graph svg { max-width: none; }
.cells a { text-decoration: none; } .cells i { display: block; }</style>\n";

/// As `passnet.report().as_dict()` has it.
#[derive(Debug, Deserialize)]
struct Report {
    graphs: Vec<Compiled>,
    left: Vec<Left>,
}

#[derive(Debug, Deserialize)]
struct Compiled {
    operations: usize,
    replaced: usize,
    calls: u64,
    way: Option<String>,
    ways_us: BTreeMap<String, f64>,
    recorded: usize,
    regions: Vec<Region>,
    passed_over: Vec<PassedOver>,
    notes: Vec<String>,
    nodes: Vec<Node>,
}

/// A graph that runs as it is.
#[derive(Debug, Deserialize)]
struct Left {
    reason: String,
    operations: usize,
    passed_over: Vec<PassedOver>,
    notes: Vec<String>,
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Region {
    pass: String,
    operations: Vec<String>,
    state: String,
    kinds: Vec<Kind>,
}

#[derive(Debug, Deserialize)]
struct Kind {
    reason: Option<String>,
    eager_us: Option<f64>,
    pass_us: Option<f64>,
    checks: u64,
}

#[derive(Debug, Deserialize)]
struct PassedOver {
    pass: String,
    reason: String,
}

/// An operation of the program, and the operations whose values it takes.
#[derive(Debug, Deserialize)]
struct Node {
    name: String,
    operation: String,
    inputs: Vec<String>,
}

/// What became of an operation.
#[derive(Debug, Clone)]
struct Fate {
    class: &'static str,
    /// The class and the sign of its cell in the map.
    cell: (&'static str, &'static str),
    words: String,
}

/// The page of a report; an error where it is none.
pub fn page(title: &str, report: &Json) -> Result<String, String> {
    let report = Report::deserialize(report).map_err(|error| format!("no report: {error}"))?;
    Ok(document(title, POLICY, "", |page| {
        page.raw(LOOK);
        page.element("h1", &[], title);
        let operations: usize = report.graphs.iter().map(|graph| graph.operations).sum::<usize>()
            + report.left.iter().map(|graph| graph.operations).sum::<usize>();
        let replaced: usize = report.graphs.iter().map(|graph| graph.replaced).sum();
        let regions = report.graphs.iter().flat_map(|graph| &graph.regions);
        let used = regions.clone().filter(|region| region.state == "used").count();
        let numbers = [
            (format!("{replaced} of {operations}"), "operations replaced"),
            (format!("{used} of {}", regions.count()), "regions with a pass at work"),
            ((report.graphs.len() + report.left.len()).to_string(), "graphs"),
        ];
        headline(&numbers.map(|(number, text)| (number, text.to_string())), page);
        let signs = "One cell for each operation, in the program's order: + replaced, - a pass fits and eager is faster or \
                     needed, x a pass was dropped, = no pass fits. A cell leads to its operation below.";
        page.element("p", &[("class", "soft")], signs);
        for (number, graph) in report.graphs.iter().enumerate() {
            compiled(number, graph, page);
        }
        for (number, graph) in report.left.iter().enumerate() {
            left(report.graphs.len() + number, graph, page);
        }
    }))
}

fn compiled(number: usize, graph: &Compiled, page: &mut Markup) {
    let Compiled { operations, replaced, calls, .. } = graph;
    let title =
        format!("Graph {number}: {replaced} of {} replaced", count(*operations, "operation"));
    page.element("h2", &[], &title);
    let mut rows = vec![("calls", calls.to_string())];
    if graph.recorded > 0 {
        rows.push(("CUDA graph", count(graph.recorded, "recording")));
    }
    if let Some(way) = &graph.way {
        rows.push(("the rest runs as", way.clone()));
    }
    let times = graph.ways_us.iter().map(|(way, us)| format!("{way}: {us:.1} µs"));
    let times: Vec<String> = times.collect();
    if !times.is_empty() {
        rows.push(("timed at the first call", times.join(", ")));
    }
    facts(&rows, page);
    let fates = fates(&graph.regions);
    map(number, &graph.nodes, &fates, page);
    regions(number, graph, page);
    remarks(&graph.passed_over, &graph.notes, page);
    draw(number, &graph.nodes, &fates, page);
}

fn left(number: usize, graph: &Left, page: &mut Markup) {
    let operations = count(graph.operations, "operation");
    page.element("h2", &[], &format!("Graph {number}: {operations} run as they are"));
    page.element("p", &[], &format!("Why: {}", graph.reason));
    map(number, &graph.nodes, &HashMap::new(), page);
    remarks(&graph.passed_over, &graph.notes, page);
    draw(number, &graph.nodes, &HashMap::new(), page);
}

/// By operation; what is not there was left because no pass fits.
fn fates(regions: &[Region]) -> HashMap<&str, Fate> {
    let mut fates = HashMap::new();
    for region in regions {
        let (class, cell) = match region.state.as_str() {
            "used" => ("used", ("f", "+")),
            "dropped" => ("dropped", ("w", "x")),
            _ => ("slower", ("s", "-")),
        };
        let mut words = format!("{} by {}", region.state, region.pass);
        if let Some(kind) = region.kinds.last() {
            words.push_str(&format!(", {}", times(kind)));
            words.push_str(&kind.reason.as_ref().map_or(String::new(), |it| format!(": {it}")));
        }
        let fate = Fate { class, cell, words };
        for name in &region.operations {
            fates.insert(name.as_str(), fate.clone());
        }
    }
    fates
}

fn times(kind: &Kind) -> String {
    match (kind.eager_us, kind.pass_us) {
        (Some(eager), Some(pass)) => format!("{eager:.1} µs before, {pass:.1} µs with the pass"),
        _ => "not timed".into(),
    }
}

fn words(node: &Node, fates: &HashMap<&str, Fate>) -> String {
    let fate = fates.get(node.name.as_str());
    let fate = fate.map_or("left: no pass of the library fits", |fate| fate.words.as_str());
    format!("{} = {}: {fate}", node.name, node.operation)
}

fn map(graph: usize, nodes: &[Node], fates: &HashMap<&str, Fate>, page: &mut Markup) {
    page.open("div", &[("class", "cells")]);
    for (at, node) in nodes.iter().enumerate() {
        let (class, sign) = fates.get(node.name.as_str()).map_or(("t", "="), |fate| fate.cell);
        let place = format!("#g{graph}n{at}");
        page.open("a", &[("href", &place), ("title", &words(node, fates))]);
        page.inline("i", &[("class", class)], sign);
        page.close("a");
    }
    page.close("div");
}

fn regions(number: usize, graph: &Compiled, page: &mut Markup) {
    if graph.regions.is_empty() {
        return;
    }
    let place: HashMap<&str, usize> =
        graph.nodes.iter().enumerate().map(|(at, node)| (node.name.as_str(), at)).collect();
    let head =
        ["pass", "operations", "became", "before µs", "with it µs", "times", "checks", "why"];
    page.open_table("Regions that passes fit, in the order in which they were found", &head);
    for region in &graph.regions {
        let kind = region.kinds.last();
        let us = |us: Option<f64>| us.map_or("-".into(), |us| format!("{us:.1}"));
        let (eager, pass) = kind.map_or((None, None), |kind| (kind.eager_us, kind.pass_us));
        let faster = eager.zip(pass).filter(|(_, pass)| *pass > 0.0);
        page.open("tr", &[]);
        page.element("th", &[("scope", "row")], &region.pass);
        page.open("td", &[("class", "text")]);
        let first = region.operations.first().map_or("", String::as_str);
        let at = place.get(first).copied().unwrap_or(0);
        let text = format!("{first} and what follows ({})", region.operations.len());
        page.inline("a", &[("href", &format!("#g{number}n{at}"))], &text);
        page.close("td");
        let checks: u64 = region.kinds.iter().map(|kind| kind.checks).sum();
        let reason = kind.and_then(|kind| kind.reason.clone()).unwrap_or_default();
        let cells = [
            region.state.clone(),
            us(eager),
            us(pass),
            faster.map_or("-".into(), |(eager, pass)| format!("{:.2}", eager / pass)),
            checks.to_string(),
            reason,
        ];
        cells.iter().for_each(|cell| page.element("td", &[], cell));
        page.close("tr");
    }
    page.close_table();
}

fn remarks(passed_over: &[PassedOver], notes: &[String], page: &mut Markup) {
    let reasons: BTreeMap<&str, &str> =
        passed_over.iter().map(|it| (it.pass.as_str(), it.reason.as_str())).collect();
    let over = reasons.iter().map(|(pass, reason)| format!("not used: {pass}: {reason}"));
    let all: Vec<String> = over.chain(notes.iter().cloned()).collect();
    if !all.is_empty() {
        page.open("details", &[]);
        page.element("summary", &[], &count(all.len(), "remark"));
        list(all.iter().map(String::as_str), page);
        page.close("details");
    }
}

/// Operations in layers, every one below all that it takes values from.
fn draw(graph: usize, nodes: &[Node], fates: &HashMap<&str, Fate>, page: &mut Markup) {
    if nodes.len() > MAX_DRAWN || nodes.is_empty() {
        let text = format!("{} are not drawn.", count(nodes.len(), "operation"));
        page.element("p", &[("class", "soft")], &text);
        return;
    }
    let index: HashMap<&str, usize> =
        nodes.iter().enumerate().map(|(at, node)| (node.name.as_str(), at)).collect();
    let inputs = |at: usize| {
        let found = nodes[at].inputs.iter().filter_map(|name| index.get(name.as_str()).copied());
        // The program's order is one of time: what comes later is no input.
        found.filter(move |input| *input < at)
    };
    let mut depth = vec![0usize; nodes.len()];
    for at in 0..nodes.len() {
        depth[at] = inputs(at).map(|input| depth[input] + 1).max().unwrap_or(0);
    }
    let layers = depth.iter().max().map_or(1, |deepest| deepest + 1);
    let mut widths = vec![GAP; layers];
    let mut left = Vec::with_capacity(nodes.len());
    for (node, layer) in nodes.iter().zip(&depth) {
        left.push(widths[*layer]);
        widths[*layer] += width_of(node) + GAP;
    }
    let widest = widths.iter().copied().fold(200.0, f64::max);
    let at_of =
        |at: usize| (left[at] + (widest - widths[depth[at]]) / 2.0, 6.0 + ROW * depth[at] as f64);
    page.open("figure", &[("class", "graph")]);
    let title = format!("Graph {graph}, {}", count(nodes.len(), "operation"));
    open(page, widest, 6.0 + ROW * layers as f64, &title, "Values flow down.");
    for at in 0..nodes.len() {
        let (x2, y2) = at_of(at);
        let x2 = x2 + width_of(&nodes[at]) / 2.0;
        for input in inputs(at) {
            let (x1, y1) = at_of(input);
            let (x1, y1) = (x1 + width_of(&nodes[input]) / 2.0, y1 + TALL);
            let (low, high) = (y1 + (y2 - y1) / 2.0, y2 - (y2 - y1) / 2.0);
            let path =
                format!("M{x1:.0},{y1:.0} C{x1:.0},{low:.0} {x2:.0},{high:.0} {x2:.0},{y2:.0}");
            page.void("path", &[("class", "edge"), ("d", &path)]);
        }
    }
    for (at, node) in nodes.iter().enumerate() {
        let (x, y) = at_of(at);
        let class = fates.get(node.name.as_str()).map_or("node", |fate| fate.class);
        page.open("g", &[("id", &format!("g{graph}n{at}"))]);
        page.element("title", &[], &words(node, fates));
        let [left, top, wide, tall] = [x, y, width_of(node), TALL].map(number);
        let place = [("x", left.as_str()), ("y", &top), ("width", &wide), ("height", &tall)];
        page.void("rect", &[&[("class", class), ("rx", "4")], &place[..]].concat());
        label(page, "middle", (x + width_of(node) / 2.0, y + 14.0), &label_of(node));
        page.close("g");
    }
    page.close("svg");
    page.element("figcaption", &[], &title);
    page.close("figure");
}

fn label_of(node: &Node) -> String {
    match node.operation.chars().count() > MAX_LABEL {
        true => node.operation.chars().take(MAX_LABEL - 1).chain(['…']).collect(),
        false => node.operation.clone(),
    }
}

fn width_of(node: &Node) -> f64 {
    label_of(node).chars().count() as f64 * LETTER + 12.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report(operations: usize) -> Json {
        let name = |at: usize| format!("value_{at}");
        let nodes: Vec<Json> = (0..operations)
            .map(|at| {
                let inputs = [at.checked_sub(1), at.checked_sub(9)].into_iter().flatten();
                let inputs: Vec<String> = inputs.map(name).collect();
                json!({ "name": name(at), "operation": "torch.nn.functional.gelu", "inputs": inputs })
            })
            .collect();
        let kind = |reason: Json| json!({ "reason": reason, "eager_us": 20.0, "pass_us": 8.0, "checks": 3 });
        let region = |at: usize, state: &str, reason: Json| json!({ "pass": "e/<b>gelu", "operations": [name(at), name(at + 1)], "state": state, "kinds": [kind(reason)] });
        json!({
            "graphs": [{
                "operations": operations, "replaced": 2, "calls": 7, "way": "eager", "ways_us": { "eager": 5.5 },
                "recorded": 1, "passed_over": [{ "pass": "e/other", "reason": "nothing is known of it" }], "notes": ["a note"],
                "nodes": nodes,
                "regions": [
                    region(1, "used", Json::Null),
                    region(4, "eager", json!("slower than eager")),
                    region(6, "dropped", json!("output 0 is off")),
                ],
            }],
            "left": [{ "reason": "it is to be differentiated", "operations": 1, "passed_over": [], "notes": [],
                       "nodes": [{ "name": "x", "operation": "relu", "inputs": ["gone"] }] }],
        })
    }

    #[test]
    fn a_page_says_what_became_of_every_operation() {
        let page = page("model", &report(12)).unwrap();
        for text in [
            "2 of 13</b>\noperations replaced",
            "value_1 = torch.nn.functional.gelu: used by e/&lt;b&gt;gelu, 20.0 µs before, 8.0 µs with the pass",
            "slower than eager",
            "output 0 is off",
            "value_0 = torch.nn.functional.gelu: left: no pass of the library fits",
            "not used: e/other: nothing is known of it",
            "Why: it is to be differentiated",
            "class=\"dropped\"",
        ] {
            assert!(page.contains(text), "{text} is not in\n{page}");
        }
        assert!(!page.contains("<b>gelu") && !page.contains("<script") && !page.contains("http:"));
        assert_eq!(page.matches("<g id=").count(), 13);
    }

    #[test]
    fn a_thousand_operations_are_drawn_in_a_page_of_a_size_that_opens() {
        let page = page("model", &report(1_000)).unwrap();
        assert_eq!(page.matches("<g id=").count(), 1_001);
        assert!(page.len() < 2_000_000, "{}", page.len());
    }

    #[test]
    fn what_is_no_report_is_refused() {
        let refused = page("model", &json!({ "graphs": 3 })).unwrap_err();
        assert!(refused.starts_with("no report: "), "{refused}");
    }
}
