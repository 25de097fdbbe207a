//! Bad input gets a clear answer, and a solved task is not solved again.

mod common;

use common::{GraphText, Task, written};
use passnet_bench::verdict::VerdictKind;
use passnet_engine::native::NativeEngine;
use passnet_solver::analysis::groups::{Group, groups};
use passnet_solver::analysis::parts::parts;
use passnet_solver::emit::{Choice, Draft, pass_files};
use passnet_solver::graph_family::{GraphFamily, TypedGraph, families};
use passnet_solver::solve::{SolveError, SolveOptions};

fn task(inputs: &[&'static str], body: &[&'static str]) -> Task {
    Task::new(&[GraphText { inputs: inputs.to_vec(), body: body.to_vec() }])
}

#[test]
fn a_task_without_graphs_says_so() {
    let mut task = task(&["x float32 [2, 3]"], &["tmp_0 = x + 1.0", "return (tmp_0,)"]);
    task.sample.graphs.clear();
    let error = task.solve().unwrap_err();
    assert!(matches!(error, SolveError::NoGraph { .. }), "{error}");
}

#[test]
fn an_unreadable_graph_is_named() {
    let task = task(&["x float32 [2, 3]"], &["tmp_0 = x +", "return (tmp_0,)"]);
    let text = task.solve().unwrap_err().to_string();
    assert!(text.contains("model.py") && text.contains("no graph can be read"), "{text}");
}

#[test]
fn one_bad_graph_does_not_spoil_the_others() {
    let graph = |body: Vec<&'static str>| GraphText { inputs: vec!["x float32 [2, 3]"], body };
    let task = Task::new(&[
        graph(vec!["tmp_0 = x +", "return (tmp_0,)"]),
        graph(vec!["tmp_0 = torch.sigmoid(x)", "return (tmp_0,)"]),
    ]);
    let explanation = task.solve().unwrap();
    assert_eq!(explanation.passes.len(), 1);
    assert_eq!(explanation.unreadable.len(), 1);
}

#[test]
fn an_operation_without_a_loop_form_is_left_with_its_reason() {
    let task = task(
        &["x float32 [4, 9]"],
        &["tmp_0 = torch.cumprod(x, 1)", "tmp_1 = torch.argsort(tmp_0)", "return (tmp_1,)"],
    );
    let text = task.solve().unwrap_err().to_string();
    assert!(text.contains("nothing to fuse"), "{text}");
    assert!(!task.passes().join("explain.json").exists());
}

#[test]
fn an_unknown_operation_is_left_alone_and_the_rest_is_fused() {
    let task = task(
        &["x float32 [4, 9]"],
        &[
            "tmp_0 = torch.sigmoid(x)",
            "tmp_1 = torch.cumprod(tmp_0, 1)",
            "tmp_2 = tmp_1 * 2.0",
            "tmp_3 = tmp_2 + x",
            "return (tmp_3,)",
        ],
    );
    let explanation = task.solve().unwrap();
    let names: Vec<&str> = explanation.passes.iter().map(|pass| pass.name.as_str()).collect();
    assert_eq!(names, ["mul_add", "sigmoid"]);
    let verdicts = task.evaluate();
    assert!(verdicts.iter().all(|e| e.judged.verdict.kind.to_string() == "correct"));
}

/// The family of a task's first graph.
fn first_form(task: &Task) -> GraphFamily {
    let files = task.sample.graph_files(&task.sample.graphs[0]).unwrap();
    families(vec![TypedGraph::read(&files).unwrap()], Vec::new()).remove(0)
}

/// The operations of each group of a family.
fn operations(family: &GraphFamily) -> Vec<Vec<&'static str>> {
    let names = |group: &Group| {
        group.piece.graph.calls().filter_map(|(_, call)| Some(call.op()?.name())).collect()
    };
    groups(family, None).0.iter().map(names).collect()
}

#[test]
fn what_is_made_of_nothing_comes_with_whoever_reads_it() {
    let task = task(
        &["x float32 [4, 9]"],
        &[
            "tmp_0 = torch.arange(18)",
            "tmp_1 = torch.chunk(tmp_0, 2)",
            "tmp_2 = tmp_1[0]",
            "tmp_3 = tmp_2 * 2",
            "tmp_4 = tmp_3.to(device=device(type='cuda', index=0))",
            "tmp_5 = torch.sigmoid(x)",
            "tmp_6 = tmp_5 + tmp_4",
            "return (tmp_6,)",
        ],
    );
    let mut family = first_form(&task);
    let all = [["arange", "chunk", "getitem", "mul", "to", "sigmoid", "add"]];
    assert_eq!(operations(&family), all);
    // A GPU's kernel computes it, too: what lies in the host's memory otherwise is never made.
    family.run_on_gpu(132);
    assert_eq!(operations(&family), all);
}

#[test]
fn a_tensor_of_the_cpu_that_others_read_is_left_to_the_cpu() {
    let task = task(
        &["x float32 [4, 9]"],
        &[
            "tmp_0 = torch.arange(9)",
            "tmp_1 = tmp_0 * 2",
            "tmp_2 = tmp_1.to(device=device(type='cuda', index=0))",
            "tmp_3 = torch.sigmoid(x)",
            "tmp_4 = tmp_3 + tmp_2",
            "return (tmp_1, tmp_4)",
        ],
    );
    let mut family = first_form(&task);
    family.run_on_gpu(132);
    assert_eq!(operations(&family), [["sigmoid", "add"]]);
    let (_, left) = groups(&family, None);
    assert!(left.iter().any(|left| left.reason.contains("without a device")), "{left:?}");
}

/// Tables that a graph makes in the host's memory and sends to the GPU: nothing else is read of them there.
#[test]
fn what_is_made_on_the_host_and_sent_is_made_by_a_kernel_for_a_gpu() {
    let sent = "tmp_9 = tmp_0.to(torch.device(type='cuda', index=0))";
    for body in [
        vec![
            "tmp_0 = torch.zeros(1, 36, 36, 3)",
            "tmp_1 = torch.arange(6)",
            "tmp_2 = tmp_1.view(1, -1)",
            "tmp_3 = torch.arange(6)",
            "tmp_4 = tmp_3.view(-1, 1)",
            "tmp_5 = tmp_2 - tmp_4",
            "tmp_6 = tmp_5.repeat(6, 6)",
            "tmp_7 = tmp_6 ** 2",
            "tmp_8 = tmp_7.unsqueeze(0)",
            "tmp_0[slice(None, None, None), slice(None, None, None), slice(None, None, None), 2] = tmp_8",
            "tmp_10 = tmp_0",
            sent,
            "return (tmp_9,)",
        ],
        vec![
            "tmp_1 = torch.arange(40, dtype=torch.int64)",
            "tmp_2 = torch.zeros_like(tmp_1, dtype=torch.int64)",
            "tmp_3 = tmp_1 * 3",
            "tmp_4 = torch.full_like(tmp_3, 50)",
            "tmp_5 = torch.min(tmp_3, tmp_4)",
            "tmp_2 += tmp_5",
            "tmp_0 = tmp_2",
            sent,
            "return (tmp_9,)",
        ],
    ] {
        let task = task(&[], &body);
        let options = SolveOptions { tune: false, for_gpu: true, ..SolveOptions::default() };
        let found = task.solve_with(&options).unwrap_or_else(|error| panic!("{body:?}: {error}"));
        assert!(found.left.is_empty(), "{body:?}: {:?}", found.left);
        assert_eq!(found.passes.len(), 1, "{body:?}: {:?}", found.passes);
        assert!(!found.passes[0].passthrough, "{body:?}");
        assert_all_right(&task, &common::written(&task.passes()));
    }
}

/// Numbers of a graph are a result, and others follow from them: one kernel gives all of it.
#[test]
fn what_follows_from_numbers_that_are_returned_has_their_kernel() {
    let task = task(
        &["x float32 [3, 6, 4]"],
        &[
            "tmp_0 = torch.as_tensor([(25, 25)], dtype=torch.int64, device=torch.device('cpu'))",
            "tmp_1 = tmp_0.new_zeros((1,))",
            "tmp_2 = tmp_0.prod(1)",
            "tmp_3 = tmp_2.cumsum(0)",
            "tmp_4 = tmp_3[slice(None, -1, None)]",
            "tmp_5 = torch.cat((tmp_1, tmp_4))",
            "tmp_6 = x[slice(None, None, None), slice(None, None, None), 0]",
            "return (tmp_0, tmp_3, tmp_5, tmp_6)",
        ],
    );
    let options = SolveOptions { tune: false, for_gpu: true, ..SolveOptions::default() };
    let found = task.solve_with(&options).unwrap();
    assert_eq!(found.passes.len(), 1, "{:?} {:?}", found.passes, found.left);
    assert_all_right(&task, &common::written(&task.passes()));
}

#[test]
fn a_piece_that_occurs_twice_and_loses_leaves_a_neutral_pass() {
    // Two copies of one block: the second finds the first one's pattern written, and dropped again.
    let task = task(
        &["x float32 [2, 3, 4]", "y float32 [2, 3, 4]"],
        &[
            "tmp_0 = torch.cat([x, y], dim=1)",
            "tmp_1 = torch.cumprod(tmp_0, 1)",
            "tmp_2 = torch.cat([tmp_1, tmp_0], dim=1)",
            "return (tmp_2,)",
        ],
    );
    let explanation = task.solve_with(&SolveOptions::default()).unwrap();
    assert!(!explanation.passes.is_empty(), "{explanation:?}");
}

/// With the passes as they were written, every graph of the task is right.
fn assert_all_right(task: &Task, text: &str) {
    for evaluation in task.evaluate() {
        assert_eq!(evaluation.judged.verdict.kind.to_string(), "correct", "{text}");
    }
}

#[test]
fn a_list_of_views_is_handed_back_part_by_part() {
    for (list, parts) in [
        ("torch.functional.split(tmp_0, (3, 2), dim=1)", ["tmp_0[:, :3]", "tmp_0[:, 3:][:, :2]"]),
        ("tmp_0.split(3, 1)", ["tmp_0.split(3, 1)[0]", "tmp_0.split(3, 1)[1]"]),
        ("tmp_0.chunk(2, dim=1)", ["tmp_0.chunk(2, 1)[0]", "tmp_0.chunk(2, 1)[1]"]),
    ] {
        let [first, second] = parts;
        let handed_back =
            format!("    tmp_2 = {first}\n    tmp_3 = {second}\n    return tmp_2, tmp_3\n");
        let line = format!("tmp_1 = {list}");
        let body = vec![
            "tmp_0 = torch.cumprod(x, 1)",
            &line,
            "tmp_2 = tmp_1[0]",
            "tmp_3 = tmp_1[1]",
            "return (tmp_0, tmp_2, tmp_3)",
        ];
        let task = Task::new(&[GraphText { inputs: vec!["x float32 [2, 5, 6]"], body }]);
        task.solve().unwrap();
        let text = common::written(&task.passes());
        assert!(text.contains(&handed_back), "{text}");
        assert_all_right(&task, &text);
    }
}

/// Statements that libraries do, around one view or operation without effect, and what the wrapper hands back for it.
#[test]
fn what_eager_gets_for_nothing_is_handed_back() {
    for (statement, handed_back) in [
        ("tmp_0.transpose(1, 2)", "tmp_0.transpose(1, 2)"),
        ("torch.permute(tmp_0, (2, 0, 1))", "tmp_0.permute(2, 0, 1)"),
        ("tmp_0.contiguous()", "tmp_0"),
        ("tmp_0.to(torch.float32)", "tmp_0"),
        ("torch.nn.functional.dropout(tmp_0, 0.1, False, False)", "tmp_0"),
        ("tmp_0.flatten(1)", "tmp_0.view(tmp_0.shape[0], -1)"),
        ("tmp_0.unsqueeze(-1)", "tmp_0.unsqueeze(-1)"),
        ("tmp_0[(Ellipsis, slice(None, 3, None))]", "tmp_0[..., :3]"),
        ("tmp_0[(slice(None, None, None), 0)]", "tmp_0[:, 0]"),
    ] {
        let line = format!("tmp_1 = {statement}");
        let body = vec![
            "tmp_0 = torch.cumprod(x, 1)",
            &line,
            "tmp_2 = torch.cumprod(tmp_1, 0)",
            "return (tmp_2,)",
        ];
        let task = Task::new(&[GraphText { inputs: vec!["x float32 [2, 5, 6]"], body }]);
        for tune in [false, true] {
            let explanation =
                task.solve_with(&SolveOptions { tune, ..SolveOptions::default() }).unwrap();
            assert!(explanation.passes.iter().all(|pass| pass.passthrough), "{explanation:?}");
            let text = common::written(&task.passes());
            assert!(text.contains(&format!("    return {handed_back}\n")), "{statement}:\n{text}");
            assert!(!text.contains("triton"), "{text}");
            assert_all_right(&task, &text);
            if tune {
                assert!(explanation.outcome.starts_with("nothing wins: the passes are neutral"));
            }
        }
    }
}

#[test]
fn a_solved_task_is_found_again() {
    let task = task(&["x float32 [4, 9]"], &["tmp_0 = torch.sigmoid(x)", "return (tmp_0,)"]);
    let first = task.solve().unwrap();
    let pass = task.passes().join("sigmoid.py");
    std::fs::write(&pass, "# touched").unwrap();
    assert_eq!(task.solve().unwrap(), first);
    assert_eq!(std::fs::read_to_string(&pass).unwrap(), "# touched");
}

#[test]
fn without_time_for_tuning_passes_have_the_usual_choice() {
    let body = ["tmp_0 = x.softmax(-1)", "tmp_1 = tmp_0 * 2.0", "return (tmp_1,)"];
    let task = task(&["x float32 [64, 90]"], &body);
    let options = SolveOptions { tune_seconds: Some(0.0), ..SolveOptions::default() };
    let explanation = task.solve_with(&options).unwrap();
    assert!(explanation.passes.iter().all(|pass| pass.measured_speedup.is_none()));
    // The whole graph is raced all the same.
    assert!(explanation.wins.is_some(), "{explanation:?}");
    assert_all_right(&task, &common::written(&task.passes()));
}

#[test]
fn what_was_measured_is_not_measured_again() {
    let body = ["tmp_0 = x.softmax(-1)", "tmp_1 = tmp_0 * 2.0", "return (tmp_1,)"];
    let kept = tempfile::tempdir().unwrap();
    let times = kept.path().join("times");
    let options = SolveOptions { measurements: Some(times.clone()), ..SolveOptions::default() };
    let solve = || task(&["x float32 [64, 90]"], &body).solve_with(&options).unwrap();
    solve();
    let files = || std::fs::read_dir(&times).unwrap().map(|file| file.unwrap().path());
    assert!(files().count() > 0);
    for file in files() {
        std::fs::write(file, r#"{"speedup": 64.0, "eager_seconds": 64.0, "seconds": 1.0}"#)
            .unwrap();
    }
    let found = solve();
    let is_planted = |speedup: Option<f64>| speedup.is_some_and(|speedup| speedup > 63.0);
    assert!(is_planted(found.passes[0].measured_speedup), "{found:?}");
    // Nor is anything believed that is no time.
    for (file, text) in files()
        .zip(["", "[", r#"{"speedup": -1, "eager_seconds": 1, "seconds": 1}"#].into_iter().cycle())
    {
        std::fs::write(file, text).unwrap();
    }
    let found = solve();
    assert!(!is_planted(found.passes[0].measured_speedup), "{found:?}");
}

/// Says that the first two dimensions of its inputs, 1 and 16 here, may have other sizes.
fn promise_sizes(task: &Task, shapes: &str) {
    let constraints = format!(
        "from sympy import Symbol\n\nS0 = Symbol(\"S0\")\nS1 = Symbol(\"S1\")\n\n\
        dynamic_dim_constraint_symbols = [S0, S1]\n\n\
        dynamic_dim_constraint_symbol2example_value = {{S0: 1, S1: 16}}\n\n\
        dynamic_dim_constraint_relations = []\n\n\
        dynamic_dim_constraint_input_shapes = [{shapes}]\n"
    );
    let path = task.folder.path().join("graphs/g0/input_tensor_constraints.py");
    std::fs::write(path, constraints).unwrap();
}

#[test]
fn the_same_task_gives_the_same_passes() {
    let body = ["tmp_0 = x.softmax(-1)", "tmp_1 = tmp_0 * 2.0", "return (tmp_1,)"];
    let texts: Vec<String> = (0..2)
        .map(|_| {
            let task = task(&["x float32 [4, 9]"], &body);
            task.solve().unwrap();
            common::written(&task.passes())
        })
        .collect();
    assert_eq!(texts[0], texts[1]);
}

#[test]
fn a_group_comes_apart_between_arithmetic_and_the_rest() {
    let task = task(
        &["x float32 [4, 9]", "y float32 [4, 9]"],
        &[
            "tmp_0 = x * 0.5",
            "tmp_1 = tmp_0 + y",
            "tmp_2 = torch.nn.functional.softmax(tmp_1, dim=-1)",
            "tmp_3 = torch.sigmoid(tmp_2)",
            "return (tmp_3,)",
        ],
    );
    let family = first_form(&task);
    let (groups, _) = groups(&family, None);
    assert_eq!(groups.len(), 1);
    let names = |part: &Group| -> Vec<String> {
        part.members.iter().map(|id| family.graph().node(*id).name.to_string()).collect()
    };
    let parts: Vec<String> =
        parts(&family, &groups[0]).iter().map(|part| names(part).join(" ")).collect();
    assert_eq!(parts, ["tmp_0 tmp_1 tmp_2", "tmp_2 tmp_3", "tmp_0 tmp_1", "tmp_2", "tmp_3"]);
}

#[test]
fn one_pass_serves_graphs_of_different_ranks() {
    let graph = |input: &'static str| GraphText {
        inputs: vec![input],
        body: vec!["tmp_0 = torch.sigmoid(x)", "tmp_1 = tmp_0 * 0.5", "return (tmp_1,)"],
    };
    let task = Task::new(&[graph("x float32 [6, 9]"), graph("x float32 [2, 3, 9]")]);
    let explanation = task.solve().unwrap();
    assert_eq!(explanation.passes.len(), 1, "{explanation:?}");
}

/// The first choice on the host for the only operation of a graph.
fn first_choice(task: &Task, is_right: impl Fn(&Draft<'_>, Choice)) {
    let family = first_form(task);
    let (groups, _) = groups(&family, None);
    let draft = Draft::new(&groups[0], "cat".into()).unwrap();
    is_right(&draft, draft.choices(None)[0]);
}

#[test]
fn on_the_host_a_cat_by_itself_is_copied_argument_by_argument() {
    for (x, y, statement) in [
        ("x float32 [2, 3, 5]", "y float32 [2, 4, 5]", "tmp_0 = torch.cat([x, y, x], 1)"),
        ("x float16 [3, 7]", "y float16 [2, 7]", "tmp_0 = torch.cat((x, y))"),
        ("x int64 [2, 3, 70]", "y int64 [2, 3, 1]", "tmp_0 = torch.cat([x, y], -1)"),
    ] {
        let task = task(&[x, y], &[statement, "return (tmp_0,)"]);
        first_choice(&task, |draft, choice| {
            assert!(choice.by_argument, "{choice:?}");
            assert!(draft.choices(Some(132)).iter().all(|choice| !choice.by_argument));
            let text = draft.write(choice).unwrap();
            std::fs::create_dir_all(task.passes()).unwrap();
            for (stem, text) in pass_files(&[&text]) {
                std::fs::write(task.passes().join(format!("{stem}.py")), text).unwrap();
            }
            let order = task.passes().join("sorted_output_pass_rule_names.json");
            std::fs::write(order, "[\"cat\"]").unwrap();
        });
        for evaluation in task.evaluate() {
            let verdict = &evaluation.judged.verdict;
            assert_eq!(verdict.kind, VerdictKind::Correct, "{statement}: {verdict}");
        }
    }
}

#[test]
fn a_cat_of_several_types_or_of_nothing_is_not_copied() {
    for y in ["y float16 [2, 4]", "y float32 [2, 0]"] {
        let body = ["tmp_0 = torch.cat([x, y], 1)", "return (tmp_0,)"];
        first_choice(&task(&["x float32 [2, 3]", y], &body), |draft, choice| {
            assert!(choice.by_argument && draft.write(choice).is_err(), "{y}");
            assert!(draft.write(Choice::default()).is_ok(), "{y}");
        });
    }
}

/// Sizes that the constraints promise may change: a batch of one is not taken for a dimension that broadcasts.
#[test]
fn passes_are_right_at_the_sizes_that_constraints_promise() {
    let body = vec![
        "tmp_0 = torch.cat((x, x), dim=-1)",
        "tmp_1 = tmp_0.cos()",
        "tmp_2 = tmp_0.sin()",
        "tmp_3 = y + tmp_2",
        "return (tmp_1, tmp_3)",
    ];
    let task = Task::new(&[GraphText {
        inputs: vec!["x float32 [1, 16, 20]", "y float32 [1, 16, 40]"],
        body,
    }]);
    promise_sizes(&task, "([S0, S1, 20], \"x\"), ([S0, S1, 40], \"y\")");
    let explanation = task.solve().unwrap();
    assert_eq!(explanation.passes.iter().map(|pass| pass.nodes.len()).sum::<usize>(), 4);
    for evaluation in task.evaluate() {
        let verdict = &evaluation.judged.verdict;
        assert_eq!(verdict.kind, VerdictKind::Correct, "{verdict}");
        let tried = evaluation.checks.iter().find(|check| check.name == "sizes one larger");
        assert_eq!(tried.unwrap().answer, passnet_bench::evaluate::CheckAnswer::Passed);
    }
}

/// So are they where a number of the graph is one of these sizes, in a piece of which no pass is made.
#[test]
fn a_size_of_one_that_is_written_down_may_change_too() {
    let body = vec![
        "tmp_0 = x + y",
        "tmp_1 = tmp_0.exp()",
        "tmp_2 = torch.cumprod(x, 1)",
        "tmp_3 = tmp_2.reshape(1, 320)",
        "return (tmp_1, tmp_3)",
    ];
    let inputs = vec!["x float32 [1, 16, 20]", "y float32 [1, 16, 20]"];
    let task = Task::new(&[GraphText { inputs, body }]);
    promise_sizes(&task, "([S0, S1, 20], \"x\"), ([1, S1, 20], \"y\")");
    task.solve().unwrap();
    let text = common::written(&task.passes());
    assert_all_right(&task, &text);
    for evaluation in task.evaluate() {
        let tried = evaluation.checks.iter().find(|check| check.name == "sizes one larger");
        assert_eq!(tried.unwrap().answer, passnet_bench::evaluate::CheckAnswer::Passed, "{text}");
    }
}

#[test]
fn a_fold_beside_a_join_over_as_many_elements_is_right() {
    // The rows of the mask have as many elements as the join has parts: its loop must not be the fold's.
    let task = task(
        &["x float32 [1, 2]", "y float32 [1, 2]", "mask bool [1, 4, 4]"],
        &[
            "tmp_0 = mask[slice(None, None, None), slice(None, None, None), 0]",
            "tmp_1 = torch.sum(tmp_0, 1)",
            "tmp_2 = tmp_1.to(torch.float32)",
            "tmp_3 = torch.stack([tmp_2, tmp_2], -1)",
            "tmp_4 = torch.stack([x, y, x, tmp_3], 1)",
            "return (tmp_4,)",
        ],
    );
    task.solve().unwrap();
    for evaluation in task.evaluate() {
        let verdict = &evaluation.judged.verdict;
        assert_eq!(verdict.kind, VerdictKind::Correct, "{verdict}\n{}", written(&task.passes()));
    }
}

#[test]
fn a_product_of_few_rows_is_no_kernel_where_its_pattern_matches_one_of_many() {
    // The same operation twice, on one row and on so many that what follows them has a launch of its own: one pattern.
    let task = task(
        &["x float16 [1, 32]", "y float16 [280000, 32]", "w float16 [32, 32]", "b float16 [32]"],
        &[
            "tmp_0 = torch.nn.functional.linear(x, w, b)",
            "tmp_1 = torch.nn.functional.linear(y, w, b)",
            "tmp_2 = tmp_1 * 2.0",
            "tmp_3 = tmp_2 + y",
            "return (tmp_0, tmp_3)",
        ],
    );
    let options = SolveOptions { tune: false, for_gpu: true, ..SolveOptions::default() };
    let found = task.solve_with(&options).unwrap();
    let names: Vec<&str> = found.passes.iter().map(|pass| pass.name.as_str()).collect();
    assert_eq!(names, ["mul_add"]);
    let dropped = found.dropped.iter().find(|dropped| dropped.name == "linear");
    assert!(dropped.is_some_and(|dropped| dropped.reason.contains("more rows")));
}

#[test]
fn what_nothing_needs_is_no_part_of_a_pass() {
    let task = task(
        &["x float32 [4, 9]", "y float32 [4, 9]"],
        &[
            "tmp_0 = torch.sigmoid(x)",
            "tmp_1 = tmp_0 * 2.0",
            "tmp_2 = torch.exp(tmp_0)",
            // A part of memory that nothing needs is updated.
            "tmp_2[slice(None, None, None), 0] = 1.0",
            "tmp_3 = tmp_2",
            "tmp_4 = tmp_1 + y",
            "return (tmp_4,)",
        ],
    );
    let found = task.solve().unwrap();
    let operations: Vec<&[String]> =
        found.passes.iter().map(|pass| pass.operations.as_slice()).collect();
    assert_eq!(operations, [["sigmoid", "mul", "add"]]);
    for evaluation in task.evaluate() {
        let verdict = &evaluation.judged.verdict;
        assert_eq!(verdict.kind, VerdictKind::Correct, "{verdict}\n{}", written(&task.passes()));
    }
}

/// Nothing promises another batch than the one sample of the task, but models are used with more: a smaller result has the same
/// batch as the larger one beside it.
#[test]
fn a_pass_for_one_sample_is_right_for_a_batch() {
    let graph = |batch: usize, mean: &'static str| {
        let x = format!("x float32 [{batch}, 16, 5, 5]");
        let inputs = ["mean float32 [16]", "var float32 [16]", "w float32 [16]", "b float32 [16]"];
        Task::new(&[GraphText {
            inputs: [&x[..]].into_iter().chain(inputs).collect(),
            body: vec![
                "tmp_0 = torch.nn.functional.batch_norm(x, mean, var, w, b, False, 0.1, 1e-05)",
                "tmp_1 = torch.nn.functional.silu(tmp_0)",
                mean,
                "return (tmp_1, tmp_2)",
            ],
        }])
    };
    for mean in
        ["tmp_2 = tmp_1.mean((2, 3))", "tmp_2 = torch.nn.functional.adaptive_avg_pool2d(tmp_1, 1)"]
    {
        let single = graph(1, mean);
        for for_gpu in [false, true] {
            let found = single
                .solve_with(&SolveOptions { tune: false, for_gpu, ..SolveOptions::default() })
                .unwrap();
            assert_eq!(found.passes.len(), 1, "{:?}", found.passes);
            let text = common::written(&single.passes());
            assert_all_right(&single, &text);
            for evaluation in graph(3, mean).evaluate_with(&NativeEngine, &single.passes()) {
                let verdict = &evaluation.judged.verdict;
                assert_eq!(verdict.kind, VerdictKind::Correct, "{verdict}\n{text}");
            }
        }
    }
}
