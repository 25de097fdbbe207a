//! Few long rows for a GPU: cut into chunks that one launch folds, and the next folds what these gave.

mod common;

use common::{GraphText, Task, written};
use passnet_bench::verdict::VerdictKind;
use passnet_solver::explain::Explanation;
use passnet_solver::solve::SolveOptions;

fn solve_for_gpu(task: &Task) -> Explanation {
    task.solve_with(&SolveOptions { tune: false, for_gpu: true, ..SolveOptions::default() })
        .unwrap()
}

/// Inputs, statements and launches of graphs with few long rows.
const CASES: &[(&[&str], &[&str], usize)] = &[
    (
        &["x float16 [1, 6, 53, 105]", "w float16 [6]", "b float16 [6]"],
        &[
            "tmp_0 = torch.nn.functional.group_norm(x, 2, w, b, 1e-05)",
            "tmp_1 = torch.nn.functional.silu(tmp_0)",
            "return (tmp_1,)",
        ],
        2,
    ),
    // A mean that is far larger than what is left without it.
    (
        &["x float32 [1, 2, 91, 92]", "var_y float32 [1, 2, 91, 92]"],
        &[
            "tmp_0 = x * 0.1",
            "tmp_1 = tmp_0 + 10.0",
            "tmp_2 = torch.nn.functional.group_norm(tmp_1, 1, None, None, 1e-05)",
            "tmp_3 = tmp_2 * var_y",
            "return (tmp_3,)",
        ],
        2,
    ),
    // Statistics of this batch alone: every channel of all samples is a row.
    (
        &["x float16 [3, 2, 75, 75]", "w float32 [2]", "b float32 [2]"],
        &[
            "tmp_0 = torch.nn.functional.batch_norm(x, None, None, w, b, True, 0.1, 1e-05)",
            "tmp_1 = torch.nn.functional.relu(tmp_0)",
            "return (tmp_1,)",
        ],
        2,
    ),
    (
        &["x float32 [1, 2, 130, 131]"],
        &[
            "tmp_0 = torch.nn.functional.instance_norm(x, None, None, None, None, True, 0.1, 1e-05)",
            "tmp_1 = tmp_0 * 2.0",
            "return (tmp_1,)",
        ],
        2,
    ),
    (&["x float16 [3, 70, 101]"], &["tmp_0 = x.mean()", "return (tmp_0,)"], 2),
    (
        &["x float32 [10, 2100]", "y float32 [10, 2100]"],
        &["tmp_0 = x - y", "tmp_1 = tmp_0.abs()", "tmp_2 = tmp_1.amax()", "return (tmp_2,)"],
        2,
    ),
    (
        &["x float32 [2, 150, 151]"],
        &[
            "tmp_0 = torch.var(x, dim=(1, 2), keepdim=True)",
            "tmp_1 = tmp_0.sqrt()",
            "return (tmp_1,)",
        ],
        2,
    ),
    // What there is once for a row is stored once, beside what is stored along it.
    (
        &["x float32 [2, 17000]"],
        &["tmp_0 = x.mean(dim=-1, keepdim=True)", "tmp_1 = x - tmp_0", "return (tmp_0, tmp_1)"],
        2,
    ),
    // Chunks of several steps, the last of which is not whole.
    (
        &["x float32 [176, 16500]"],
        &[
            "tmp_0 = torch.nn.functional.layer_norm(x, (16500,), None, None, 1e-05)",
            "return (tmp_0,)",
        ],
        2,
    ),
    // Each round of folds has a launch.
    (
        &["x float16 [2, 17000]"],
        &["tmp_0 = torch.nn.functional.softmax(x, dim=-1)", "return (tmp_0,)"],
        3,
    ),
];

#[test]
fn few_long_rows_are_cut_into_chunks_and_right() {
    for (inputs, body, launches) in CASES {
        let task = Task::new(&[GraphText { inputs: inputs.to_vec(), body: body.to_vec() }]);
        let found = solve_for_gpu(&task);
        let text = written(&task.passes());
        assert_eq!(found.passes.len(), 1, "{body:?}\n{text}");
        assert_eq!(text.matches("_kernel[(").count(), *launches, "{text}");
        assert!(text.contains("partial = torch.empty("), "{text}");
        for evaluation in task.evaluate() {
            let verdict = &evaluation.judged.verdict;
            assert_eq!(verdict.kind, VerdictKind::Correct, "{verdict}\n{text}");
        }
    }
}

/// Another launch costs more than it saves where there are rows for all multiprocessors, or they are short.
#[test]
fn many_rows_and_short_ones_have_one_launch() {
    for input in ["x float32 [300, 17000]", "x float32 [2, 17000]"] {
        let task = Task::new(&[GraphText {
            inputs: vec![input],
            body: vec!["tmp_0 = x.amax(dim=-1)", "return (tmp_0,)"],
        }]);
        solve_for_gpu(&task);
        let text = written(&task.passes());
        assert_eq!(text.matches("_kernel[(").count(), 1, "{text}");
    }
}

/// Rows for all multiprocessors have a program each, which folds a variance in one walk, and one launch.
#[test]
fn a_variance_of_many_long_rows_is_folded_in_one_walk() {
    let task = Task::new(&[GraphText {
        inputs: vec!["x float32 [270, 16401]"],
        body: vec![
            "tmp_0 = torch.nn.functional.layer_norm(x, (16401,), None, None, 1e-05)",
            "return (tmp_0,)",
        ],
    }]);
    solve_for_gpu(&task);
    let text = written(&task.passes());
    assert_eq!(text.matches("for start in range").count(), 2, "{text}");
    assert_eq!(text.matches("_kernel[(").count(), 1, "{text}");
    for evaluation in task.evaluate() {
        let verdict = &evaluation.judged.verdict;
        assert_eq!(verdict.kind, VerdictKind::Correct, "{verdict}\n{text}");
    }
}

/// Where a parameter is read once for many columns, a second dimension of one step would take all through shared memory.
#[test]
fn a_program_of_one_row_has_tiles_of_one_dimension() {
    for (inputs, body) in [
        (
            vec!["x float16 [2, 64, 12, 13]", "w float16 [64]", "b float32 [64]"],
            vec![
                "tmp_0 = torch.nn.functional.group_norm(x, 4, w, b, 1e-05)",
                "tmp_1 = torch.nn.functional.silu(tmp_0)",
                "return (tmp_1,)",
            ],
        ),
        // Something is stored once for a row, and a condition hangs on the row.
        (
            vec!["x float32 [3, 4, 30, 31]", "y float32 [2, 4, 30, 31]"],
            vec![
                "tmp_0 = torch.cat([x, y], 0)",
                "tmp_1 = tmp_0.permute(1, 0, 2, 3)",
                "tmp_2 = tmp_1.amax(dim=(1, 2, 3), keepdim=True)",
                "tmp_3 = tmp_1 - tmp_2",
                "return (tmp_2, tmp_3)",
            ],
        ),
    ] {
        let task = Task::new(&[GraphText { inputs, body }]);
        solve_for_gpu(&task);
        let text = written(&task.passes());
        assert!(text.contains("row = tl.program_id(0)\n"), "{text}");
        assert!(!text.contains("ROWS"), "{text}");
        for evaluation in task.evaluate() {
            let verdict = &evaluation.judged.verdict;
            assert_eq!(verdict.kind, VerdictKind::Correct, "{verdict}\n{text}");
        }
    }
}

/// A pass serves all graphs of a task: where rows are short, they are one chunk each.
#[test]
fn one_pass_serves_long_rows_and_short_ones() {
    let graph = |input: &'static str| GraphText {
        inputs: vec![input],
        body: vec![
            "tmp_0 = torch.nn.functional.group_norm(x, 2, None, None, 1e-05)",
            "return (tmp_0,)",
        ],
    };
    let task = Task::new(&[
        graph("x float32 [1, 4, 91, 92]"),
        graph("x float32 [2, 4, 7, 9]"),
        graph("x float16 [1, 4, 95, 90]"),
    ]);
    let found = solve_for_gpu(&task);
    assert_eq!(found.passes.len(), 1);
    let text = written(&task.passes());
    assert!(text.contains("partial = torch.empty("), "{text}");
    for evaluation in task.evaluate() {
        let verdict = &evaluation.judged.verdict;
        assert_eq!(verdict.kind, VerdictKind::Correct, "{verdict}\n{text}");
    }
}

/// The host has nobody who waits for a part of a row.
#[test]
fn on_the_host_a_row_has_one_program() {
    let (inputs, body, _) = CASES[0];
    let task = Task::new(&[GraphText { inputs: inputs.to_vec(), body: body.to_vec() }]);
    task.solve().unwrap();
    let text = written(&task.passes());
    assert!(!text.contains("partial"), "{text}");
}
