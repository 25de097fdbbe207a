//! Rewriting: patches are values, applied whole or not at all; and torch.fx's rewriter bugs do not happen here.

mod common;

use common::{Loaded, graph, pattern, trace_pass};
use passnet_graph::{Arg, Graph, NodeId};
use passnet_pass::matcher::{MatchOptions, Pattern, TargetGraph, find};
use passnet_pass::rewrite::{Patch, Report, RunOptions, Stop, apply, run};
use passnet_pass::trace::Dialect;

fn lines(graph: &Graph) -> Vec<String> {
    let show = |arg: &Arg| match arg {
        Arg::Node(id) => graph.node(*id).name.to_string(),
        Arg::Int(value) => value.to_string(),
        Arg::Str(value) => format!("'{value}'"),
        Arg::List(items) | Arg::Tuple(items) => format!("{} items", items.len()),
        other => format!("{other:?}"),
    };
    let mut lines: Vec<String> = graph
        .calls()
        .map(|(id, call)| {
            let args: Vec<String> = call.all_args().map(show).collect();
            format!("{} = {}({})", graph.node(id).name, call.target.path(), args.join(", "))
        })
        .collect();
    lines.push(format!("return {}", graph.outputs.iter().map(show).collect::<Vec<_>>().join(", ")));
    lines
}

fn rewrite(loaded: &Loaded, graph: &Graph) -> Report {
    run(&loaded.program, std::slice::from_ref(&loaded.pass), graph, &RunOptions::default()).unwrap()
}

fn after(arguments: &str, pattern_body: &str, graph_body: &str) -> Vec<String> {
    let loaded = trace_pass(&pattern(arguments, pattern_body), Dialect::Plain);
    lines(&rewrite(&loaded, &graph(graph_body)).graph)
}

#[test]
fn a_match_becomes_one_call_of_the_wrapper() {
    assert_eq!(
        after(
            "x, y",
            "return F.relu(x + y)",
            "a = in_0 + in_1\nb = a.relu()\nc = b.sin()\nreturn (c,)"
        ),
        ["b = wrapper(in_0, in_1)", "c = sin(b)", "return c"]
    );
}

#[test]
fn several_outputs_are_read_by_subscripts() {
    assert_eq!(
        after(
            "x",
            "a = x.sin()\nreturn a, a.cos()",
            "p = in_0.sin()\nq = p.cos()\nr = p + q\nreturn (r,)"
        ),
        [
            "wrapper_1 = wrapper(in_0)",
            "p = getitem(wrapper_1, 0)",
            "q = getitem(wrapper_1, 1)",
            "r = add(p, q)",
            "return r"
        ]
    );
}

#[test]
fn adjacent_matches_do_not_refer_to_erased_nodes() {
    // torch.fx keeps matches found before the first rewrite; here every match is found anew.
    assert_eq!(
        after(
            "x, y",
            "return x.relu() + y",
            "a = in_0.relu()\nb = a + in_1\nc = b.relu()\nd = c + in_2\nreturn (d,)"
        ),
        ["b = wrapper(in_0, in_1)", "d = wrapper(b, in_2)", "return d"]
    );
    // The second match is bound to a list that holds the result of the first one.
    assert_eq!(
        after(
            "x",
            "return torch.cat(x).relu()",
            "a = torch.cat([in_0, in_1])\nb = a.relu()\nc = torch.cat([b, in_2])\nd = c.relu()\nreturn (d,)"
        ),
        ["b = wrapper(2 items)", "d = wrapper(2 items)", "return d"]
    );
}

#[test]
fn use_before_definition_with_several_outputs_is_sorted_out() {
    // The user of the first output stands before the definition of an input of the second one. torch.fx puts
    // the replacement before that user, where `late` does not exist yet.
    assert_eq!(
        after(
            "x, y",
            "return x.sin(), y.cos()",
            "a = in_0.sin()\nearly = a + 1\nlate = in_1.exp()\nb = late.cos()\nreturn (early, b)"
        ),
        [
            "late = exp(in_1)",
            "wrapper_1 = wrapper(in_0, late)",
            "a = getitem(wrapper_1, 0)",
            "b = getitem(wrapper_1, 1)",
            "early = add(a, 1)",
            "return early, b"
        ]
    );
}

#[test]
fn effects_on_different_memory_may_trade_places() {
    // `first` needs the replacement and goes after it; `second`, which writes elsewhere, does not have to wait.
    assert_eq!(
        after(
            "x, y",
            "return x.sin(), y.cos()",
            "a = in_0.sin()\nfirst = a.add_(1)\nsecond = in_1.add_(2)\nb = in_2.cos()\nreturn (first, second, b)"
        ),
        [
            "second = add_(in_1, 2)",
            "wrapper_1 = wrapper(in_0, in_2)",
            "a = getitem(wrapper_1, 0)",
            "b = getitem(wrapper_1, 1)",
            "first = add_(a, 1)",
            "return first, second, b"
        ]
    );
}

#[test]
fn identity_replacement_is_refused_while_tracing() {
    // A pattern that returns its argument makes torch.fx replace a value by itself and erase it.
    let text = pattern("x", "return x");
    let program = passnet_pass::load::Program::from_source(passnet_graph::syntax::Source::new(
        "p.py",
        text.as_str(),
    ))
    .unwrap();
    let bindings = passnet_pass::load::Bindings::of(&program);
    let file = passnet_pass::load::PassFile {
        name: "p".into(),
        module: program.ids().next().unwrap(),
        is_input: false,
    };
    let errors =
        passnet_pass::trace::trace(&program, &bindings, &file, Dialect::Plain).unwrap_err();
    assert!(errors[0].message.contains("unchanged"));
}

#[test]
fn a_keyword_named_out_is_a_write_like_any_other() {
    // torch.fx mistakes a keyword `out` for its own output node.
    let body = "a = in_0.sin()\nb = torch.add(in_1, a, out=in_2)\nc = b.relu()\nreturn (c,)";
    assert_eq!(
        after("x, y", "return (x + y).relu()", body),
        ["a = sin(in_0)", "b = torch.add(in_1, a, in_2)", "c = relu(b)", "return c"],
        "the write into in_2 would be lost"
    );
    // Even where the pattern has the keyword too: the wrapper is not asked to write into the argument.
    let body = "a = torch.add(in_0, in_1, out=in_2)\nb = a.relu()\nreturn (b, in_2)";
    assert_eq!(
        after("x, y, z", "return torch.add(x, y, out=z).relu()", body),
        ["a = torch.add(in_0, in_1, in_2)", "b = relu(a)", "return b, in_2"]
    );
}

#[test]
fn a_result_nobody_uses_matches_and_changes_nothing() {
    let loaded = trace_pass(&pattern("x", "return x.sin()"), Dialect::Plain);
    // No output would tell whether the pass is right.
    let report = rewrite(&loaded, &graph("a = in_0.sin()\nb = in_1.cos()\nreturn (b,)"));
    assert_eq!((report.applied[0].patches.len(), report.applied[0].needed), (1, 0));
    assert_eq!(lines(&report.graph), ["a = sin(in_0)", "b = cos(in_1)", "return b"]);
    assert!(report.left_out.is_empty());
    // Beside a result that is used, it is left out.
    let report = rewrite(&loaded, &graph("a = in_0.sin()\nb = in_1.sin()\nreturn (b,)"));
    assert_eq!((report.applied[0].patches.len(), report.applied[0].needed), (1, 1));
    assert_eq!(lines(&report.graph), ["b = wrapper(in_1)", "return b"]);
}

#[test]
fn operations_in_replacement_args_become_nodes() {
    let text = pattern("x, y", "return x.t() @ y")
        .replace("return (x, y,)", "return (x.contiguous(), y, 'mm')");
    let loaded = trace_pass(&text, Dialect::Plain);
    let report = rewrite(&loaded, &graph("a = in_0.t()\nb = a @ in_1\nreturn (b,)"));
    assert_eq!(
        lines(&report.graph),
        ["contiguous = contiguous(in_0)", "b = wrapper(contiguous, in_1, 'mm')", "return b"]
    );
}

#[test]
fn a_pass_that_matches_its_own_output_is_stopped() {
    let text = pattern("x", "return x.relu()").replace("return (x,)", "return (x.relu(),)");
    let loaded = trace_pass(&text, Dialect::Plain);
    let report = rewrite(&loaded, &graph("a = in_0.relu()\nreturn (a,)"));
    assert_eq!(report.applied[0].stop, Stop::MatchesItself);
    assert_eq!(report.applied[0].patches.len(), 1);
    // What it did not make itself is rewritten all the same.
    let report =
        rewrite(&loaded, &graph("a = in_0.relu()\nb = a.sin()\nc = b.relu()\nreturn (c,)"));
    assert_eq!(report.applied[0].stop, Stop::MatchesItself);
    assert_eq!(report.applied[0].patches.len(), 2);
}

#[test]
fn passes_apply_in_order_and_see_what_earlier_ones_left() {
    let first = trace_pass(&pattern("x, y", "return x + y"), Dialect::Plain);
    let second = trace_pass(&pattern("x, y", "return (x + y).relu()"), Dialect::Plain);
    let graph = graph("a = in_0 + in_1\nb = a.relu()\nreturn (b,)");
    let passes = [first.pass.clone(), second.pass.clone()];
    let report = run(&first.program, &passes, &graph, &RunOptions::default()).unwrap();
    let counts: Vec<usize> = report.applied.iter().map(|a| a.patches.len()).collect();
    assert_eq!(counts, [1, 0]);
    let passes = [second.pass.clone(), first.pass.clone()];
    let report = run(&second.program, &passes, &graph, &RunOptions::default()).unwrap();
    let counts: Vec<usize> = report.applied.iter().map(|a| a.patches.len()).collect();
    assert_eq!(counts, [1, 0]);
}

#[test]
fn a_stale_patch_is_refused_and_the_graph_is_untouched() {
    let loaded = trace_pass(&pattern("x", "return x.relu()"), Dialect::Plain);
    let old = graph("a = in_0.relu()\nb = a.sin()\nreturn (b,)");
    let pattern = Pattern::new(&loaded.pass.pattern.graph);
    let found = find(&pattern, &TargetGraph::new(&old), &MatchOptions::default()).matches.remove(0);
    let patch = Patch::new(&loaded.program, &loaded.pass, &old, &found).unwrap();
    let other = graph("a = in_0.cos()\nb = a.relu()\nreturn (b,)");
    let error = apply(&other, &patch).unwrap_err();
    assert_eq!(error.to_string(), "pass `pass`: the patch is stale: node 3 is not what it was");
    let mut outside = patch.clone();
    outside.replaces = vec![NodeId::new(4)];
    assert!(apply(&old, &outside).unwrap_err().message.contains("not among the removed nodes"));
    let mut gone = patch;
    gone.taps = vec![Arg::Node(NodeId::new(3))];
    assert!(apply(&old, &gone).unwrap_err().message.contains("tapped but would be gone"));
}

#[test]
fn updates_in_place_are_handed_on_to_the_wrapper() {
    let loaded = trace_pass(&pattern("x, y", "x += y\nreturn x.relu()"), Dialect::Plain);
    let report = rewrite(&loaded, &graph("in_0 += in_1\nt = in_0\nu = t.relu()\nreturn (u,)"));
    let (_, call) = report.graph.calls().next().unwrap();
    assert_eq!(call.target.replacement().unwrap().writes, [0]);
}

/// What a wrapper may write over: the argument that nobody needs any more.
#[test]
fn an_argument_is_dead_once_nobody_uses_it_or_what_shares_its_memory() {
    let dead = |body: &str| {
        let loaded = trace_pass(&pattern("x", "return x.relu()"), Dialect::Plain);
        let report = rewrite(&loaded, &graph(body));
        let call = report.graph.calls().find_map(|(_, call)| call.target.replacement()).unwrap();
        !call.dead.is_empty()
    };
    for body in [
        "t = in_0 + in_1\nu = t.relu()\nreturn (u,)",
        // Used before, itself and as a view.
        "t = in_0 + in_1\ns = t.sum()\nu = t.relu()\nreturn (u, s)",
        "t = in_0 + in_1\nv = t.view(-1)\ns = v.sum()\nu = t.relu()\nreturn (u, s)",
        "t = in_0 + in_1\nt[0] = 1\nu = t.relu()\nreturn (u,)",
    ] {
        assert!(dead(body), "{body}");
    }
    for body in [
        "u = in_0.relu()\nreturn (u,)",
        "v = in_0.view(-1)\nu = v.relu()\nreturn (u,)",
        "t = in_0 + in_1\nu = t.relu()\nreturn (u, t)",
        "t = in_0 + in_1\nu = t.relu()\ns = t.sum()\nreturn (u, s)",
        "t = in_0 + in_1\nv = t.view(-1)\nu = t.relu()\ns = v.sum()\nreturn (u, s)",
        "t = in_0 + in_1\nv = t.view(-1)\nu = v.relu()\ns = t.sum()\nreturn (u, s)",
        "t = in_0 + in_1\nv = t.view(-1)\nu = t.relu()\nreturn (u, v)",
    ] {
        assert!(!dead(body), "{body}");
    }
}

/// A second pass may not take a use of a value behind the wrapper that writes over it.
#[test]
fn uses_of_a_dead_argument_stay_before_its_wrapper() {
    let loaded = trace_pass(&pattern("x", "return x.relu()"), Dialect::Plain);
    let first =
        rewrite(&loaded, &graph("t = in_0 + in_1\ns = t.sum()\nu = t.relu()\nreturn (u, s)"));
    let graph = &first.graph;
    let order = passnet_graph::graph::effects::Effects::of(graph).order(graph);
    let (wrapper, _) = graph.calls().find(|(_, call)| call.target.replacement().is_some()).unwrap();
    let (sum, _) = graph.calls().find(|(id, _)| &*graph.node(*id).name == "s").unwrap();
    assert!(order[wrapper.index()].contains(&sum), "{order:?}");
}

#[test]
fn a_changed_graph_does_without_what_nothing_needs() {
    let loaded = trace_pass(&pattern("x", "return x.relu().sin()"), Dialect::Plain);
    // `a` would have a second reader; `d` is memory that nothing needs, with an update of it.
    let text =
        "a = in_0.relu()\nb = a.sin()\nc = a.cos()\nd = in_1.exp()\nd += 1\ne = d\nreturn (b,)";
    let report = rewrite(&loaded, &graph(text));
    assert_eq!(lines(&report.graph), ["b = wrapper(in_0)", "return b"]);
    assert_eq!(report.left_out.iter().map(|name| &**name).collect::<Vec<_>>(), ["c", "d", "e"]);
    // What the graph was given, and what it draws, it must leave as eager leaves them.
    let text =
        "a = in_0.relu()\nb = a.sin()\nin_1 += 1\nc = in_1\nd = torch.rand_like(in_1)\nreturn (b,)";
    let report = rewrite(&loaded, &graph(text));
    assert_eq!(report.left_out.len(), 0, "{:?}", lines(&report.graph));
    // A graph that no pass changes stays as it is.
    let report = rewrite(&loaded, &graph("a = in_0.cos()\nb = a.exp()\nreturn (a,)"));
    assert_eq!(lines(&report.graph), ["a = cos(in_0)", "b = exp(a)", "return a"]);
}

#[test]
fn a_pattern_may_name_what_nothing_needs() {
    let loaded = trace_pass(&pattern("x", "a = x.relu()\nreturn a.sin(), a.cos()"), Dialect::Plain);
    let report = rewrite(&loaded, &graph("a = in_0.relu()\nb = a.sin()\nc = a.cos()\nreturn (b,)"));
    let wanted = ["wrapper_1 = wrapper(in_0)", "b = getitem(wrapper_1, 0)", "return b"];
    assert_eq!(lines(&report.graph), wanted);
}
