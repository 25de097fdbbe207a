//! A graph as a picture: operations in layers, values flowing down.

use crate::store::operation_name;
use passnet_bench::report::html::chart::{label, number, open};
use passnet_bench::report::html::markup::Markup;
use passnet_graph::{Arg, Graph, NodeId};
use std::collections::BTreeSet;

/// Larger graphs are not drawn: nobody could read them.
const MAX_NODES: usize = 90;
const ROW: f64 = 46.0;
const TALL: f64 = 26.0;
const GAP: f64 = 12.0;
const LETTER: f64 = 7.2;
const MAX_LABEL: usize = 26;

/// A node's box.
struct Placed {
    x: f64,
    y: f64,
    width: f64,
}

/// Draws a graph; nodes that `is_changed` names stand out.
pub(super) fn draw(
    title: &str,
    graph: &Graph,
    is_changed: &dyn Fn(NodeId) -> bool,
    out: &mut Markup,
) {
    if graph.nodes().len() > MAX_NODES {
        let text = format!("{title}: {} operations, too many to draw.", graph.op_count());
        out.element("p", &[("class", "soft")], &text);
        return;
    }
    let (places, width, height) = layout(graph);
    let described: Vec<String> = graph.calls().map(|(id, _)| name_of(graph, id)).collect();
    out.open("figure", &[]);
    open(out, width, height, title, &described.join(", "));
    edges(graph, &places, out);
    for id in graph.ids() {
        let place = &places[id.index()];
        let class = match (graph.call(id).is_some(), is_changed(id)) {
            (_, true) => "node changed",
            (true, false) => "node",
            (false, false) => "node input",
        };
        let [x, y, wide, tall] = [place.x, place.y, place.width, TALL].map(number);
        let at = [("x", x.as_str()), ("y", &y), ("width", &wide), ("height", &tall), ("rx", "5")];
        out.void("rect", &[&[("class", class)], &at[..]].concat());
        let middle = (place.x + place.width / 2.0, place.y + TALL / 2.0 + 4.0);
        label(out, "middle", middle, &name_of(graph, id));
    }
    out.close("svg");
    out.element("figcaption", &[], title);
    out.close("figure");
}

/// What a node is called: its operation, or its own name where it is an input.
fn name_of(graph: &Graph, id: NodeId) -> String {
    let node = graph.node(id);
    let name = match graph.call(id) {
        Some(call) => operation_name(call),
        None => node.name.to_string(),
    };
    match name.chars().count() > MAX_LABEL {
        true => name.chars().take(MAX_LABEL - 1).chain(['…']).collect(),
        false => name,
    }
}

/// Every node below all that it uses; the picture's width and height.
fn layout(graph: &Graph) -> (Vec<Placed>, f64, f64) {
    let count = graph.nodes().len();
    let mut depth = vec![0usize; count];
    for (id, call) in graph.calls() {
        let mut below = 1;
        call.for_each_input(|input| below = below.max(depth[input.index()] + 1));
        depth[id.index()] = below;
    }
    // Inputs stand right above the first that uses them.
    let mut first_use = vec![usize::MAX; count];
    for (id, call) in graph.calls() {
        call.for_each_input(|input| {
            let use_at = &mut first_use[input.index()];
            *use_at = (*use_at).min(depth[id.index()]);
        });
    }
    for id in graph.ids().filter(|id| graph.call(*id).is_none()) {
        let used = first_use[id.index()];
        depth[id.index()] = if used == usize::MAX { 0 } else { used.saturating_sub(1) };
    }
    let layers = depth.iter().max().map_or(1, |deepest| deepest + 1);
    let mut widths = vec![GAP; layers];
    let mut places: Vec<Placed> = Vec::with_capacity(count);
    for id in graph.ids() {
        let layer = depth[id.index()];
        let width = name_of(graph, id).chars().count() as f64 * LETTER + 16.0;
        places.push(Placed { x: widths[layer], y: 8.0 + ROW * layer as f64, width });
        widths[layer] += width + GAP;
    }
    let widest = widths.iter().copied().fold(160.0, f64::max);
    for (place, layer) in places.iter_mut().zip(&depth) {
        place.x += (widest - widths[*layer]) / 2.0;
    }
    (places, widest, 8.0 + ROW * layers as f64)
}

fn edges(graph: &Graph, places: &[Placed], out: &mut Markup) {
    let edge = |from: NodeId, to: &Placed, out: &mut Markup| {
        let from = &places[from.index()];
        let (x1, y1) = (from.x + from.width / 2.0, from.y + TALL);
        let (x2, y2) = (to.x + to.width / 2.0, to.y);
        let bend = (y2 - y1) / 2.0;
        let path = format!(
            "M{x1:.1},{y1:.1} C{x1:.1},{:.1} {x2:.1},{:.1} {x2:.1},{y2:.1}",
            y1 + bend,
            y2 - bend
        );
        out.void("path", &[("class", "edge"), ("d", &path)]);
    };
    for (id, call) in graph.calls() {
        let mut inputs = BTreeSet::new();
        call.for_each_input(|input| {
            inputs.insert(input);
        });
        inputs.into_iter().for_each(|input| edge(input, &places[id.index()], out));
    }
    let outputs: BTreeSet<NodeId> = graph.outputs.iter().filter_map(Arg::as_node).collect();
    for id in outputs {
        let place = &places[id.index()];
        let (x, y) = (place.x + place.width / 2.0, place.y + TALL);
        let path = format!("M{x:.1},{y:.1} v10 m-4,-4 l4,4 l4,-4");
        out.void("path", &[("class", "edge"), ("d", &path)]);
    }
}
