//! Tensors without elements: a pass is right on graphs that have them, or it is not written.

mod common;

use common::{GraphText, Task, written};
use passnet_bench::verdict::VerdictKind;
use passnet_solver::solve::{SolveError, SolveOptions};

/// Solves a task and holds every graph of it against eager; the passes, where there are any.
fn solved(graphs: &[(&[&str], &[&str])]) -> Option<String> {
    let texts: Vec<GraphText<'_>> = graphs
        .iter()
        .map(|(inputs, body)| GraphText { inputs: inputs.to_vec(), body: body.to_vec() })
        .collect();
    let task = Task::new(&texts);
    for for_gpu in [true, false] {
        let solved = match for_gpu {
            true => task.solve_with(&SolveOptions { tune: false, for_gpu, ..Default::default() }),
            false => task.solve(),
        };
        match solved {
            Ok(_) => {}
            Err(SolveError::NothingToFuse { .. }) => return None,
            Err(error) => panic!("{error}"),
        }
        let text = written(&task.passes());
        for evaluation in task.evaluate() {
            let verdict = &evaluation.judged.verdict;
            assert_eq!(verdict.kind, VerdictKind::Correct, "{verdict}\n{graphs:?}\n{text}");
        }
    }
    Some(written(&task.passes()))
}

/// One body for inputs of several sizes.
fn solved_at(sizes: &[&[&str]], body: &[&str]) -> Option<String> {
    let graphs: Vec<(&[&str], &[&str])> = sizes.iter().map(|inputs| (*inputs, body)).collect();
    solved(&graphs)
}

#[test]
fn results_without_elements_are_returned_before_the_launch() {
    let gated = ["tmp_0 = torch.sigmoid(x)", "tmp_1 = tmp_0 * y", "return (tmp_1,)"];
    let spread = ["tmp_0 = x + y", "tmp_1 = torch.nn.functional.relu(tmp_0)", "return (tmp_1,)"];
    let norm = [
        "tmp_0 = torch.nn.functional.layer_norm(x, (8,), None, None, 1e-05)",
        "tmp_1 = torch.nn.functional.gelu(tmp_0)",
        "return (tmp_1,)",
    ];
    let update = ["tmp_0 = torch.sigmoid(y)", "x += tmp_0", "tmp_1 = x", "return (tmp_1,)"];
    let two = ["tmp_0 = torch.tanh(x)", "tmp_1 = tmp_0 > 0.25", "return (tmp_0, tmp_1)"];
    let same = |n: i64| [format!("x float32 [{n}, 8]"), format!("y float32 [{n}, 8]")];
    let row = |n: i64| [format!("x float32 [{n}, 8]"), "y float32 [1, 8]".to_string()];
    let columns = |n: i64| [format!("x float32 [3, {n}, 5]"), "y float32 [3, 1, 1]".to_string()];
    type Inputs<'i> = &'i dyn Fn(i64) -> [String; 2];
    let cases: [(&[&str], Inputs<'_>); 6] = [
        (&gated, &same),
        (&spread, &row),
        (&spread, &columns),
        (&norm, &same),
        (&update, &same),
        (&two, &same),
    ];
    for (body, inputs) in cases {
        for sizes in [vec![0, 6], vec![6, 0, 1], vec![0]] {
            let inputs: Vec<[String; 2]> = sizes.iter().map(|n| inputs(*n)).collect();
            let inputs: Vec<[&str; 2]> = inputs.iter().map(|two| [&*two[0], &*two[1]]).collect();
            let inputs: Vec<&[&str]> = inputs.iter().map(|two| &two[..]).collect();
            let written = solved_at(&inputs, body);
            if sizes.len() > 1 {
                let text = written.unwrap_or_else(|| panic!("no pass for {body:?}"));
                assert!(text.contains(".numel() == 0:\n        return "), "{text}");
            }
        }
    }
}

#[test]
fn where_nothing_is_empty_no_wrapper_asks() {
    let text = solved_at(&[&["x float32 [4, 8]"]], &["tmp_0 = torch.tanh(x)", "return (tmp_0,)"]);
    assert!(!text.unwrap().contains("numel() == 0"));
}

#[test]
fn a_cache_that_is_still_empty_is_joined() {
    let body = [
        "tmp_0 = torch.sigmoid(new)",
        "tmp_1 = torch.cat([past, tmp_0], dim=2)",
        "tmp_2 = tmp_1 * 2.0",
        "return (tmp_2,)",
    ];
    let empty: &[&str] = &["past float32 [1, 2, 0, 4]", "new float32 [1, 2, 3, 4]"];
    let full: &[&str] = &["past float32 [1, 2, 5, 4]", "new float32 [1, 2, 3, 4]"];
    for sizes in [vec![empty], vec![empty, full], vec![full, empty]] {
        assert!(solved_at(&sizes, &body).is_some());
    }
}

/// What has no elements where something is computed, or is folded: whatever is written must be right.
#[test]
fn folds_over_nothing_and_reads_of_nothing_are_left_alone_or_right() {
    let cases: &[(&[&str], &[&str])] = &[
        (&["x float32 [4, 0]"], &["tmp_0 = x * 2.0", "tmp_1 = tmp_0.sum(-1)", "return (tmp_1,)"]),
        (&["x float32 [4, 0]"], &["tmp_0 = x * 2.0", "tmp_1 = tmp_0.mean(-1)", "return (tmp_1,)"]),
        (
            &["x float32 [4, 0]"],
            &["tmp_0 = torch.nn.functional.softmax(x, dim=-1)", "return (tmp_0,)"],
        ),
        (&["x float32 [0, 4]"], &["tmp_0 = x * 2.0", "tmp_1 = tmp_0.sum(0)", "return (tmp_1,)"]),
        (&["x float32 [0, 4]"], &["tmp_0 = x * 2.0", "tmp_1 = tmp_0.sum()", "return (tmp_1,)"]),
        (
            &["x float32 [4, 0]"],
            &["tmp_0 = torch.tanh(x)", "tmp_1 = tmp_0.sum(-1)", "return (tmp_0, tmp_1)"],
        ),
        (
            &["x float32 [0, 0]", "y float32 [3, 0]"],
            &["tmp_0 = torch.cat([x, y], 0)", "tmp_1 = torch.tanh(tmp_0)", "return (tmp_1,)"],
        ),
        (
            &["x float32 [0, 4]", "y float32 [3, 4]"],
            &["tmp_0 = torch.cat([x, y], 0)", "tmp_1 = torch.tanh(tmp_0)", "return (tmp_1,)"],
        ),
        (
            &["x float32 [2, 0]"],
            &[
                "tmp_0 = torch.nn.functional.pad(x, (1, 2))",
                "tmp_1 = torch.tanh(tmp_0)",
                "return (tmp_1,)",
            ],
        ),
        (
            &["x float32 [0, 0]"],
            &[
                "tmp_0 = torch.nn.functional.pad(x, (1, 2, 1, 1), value=3.0)",
                "tmp_1 = torch.tanh(tmp_0)",
                "return (tmp_1,)",
            ],
        ),
        (
            &["x float32 [2, 3]", "y float32 [2, 5]"],
            &[
                "tmp_0 = x[(slice(None, None, None), slice(3, None, None))]",
                "tmp_1 = torch.cat([tmp_0, y], 1)",
                "tmp_2 = torch.tanh(tmp_1)",
                "return (tmp_2,)",
            ],
        ),
        (
            &["x int64 [2, 0]", "w float32 [4, 6]"],
            &[
                "tmp_0 = torch.nn.functional.embedding(x, w)",
                "tmp_1 = tmp_0 * 2.0",
                "return (tmp_1,)",
            ],
        ),
        (
            &["x float32 [2, 0, 3]"],
            &["tmp_0 = x.permute(0, 2, 1).contiguous()", "tmp_1 = tmp_0.relu()", "return (tmp_1,)"],
        ),
        (
            &["x float32 [0, 4, 6]"],
            &["tmp_0 = x.reshape(4, 0, 6)", "tmp_1 = torch.tanh(tmp_0)", "return (tmp_1,)"],
        ),
        (&["x float32 [0, 4]"], &["tmp_0 = torch.cumsum(x, 0)", "return (tmp_0,)"]),
        (
            &["x float32 [0, 2, 6, 6]"],
            &["tmp_0 = torch.nn.functional.max_pool2d(x, 2, 2)", "return (tmp_0,)"],
        ),
        (&["x float32 [3, 0]"], &["tmp_0 = torch.any(x, dim=1)", "return (tmp_0,)"]),
        (&["x float32 [3, 0]"], &["tmp_0 = torch.logsumexp(x, 1)", "return (tmp_0,)"]),
    ];
    for (inputs, body) in cases {
        solved(&[(inputs, body)]);
    }
}
