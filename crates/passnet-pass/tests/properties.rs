//! Properties: rewriting and going back changes nothing, and no text makes the crate panic.

mod common;

use common::random::{Step, graph_text, lines, pattern_text, steps};
use common::{graph, pattern, trace_pass};
use passnet_graph::ops::Op;
use passnet_graph::syntax::Source;
use passnet_graph::{Arg, Call, Graph, identify};
use passnet_pass::load::{Bindings, PassFile, Program};
use passnet_pass::matcher::{MatchOptions, Pattern, TargetGraph, find, nearest, reference};
use passnet_pass::rewrite::{RunOptions, restore, run};
use passnet_pass::trace::{Dialect, trace};
use proptest::prelude::*;
use std::hash::{DefaultHasher, Hash, Hasher};

/// How many calls update in place. One that nobody watches may be matched by a plain operation of the pattern,
/// and comes back as one: the same results by another graph.
fn updates(graph: &Graph) -> usize {
    let in_place = |call: &Call| call.bind().is_ok_and(|bound| bound.is_in_place());
    graph.calls().filter(|(_, call)| in_place(call)).count()
}

fn same(a: &Graph, b: &Graph) -> bool {
    identify(a, &[]).literals == identify(b, &[]).literals
}

/// What every node computes and what the graph returns, whichever way round sums and products are written.
fn digests(graph: &Graph) -> Vec<u64> {
    let hash = |text: &str| {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        hasher.finish()
    };
    let mut known: Vec<u64> = Vec::new();
    for id in graph.ids() {
        let value = |arg: &Arg| {
            let mut arg = arg.clone();
            arg.map_nodes(&mut |id| Arg::Int(known[id.index()] as i64));
            format!("{arg:?}")
        };
        let text = match graph.call(id) {
            None => format!("input {}", graph.node(id).name),
            Some(call) => {
                let mut args: Vec<String> = call.args.iter().map(value).collect();
                if matches!(call.op(), Some(Op::Add | Op::Mul)) && call.kwargs.is_empty() {
                    args.sort();
                }
                let kwargs = call.kwargs.iter().map(|(name, arg)| format!("{name}={}", value(arg)));
                args.extend(kwargs);
                format!("{:?} {args:?}", call.op())
            }
        };
        known.push(hash(&text));
    }
    let mut outputs: Vec<u64> = Vec::new();
    for output in &graph.outputs {
        output.for_each_node(&mut |id| outputs.push(known[id.index()]));
    }
    known.sort_unstable();
    known.extend(outputs);
    known
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn rewriting_and_restoring_gives_the_same_graph(
        steps in steps(), start in 0..14_usize, length in 1..5_usize, extra in 0..14_usize, commutative: bool,
    ) {
        let lines = lines(&steps);
        let graph = graph(&graph_text(&lines, extra));
        let start = start % lines.len();
        let piece = &lines[start..(start + length).min(lines.len())];
        let (parameters, body) = pattern_text(piece);
        let loaded = trace_pass(&pattern(&parameters, &body), Dialect::Plain);
        let matching = MatchOptions { commutative, ..Default::default() };
        let options = RunOptions { matching, ..Default::default() };
        let passes = std::slice::from_ref(&loaded.pass);
        let report = run(&loaded.program, passes, &graph, &options).unwrap();
        prop_assert!(report.graph.verify().is_ok());
        let restored = restore(&report.graph, &loaded.pass).unwrap();
        prop_assert!(restored.verify().is_ok());
        let exact = !commutative && restored.op_count() == graph.op_count();
        let comparable = exact && updates(&restored) == updates(&graph);
        let equal = same(&restored, &graph) || digests(&restored) == digests(&graph);
        prop_assert!(!comparable || equal, "{}\n{:?}\n{:?}", body, graph, restored);
        prop_assert!(commutative || exact, "operations were lost or made");
    }

    #[test]
    fn a_piece_without_effects_always_matches_where_it_was_cut(
        steps in steps(), start in 0..14_usize, length in 1..5_usize,
    ) {
        let steps: Vec<Step> = steps.into_iter().filter(|step| ![10, 11].contains(&step.form)).collect();
        prop_assume!(!steps.is_empty());
        let lines = lines(&steps);
        let graph = graph(&graph_text(&lines, 0));
        let start = start % lines.len();
        let piece = &lines[start..(start + length).min(lines.len())];
        let (parameters, body) = pattern_text(piece);
        let loaded = trace_pass(&pattern(&parameters, &body), Dialect::Plain);
        let pattern = Pattern::new(&loaded.pass.pattern.graph);
        let target = TargetGraph::new(&graph);
        let found = find(&pattern, &target, &MatchOptions::default());
        prop_assert!(!found.matches.is_empty(), "{}\n{:?}", body, found.miss);
        prop_assert!(nearest(&pattern, &target, &MatchOptions::default(), 1).is_some_and(|n| n.complete));
    }

    #[test]
    fn the_reference_never_panics_and_never_overlaps(steps in steps(), start in 0..14_usize, length in 1..5_usize) {
        let lines = lines(&steps);
        let graph = graph(&graph_text(&lines, 0));
        let start = start % lines.len();
        let (parameters, body) = pattern_text(&lines[start..(start + length).min(lines.len())]);
        let loaded = trace_pass(&pattern(&parameters, &body), Dialect::Fx);
        let normal = reference::normalise(&loaded.pass.pattern.graph);
        if let Ok(matches) = reference::find(&normal, &graph) {
            let mut nodes: Vec<_> = matches.iter().flat_map(|m| m.nodes.clone()).collect();
            let count = nodes.len();
            nodes.sort();
            nodes.dedup();
            prop_assert_eq!(nodes.len(), count);
        }
    }
}

/// Everything that can be done to a pass text.
fn survive(text: &str) {
    let Ok(program) = Program::from_source(Source::new("pass.py", text)) else { return };
    let bindings = Bindings::of(&program);
    let file =
        PassFile { name: "pass".into(), module: program.ids().next().unwrap(), is_input: false };
    let graph = graph("a = in_0 + in_1\nb = torch.relu(a)\nreturn (b,)");
    for dialect in [Dialect::Plain, Dialect::Fx] {
        let traced = trace(&program, &bindings, &file, dialect).ok();
        passnet_pass::rules::check(&program, &bindings, &file, traced.as_ref());
        if let Some(pass) = traced {
            let pattern = Pattern::new(&pass.pattern.graph);
            find(&pattern, &TargetGraph::new(&graph), &MatchOptions::default());
            nearest(&pattern, &TargetGraph::new(&graph), &MatchOptions::default(), 2);
            let _ = reference::find(&reference::normalise(&pass.pattern.graph), &graph);
            let _ = run(&program, std::slice::from_ref(&pass), &graph, &RunOptions::default());
        }
    }
}

fn fixture_texts() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/passes");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    paths.iter().filter_map(|path| std::fs::read_to_string(path).ok()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn damaged_passes_do_no_harm(
        which in 0..1000_usize, at in 0..10_000_usize, length in 0..40_usize,
        insert in "[a-z0-9_ ().,:=+*\\[\\]'\n-]{0,12}",
    ) {
        let texts = fixture_texts();
        let mut chars: Vec<char> = texts[which % texts.len()].chars().collect();
        let start = at % chars.len();
        let end = (start + length).min(chars.len());
        chars.splice(start..end, insert.chars());
        survive(&chars.into_iter().collect::<String>());
    }

    #[test]
    fn lines_from_two_passes_do_no_harm(a in 0..1000_usize, b in 0..1000_usize, keep in prop::collection::vec(any::<bool>(), 60)) {
        let texts = fixture_texts();
        let (a, b) = (&texts[a % texts.len()], &texts[b % texts.len()]);
        let mixed: Vec<&str> = a.lines().zip(b.lines().chain(std::iter::repeat("")))
            .zip(keep.iter().cycle())
            .map(|((x, y), keep)| if *keep { x } else { y })
            .collect();
        survive(&mixed.join("\n"));
    }
}

#[test]
fn hostile_texts_are_bounded() {
    let deep =
        format!("def pattern(x):\n    return {}x{}\n", "torch.relu(".repeat(150), ")".repeat(150));
    let wide = format!("def pattern(x):\n    return torch.cat([{}])\n", "x, ".repeat(50_000));
    let chain =
        format!("import torch\ndef pattern(x):\n{}    return x\n", "    x = x + x\n".repeat(3000));
    let ambiguous = pattern("a, b, c, d", "return a.relu() + b.relu(), c.relu() + d.relu()");
    let comprehension = "def pattern(x):\n    return [[[i for i in range(9999)] for j in range(9999)] for k in range(9999)]\n";
    for text in [deep.as_str(), wide.as_str(), chain.as_str(), ambiguous.as_str(), comprehension] {
        survive(text);
    }
    // A pattern that fits in very many ways is given up, not waited for.
    let loaded = trace_pass(
        &pattern(
            "a, b, c, d, e, f",
            "return a.relu(), b.relu(), c.relu(), d.relu(), e.relu(), f.sin()",
        ),
        Dialect::Plain,
    );
    let body: String = (0..60).map(|i| format!("t{i} = in_0.relu()\n")).collect();
    let many = graph(&format!("{body}s = t59.sin()\nz = t0.relu()\nreturn (s, z)"));
    let found = find(
        &Pattern::new(&loaded.pass.pattern.graph),
        &TargetGraph::new(&many),
        &MatchOptions { steps: 200_000, ..Default::default() },
    );
    assert!(found.matches.len() <= 1);
}
