//! Matching: what the default semantics accepts and refuses, and each way in which it differs from torch.fx on
//! purpose. Passes and graphs are written as text; a graph is the body of `forward`.

mod common;

use common::{graph, pattern, trace_pass};
use passnet_graph::Arg;
use passnet_pass::matcher::{
    self, DifferenceKind, MatchOptions, Miss, Pattern, TargetGraph, reference,
};
use passnet_pass::trace::Dialect;

/// Number of matches in the default semantics.
fn count(arguments: &str, pattern_body: &str, graph_body: &str) -> usize {
    count_with(arguments, pattern_body, graph_body, &MatchOptions::default())
}

fn count_with(
    arguments: &str,
    pattern_body: &str,
    graph_body: &str,
    options: &MatchOptions,
) -> usize {
    let pass = trace_pass(&pattern(arguments, pattern_body), Dialect::Plain);
    let graph = graph(graph_body);
    let pattern = Pattern::new(&pass.pass.pattern.graph);
    matcher::find(&pattern, &TargetGraph::new(&graph), options).matches.len()
}

/// Number of matches in the reference's semantics.
fn reference_count(arguments: &str, pattern_body: &str, graph_body: &str) -> usize {
    let pass = trace_pass(&pattern(arguments, pattern_body), Dialect::Fx);
    let normal = reference::normalise(&pass.pass.pattern.graph);
    reference::find(&normal, &graph(graph_body)).unwrap().len()
}

/// The difference that stopped the deepest attempt.
fn stopped_by(arguments: &str, pattern_body: &str, graph_body: &str) -> DifferenceKind {
    let pass = trace_pass(&pattern(arguments, pattern_body), Dialect::Plain);
    let graph = graph(graph_body);
    let pattern = Pattern::new(&pass.pass.pattern.graph);
    let outcome = matcher::find(&pattern, &TargetGraph::new(&graph), &MatchOptions::default());
    assert!(outcome.matches.is_empty(), "it matches");
    match outcome.miss {
        Some(Miss::Partial(near)) => near.differences.last().unwrap().kind.clone(),
        other => panic!("no partial match: {other:?}"),
    }
}

#[test]
fn spellings_of_one_operation_meet() {
    for written in
        ["torch.relu(in_0)", "in_0.relu()", "torch.nn.functional.relu(in_0, inplace=False)"]
    {
        let body = format!("t = {written}\nu = t + in_1\nreturn (u,)");
        assert_eq!(count("x, y", "return F.relu(x) + y", &body), 1, "{written}");
    }
    assert_eq!(
        reference_count(
            "x, y",
            "return F.relu(x) + y",
            "t = in_0.relu()\nu = t + in_1\nreturn (u,)"
        ),
        0
    );
}

#[test]
fn defaults_and_keywords_do_not_matter() {
    let body = "t = torch.nn.functional.softmax(in_0, dim=-1, _stacklevel=5)\nreturn (t,)";
    assert_eq!(count("x", "return x.softmax(-1)", body), 1);
    assert_eq!(reference_count("x", "return F.softmax(x, dim=-1, _stacklevel=5)", body), 0);
    let full = "t = torch.nn.functional.softmax(in_0, -1, 3, None)\nreturn (t,)";
    assert_eq!(
        reference_count("x", "return F.softmax(x, dim=-1)", full),
        1,
        "laid out by the signature"
    );
}

#[test]
fn literals_are_compared_by_value_where_their_type_does_not_matter() {
    let norm = "t = torch.nn.functional.layer_norm(in_0, (768,), in_1, in_2, 1e-05)\nreturn (t,)";
    assert_eq!(count("x, w, b", "return F.layer_norm(x, [768], w, b)", norm), 1);
    let conv = "t = torch.conv2d(in_0, in_1, None, (1, 1), (0, 0), (1, 1), 1)\nreturn (t,)";
    assert_eq!(count("x, w", "return F.conv2d(x, w)", conv), 1);
    // An integer tensor times 2 stays integer, times 2.0 it does not.
    assert_eq!(count("x", "return x * 2", "t = in_0 * 2.0\nreturn (t,)"), 0);
    assert_eq!(count("x", "return x + 0.0", "t = in_0 + -0.0\nreturn (t,)"), 0);
}

#[test]
fn operands_are_exchanged_where_no_bit_depends_on_it() {
    let body = "t = in_1.sin()\nu = t + in_0\nreturn (u,)";
    assert_eq!(count("x, y", "return x + y.sin()", body), 1);
    assert_eq!(reference_count("x, y", "return x + y.sin()", body), 0);
    // A choice made for one operand may have to be undone for the other.
    let body = "a = in_0.sin()\nb = in_1.cos()\nc = b * a\nd = in_2 + c\nreturn (d,)";
    assert_eq!(count("x, y, z", "return (x.sin() * y.cos()) + z", body), 1);
    // Numbers may stand on either side, of the same kind.
    let scaled = "t = torch.relu(in_0)\nu = t * 3.0\nreturn (u,)";
    assert_eq!(count("x", "return 3.0 * torch.relu(x)", scaled), 1);
    assert_eq!(count("x", "return 3 * torch.relu(x)", scaled), 0);
    let scaled = "t = torch.relu(in_0)\nu = 3.0 * t\nreturn (u,)";
    assert_eq!(count("x", "return torch.mul(torch.relu(x), 3.0)", scaled), 1);
    for op in ["==", "!=", "&", "|", "^"] {
        let body = format!("t = in_1.sin()\nu = t {op} in_0\nreturn (u,)");
        assert_eq!(count("x, y", &format!("return x {op} y.sin()"), &body), 1, "{op}");
    }
}

#[test]
fn operands_stay_where_something_depends_on_their_order() {
    for op in ["-", "/", "//", "%", "**", "@", "<"] {
        let body = format!("t = in_1.sin()\nu = t {op} in_0\nreturn (u,)");
        assert_eq!(count("x, y", &format!("return x {op} y.sin()"), &body), 0, "{op}");
    }
    // The second operand is scaled.
    let body = "t = in_1.sin()\nu = torch.add(t, in_0, alpha=2)\nreturn (u,)";
    assert_eq!(count("x, y", "return torch.add(x, y.sin(), alpha=2)", body), 0);
    // The first one is written.
    let body = "t = in_1.sin()\nt += in_0\nreturn (t,)";
    assert_eq!(count("x, y", "z = y.sin()\nx += z\nreturn x", body), 0);
    // Lists of sizes are joined.
    let body = "s = in_0.shape\na = s[:1]\nb = s[1:]\nj = a + b\nt = in_1.reshape(j)\nreturn (t,)";
    let joined = |sum: &str| format!("s = x.shape\nreturn y.reshape({sum})");
    assert_eq!(count("x, y", &joined("s[:1] + s[1:]"), body), 1);
    assert_eq!(count("x, y", &joined("s[1:] + s[:1]"), body), 0);
    // Which zero `maximum` returns depends on the order; it is exchanged on request.
    let body = "t = in_1.sin()\nu = torch.maximum(t, in_0)\nreturn (u,)";
    assert_eq!(count("x, y", "return torch.maximum(x, y.sin())", body), 0);
    let options = MatchOptions { commutative: true, ..Default::default() };
    assert_eq!(count_with("x, y", "return torch.maximum(x, y.sin())", body, &options), 1);
}

/// The reason of a miss is the one of the order that comes closer.
#[test]
fn a_miss_is_explained_in_the_order_that_fits() {
    let body = "t = torch.relu(in_0)\nu = t * 2.0\nreturn (u,)";
    let reason = stopped_by("x", "return 3.0 * torch.relu(x)", body);
    assert!(
        matches!(
            &reason,
            DifferenceKind::Literal { pattern: Arg::Float(3.0), graph: Arg::Float(2.0), .. }
        ),
        "{reason:?}"
    );
}

#[test]
fn two_arguments_may_stand_for_one_value() {
    assert_eq!(count("x, y", "return x + y", "t = in_0 + in_0\nreturn (t,)"), 1);
    assert_eq!(reference_count("x, y", "return x + y", "t = in_0 + in_0\nreturn (t,)"), 0);
    // But one argument cannot stand for two.
    assert_eq!(count("x", "return x + x", "t = in_0 + in_1\nreturn (t,)"), 0);
}

#[test]
fn several_outputs() {
    let body = "a = in_0.sin()\nb = in_0.cos()\nc = a + 1\nd = b + 2\nreturn (c, d)";
    assert_eq!(count("x", "return x.sin(), x.cos()", body), 1);
    assert_eq!(reference_count("x", "return x.sin(), x.cos()", body), 1);
    // An inner value may be returned as well, and then be used outside.
    let body = "a = in_0.sin()\nb = a.cos()\nreturn (a, b)";
    assert_eq!(count("x", "a = x.sin()\nreturn a, a.cos()", body), 1);
    assert_eq!(
        stopped_by("x", "return x.sin().cos()", body),
        DifferenceKind::UsedOutside { by: None }
    );
}

#[test]
fn unconnected_parts_are_found() {
    let body = "a = in_0.sin()\nb = in_1.cos()\nreturn (a, b)";
    assert_eq!(count("x, y", "return x.sin(), y.cos()", body), 1);
}

#[test]
fn overlaps_are_resolved_in_graph_order() {
    let body = "a = in_0.relu()\nb = a.relu()\nc = b.relu()\nd = c.relu()\nreturn (d,)";
    assert_eq!(count("x", "return x.relu().relu()", body), 2);
}

// No match across effects.

#[test]
fn random_nodes_are_never_taken_out() {
    let body = "t = torch.nn.functional.dropout(in_0, 0.1, True, False)\nu = t.relu()\nreturn (u,)";
    assert_eq!(
        stopped_by("x", "return F.dropout(x, 0.1, True).relu()", body),
        DifferenceKind::Effect
    );
    let off = body.replace("True", "False");
    assert_eq!(count("x", "return F.dropout(x, 0.1, False).relu()", &off), 1);
}

/// `x <= y` for all pairs, under vmap.
const REGION: &str = "\
    t0 = torch._functorch.predispatch._vmap_increment_nesting(4, 'error')
    a = torch._functorch.predispatch._add_batch_dim(in_0, 0, 1)
    t1 = torch._functorch.predispatch._vmap_increment_nesting(4, 'error')
    b = torch._functorch.predispatch._add_batch_dim(in_1, 0, 2)
    c = a <= b
    d = torch._functorch.predispatch._remove_batch_dim(c, 2, 4, 0)
    t2 = torch._functorch.predispatch._vmap_decrement_nesting()
    e = torch._functorch.predispatch._remove_batch_dim(d, 1, 4, 0)
    t3 = torch._functorch.predispatch._vmap_decrement_nesting()
    return (e,)";

#[test]
fn a_region_under_vmap_is_taken_out_as_a_whole_or_not_at_all() {
    let body = REGION.replace("\n    ", "\n");
    let functorch = "torch._functorch.predispatch";
    let hide = |level: u8| format!("{functorch}._add_batch_dim({{}}, 0, {level})");
    let restore = |level: u8| format!("{functorch}._remove_batch_dim({{}}, {level}, 4, 0)");
    let call = |text: String, argument: &str| text.replace("{}", argument);
    let (x, y) = (call(hide(1), "x"), call(hide(2), "y"));
    let inner = call(restore(2), &format!("{x} <= {y}"));
    let whole = format!("return {}", call(restore(1), &inner));
    assert_eq!(count("x, y", &whole, &body), 1);
    // What comes in or leaves has a dimension that is hidden.
    let parts = [
        ("x, y", format!("return {inner}")),
        ("c", format!("return {}", call(restore(1), &call(restore(2), "c")))),
        ("a, y", format!("return {}", call(restore(1), &call(restore(2), &format!("a <= {y}"))))),
        ("x, y", format!("d = {inner}\nreturn d, {}", call(restore(1), "d"))),
    ];
    for (arguments, part) in parts {
        assert_eq!(stopped_by(arguments, &part, &body), DifferenceKind::Effect, "{part}");
    }
    // A level that is no number may be any.
    let open = body.replace("_add_batch_dim(in_0, 0, 1)", "_add_batch_dim(in_0, 0, t0)");
    let pattern = whole.replace(&x, &format!("{functorch}._add_batch_dim(x, 0, level)"));
    assert_eq!(count("x, y, level", &pattern, &open), 0);
}

#[test]
fn levels_of_vmap_beyond_all_reason_match_nothing() {
    let functorch = "torch._functorch.predispatch";
    let nested = |levels: usize| {
        let hide = |level: usize| {
            format!("h{} = {functorch}._add_batch_dim(h{level}, 0, {level})\n", level + 1)
        };
        let restore = |level: usize| {
            format!(
                "h{} = {functorch}._remove_batch_dim(h{}, {level}, 4, 0)\n",
                2 * levels - level,
                2 * levels - level - 1
            )
        };
        let lines: String = (0..levels).map(hide).chain((0..levels).rev().map(restore)).collect();
        (lines.replace("h0,", "{x},"), 2 * levels)
    };
    let matches = |levels: usize| {
        let (lines, last) = nested(levels);
        let pattern = lines.replace("{x}", "x");
        let body = format!("{}return (h{last},)", lines.replace("{x}", "in_0"));
        count("x", &format!("{pattern}return h{last}"), &body)
    };
    assert_eq!((matches(3), matches(40)), (1, 0));
}

#[test]
fn a_write_between_the_matched_nodes_is_respected() {
    // `sin` reads before the update, `cos` after it: one replacement cannot do both.
    let body = "a = in_0.sin()\nin_0 += in_1\nb = in_0.cos()\nc = a + b\nreturn (c,)";
    assert!(matches!(
        stopped_by("x, y", "return x.sin() + y.cos()", body),
        DifferenceKind::Between { .. }
    ));
    // Without the second read the update simply comes after.
    let body = "a = in_0.sin()\nin_0 += in_1\nb = in_2.cos()\nc = a + b\nreturn (c,)";
    assert_eq!(count("x, y", "return x.sin() + y.cos()", body), 1);
}

#[test]
fn an_update_in_place_may_stand_for_a_plain_operation_if_nobody_sees_it() {
    let unseen = "a = in_0.sin()\na += in_1\nt = a\nb = t.relu()\nreturn (b,)";
    assert_eq!(count("x, y", "return (x.sin() + y).relu()", unseen), 1);
    let seen = "a = in_0.sin()\nv = a.view(-1)\na += in_1\nt = a\nb = t.relu()\nreturn (b, v)";
    assert!(matches!(
        stopped_by("x, y", "return (x + y).relu()", seen),
        DifferenceKind::WriteSeen { .. }
    ));
    // The match itself may be the one that sees it: `v` shows the updated `a`, the pattern's view would not.
    let seen_inside = "a = in_0.sin()\nt = a.add_(in_1)\nv = a.transpose(0, 1)\nreturn (t, v)";
    assert!(matches!(
        stopped_by("x, y", "return x + y, x.transpose(0, 1)", seen_inside),
        DifferenceKind::WriteSeen { .. }
    ));
}

#[test]
fn an_input_updated_in_place_must_be_updated_by_the_pattern_too() {
    let body = "in_0 += in_1\nt = in_0\nu = t.relu()\nreturn (u,)";
    assert_eq!(stopped_by("x, y", "return (x + y).relu()", body), DifferenceKind::InputUpdated);
    assert_eq!(count("x, y", "x += y\nreturn x.relu()", body), 1);
    assert_eq!(
        stopped_by("x, y", "x += y\nreturn x.relu()", "t = in_0 + in_1\nu = t.relu()\nreturn (u,)"),
        DifferenceKind::InPlace { in_pattern: true }
    );
}

#[test]
fn a_returned_view_must_not_be_written_later() {
    let body = "a = in_0.sin()\nb = a.transpose(0, 1)\nb += 1\nc = b\nd = a.cos()\nreturn (c, d)";
    assert!(matches!(
        stopped_by("x", "return x.transpose(0, 1)", body),
        DifferenceKind::AliasWritten { .. }
    ));
    let unwritten = "a = in_0.sin()\nb = a.transpose(0, 1)\nd = a.cos()\nreturn (b, d)";
    assert_eq!(count("x", "return x.transpose(0, 1)", unwritten), 1);
}

#[test]
fn a_dependency_cycle_is_refused() {
    // `exp` lies between the two matched nodes.
    let body = "a = in_0.sin()\nb = a.exp()\nc = b.cos()\nreturn (a, c)";
    assert_eq!(count("x, y", "return x.sin(), y.cos()", body), 0);
    assert_eq!(reference_count("x, y", "return x.sin(), y.cos()", body), 0);
}

/// The list of deliberate differences stands in the documentation of the matcher, with the name of a test for each.
#[test]
fn every_deliberate_difference_has_its_test() {
    let tests =
        [include_str!("matching.rs"), include_str!("rewriting.rs"), include_str!("trace.rs")]
            .concat();
    let listed = include_str!("../src/matcher/mod.rs").lines().filter(|l| l.starts_with("//! - "));
    let names: Vec<&str> = listed.filter_map(|line| line.split('`').rev().nth(1)).collect();
    assert!(names.len() >= 18, "{names:?}");
    for name in names {
        assert!(tests.contains(&format!("#[test]\nfn {name}()")), "no test `{name}`");
    }
}

// Known bugs of torch.fx, and what happens here instead. `python -m passnet.parity.fx_matches bugs` shows them live.

#[test]
fn false_match_when_an_argument_is_bound_to_a_list_that_holds_a_matched_node() {
    // torch.fx binds `y` to the list `[a, b]` although `a` is taken out by the same match.
    let body = "a = in_0.sin()\nb = torch.cat([a, in_1])\nreturn (b,)";
    let pattern_body = "a = x.sin()\nreturn torch.cat(y), a";
    assert_eq!(count("x, y", pattern_body, body), 0);
}

#[test]
fn an_operation_without_candidate_is_no_match_not_a_crash() {
    let body = "a = in_0.sin()\nreturn (a,)";
    assert_eq!(count("x", "return x.sin(), x.cos()", body), 0);
    let pass = trace_pass(&pattern("x", "return x.sin(), x.cos()"), Dialect::Fx);
    assert_eq!(
        reference::find(&pass.pass.pattern.graph, &graph(body)),
        Err(reference::ReferenceError::Unbound)
    );
}

#[test]
fn the_reason_is_the_deepest_attempt() {
    let body = "a = in_0.sin()\nb = a.cos()\nc = b * 2\nz = in_1.sin()\nreturn (c, z)";
    assert!(matches!(
        stopped_by("x", "return x.sin().cos() * 3", body),
        DifferenceKind::Literal { .. }
    ));
}
