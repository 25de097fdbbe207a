//! Narrow products with what stands around them: one kernel where it is tried, right wherever it is kept.

mod common;

use common::{GraphText, Task, written};
use passnet_bench::verdict::VerdictKind;
use passnet_solver::analysis::groups::groups;
use passnet_solver::emit::{Choice, Draft, pass_files};
use passnet_solver::graph_family::{GraphFamily, TypedGraph, families};
use passnet_solver::solve::SolveOptions;

/// Inputs, statements, and whether one kernel computes all of it.
const CASES: &[(&[&str], &[&str], bool)] = &[
    (
        &["x float32 [1, 70]", "w float32 [33, 70]", "b float32 [33]"],
        &[
            "tmp_0 = torch.nn.functional.linear(x, w, b)",
            "tmp_1 = torch.nn.functional.gelu(tmp_0)",
            "return (tmp_1,)",
        ],
        true,
    ),
    (
        &["x float16 [2, 2, 70]", "w float16 [33, 70]", "y float16 [2, 2, 33]"],
        &["tmp_0 = torch.nn.functional.linear(x, w, None)", "tmp_1 = tmp_0 + y", "return (tmp_1,)"],
        true,
    ),
    (
        &["x float32 [1, 40, 1, 1]", "w float32 [10, 40, 1, 1]", "b float32 [10]"],
        &[
            "tmp_0 = torch.nn.functional.silu(x)",
            "tmp_1 = torch.conv2d(tmp_0, w, b, (1, 1), (0, 0), (1, 1), 1)",
            "tmp_2 = torch.sigmoid(tmp_1)",
            "return (tmp_2,)",
        ],
        true,
    ),
    (
        &["x float32 [2, 3, 9, 20]", "w float32 [3, 20, 7]"],
        &["tmp_0 = torch.matmul(x, w)", "tmp_1 = torch.relu(tmp_0)", "return (tmp_1,)"],
        true,
    ),
    (
        &["x float32 [2, 6, 7]", "w float32 [10, 6, 1]", "b float32 [10]"],
        &[
            "tmp_0 = torch.conv1d(x, w, b, (1,), (0,), (1,), 1)",
            "tmp_1 = torch.tanh(tmp_0)",
            "return (tmp_1,)",
        ],
        true,
    ),
    // Every channel from itself alone: a window around each element, whose places outside add nothing.
    (
        &["x float32 [2, 6, 9, 11]", "w float32 [6, 1, 3, 5]", "b float32 [6]"],
        &[
            "tmp_0 = torch.conv2d(x, w, b, (2, 1), (1, 2), (1, 1), 6)",
            "tmp_1 = torch.nn.functional.silu(tmp_0)",
            "return (tmp_1,)",
        ],
        true,
    ),
    (
        &["x float16 [2, 5, 33]", "w float16 [5, 1, 4]"],
        &[
            "tmp_0 = torch.conv1d(x, w, None, (1,), (3,), (2,), 5)",
            "tmp_1 = torch.tanh(tmp_0)",
            "return (tmp_1,)",
        ],
        true,
    ),
    // Groups of several channels, and many multiplications, are a library's business.
    (
        &["x float32 [1, 40, 1, 1]", "w float32 [10, 20, 1, 1]"],
        &[
            "tmp_0 = torch.conv2d(x, w, None, (1, 1), (0, 0), (1, 1), 2)",
            "tmp_1 = torch.sigmoid(tmp_0)",
            "return (tmp_1,)",
        ],
        false,
    ),
    (
        &["x float32 [80, 300]", "w float32 [170, 300]"],
        &[
            "tmp_0 = torch.nn.functional.linear(x, w, None)",
            "tmp_1 = torch.sigmoid(tmp_0)",
            "return (tmp_1,)",
        ],
        false,
    ),
    // Read from channel to channel, a window would take a piece of memory for each of its elements.
    (
        &["x float32 [1, 6, 9, 11]", "w float32 [6, 1, 3, 3]"],
        &[
            "tmp_0 = torch.conv2d(x, w, None, (1, 1), (1, 1), (1, 1), 6)",
            "tmp_1 = tmp_0.permute(0, 2, 3, 1)",
            "tmp_2 = torch.nn.functional.layer_norm(tmp_1, (6,))",
            "return (tmp_2,)",
        ],
        false,
    ),
    // A row of many: the sum would be added up for all rows.
    (
        &["x float32 [1, 1, 40]", "w float32 [12, 40]", "y float32 [1, 9, 12]"],
        &[
            "tmp_0 = torch.nn.functional.linear(x, w, None)",
            "tmp_1 = torch.cat((tmp_0, y), dim=1)",
            "return (tmp_1,)",
        ],
        false,
    ),
];

fn task((inputs, body, _): &(&'static [&'static str], &'static [&'static str], bool)) -> Task {
    Task::new(&[GraphText { inputs: inputs.to_vec(), body: body.to_vec() }])
}

fn family(task: &Task) -> GraphFamily {
    let files = task.sample.graph_files(&task.sample.graphs[0]).unwrap();
    families(vec![TypedGraph::read(&files).unwrap()], Vec::new()).remove(0)
}

fn assert_right(task: &Task) {
    for evaluation in task.evaluate() {
        let verdict = &evaluation.judged.verdict;
        let text = written(&task.passes());
        assert_eq!(verdict.kind, VerdictKind::Correct, "{verdict}\n{text}");
    }
}

#[test]
fn where_products_are_tried_one_kernel_computes_them_with_their_neighbours() {
    for case in CASES {
        let (_, body, is_one) = case;
        let task = task(case);
        let mut family = family(&task);
        let without: usize = groups(&family, None).0.iter().map(|group| group.members.len()).sum();
        assert!(without < body.len() - 1, "a product is tried unasked");
        family.try_products(f64::INFINITY);
        let (groups, _) = groups(&family, None);
        let is_whole = groups.len() == 1 && groups[0].members.len() == body.len() - 1;
        assert_eq!(is_whole, *is_one, "{body:?}");
        if !is_one {
            continue;
        }
        let text = Draft::new(&groups[0], "product".into()).unwrap();
        let text = text.write(Choice::default()).unwrap();
        std::fs::create_dir_all(task.passes()).unwrap();
        for (stem, text) in pass_files(&[&text]) {
            std::fs::write(task.passes().join(format!("{stem}.py")), text).unwrap();
        }
        let order = task.passes().join("sorted_output_pass_rule_names.json");
        std::fs::write(order, "[\"product\"]").unwrap();
        assert_right(&task);
    }
}

#[test]
fn unmeasured_no_product_becomes_a_kernel_and_measured_all_is_right() {
    for case in CASES {
        let task = task(case);
        let unmeasured = task.solve().unwrap();
        let names = |operations: &[String]| operations.join(" ");
        let has_product = |operations: &[String]| {
            ["linear", "conv", "matmul"].iter().any(|product| names(operations).contains(product))
        };
        assert!(!unmeasured.passes.iter().any(|pass| has_product(&pass.operations)));
        task.solve_with(&SolveOptions::default()).unwrap();
        assert_right(&task);
    }
}

/// The gradual angles of a rotary embedding: nothing is added up, so that it is arithmetic wherever it stands.
#[test]
fn products_that_add_nothing_up_are_arithmetic() {
    const CASES: [(&[&str], &[&str]); 3] = [
        (
            &["x float32 [13]", "w float32 [8]"],
            &["tmp_0 = torch.outer(x, w)", "tmp_1 = torch.cos(tmp_0)", "return (tmp_1,)"],
        ),
        (
            &["x float32 [2, 8, 1]", "w float32 [2, 1, 13]"],
            &[
                "tmp_0 = x @ w",
                "tmp_1 = tmp_0.transpose(1, 2)",
                "tmp_2 = tmp_1.sin()",
                "return (tmp_2,)",
            ],
        ),
        (
            &["x float16 [40, 1]", "w float16 [6, 1]", "b float16 [6]"],
            &[
                "tmp_0 = torch.nn.functional.linear(x, w, b)",
                "tmp_1 = torch.relu(tmp_0)",
                "return (tmp_1,)",
            ],
        ),
    ];
    for (inputs, body) in CASES {
        let task = Task::new(&[GraphText { inputs: inputs.to_vec(), body: body.to_vec() }]);
        let found = task.solve().unwrap();
        assert_eq!(found.passes.len(), 1, "{body:?}");
        assert_eq!(found.passes[0].operations.len(), body.len() - 1, "{body:?}");
        assert_right(&task);
    }
}

/// Attention gives its heads behind the places where its query lies so: what eager sees as it is needs no kernel.
#[test]
fn a_view_of_what_attention_gives_is_left_alone() {
    let task = Task::new(&[GraphText {
        inputs: vec!["x float32 [2, 5, 4, 8]", "y float32 [2, 5, 32]"],
        body: vec![
            "tmp_0 = x.transpose(1, 2)",
            "tmp_1 = torch._C._nn.scaled_dot_product_attention(tmp_0, tmp_0, tmp_0)",
            "tmp_2 = tmp_1.transpose(1, 2)",
            "tmp_3 = tmp_2.reshape(2, 5, 32)",
            "tmp_4 = tmp_3 + y",
            "return (tmp_4,)",
        ],
    }]);
    let found = task.solve().unwrap();
    assert_eq!(found.passes.len(), 1);
    assert_eq!(found.passes[0].operations, ["add"]);
    assert_right(&task);
}

/// What is computed of attention's result for each element lies as that does, which is not known before the graph runs: a kernel
/// may end in an order of its own, and not before.
#[test]
fn what_lies_as_attentions_result_is_left_to_eager() {
    let solved = |end: &[&'static str]| {
        let start = [
            "tmp_0 = x.transpose(1, 2)",
            "tmp_1 = torch._C._nn.scaled_dot_product_attention(tmp_0, tmp_0, tmp_0)",
            "tmp_2 = torch.sigmoid(y)",
            "tmp_3 = tmp_1 * tmp_2",
        ];
        let task = Task::new(&[GraphText {
            inputs: vec!["x float32 [2, 5, 4, 8]", "y float32 [2, 4, 5, 8]"],
            body: [&start[..], end].concat(),
        }]);
        let operations: Vec<String> =
            task.solve().unwrap().passes.iter().map(|pass| pass.operations.join(" ")).collect();
        assert_right(&task);
        operations
    };
    assert_eq!(solved(&["return (tmp_3,)"]), ["sigmoid"]);
    let ordered =
        &["tmp_4 = tmp_3.transpose(1, 2)", "tmp_5 = tmp_4.reshape(2, 5, 32)", "return (tmp_5,)"];
    assert_eq!(solved(ordered), ["sigmoid mul transpose reshape"]);
}

/// For a GPU that is not here the cost model decides: a matrix that is read faster than a library launches is worth a kernel.
#[test]
fn for_a_gpu_narrow_products_of_small_matrices_become_kernels() {
    for (columns, is_one) in [(20, true), (40, false)] {
        let inputs = [
            "x float32 [2, 50]".to_string(),
            format!("w float32 [{columns}, 50]"),
            format!("b float32 [{columns}]"),
        ];
        let task = Task::new(&[GraphText {
            inputs: inputs.iter().map(String::as_str).collect(),
            body: vec![
                "tmp_0 = torch.nn.functional.linear(x, w, b)",
                "tmp_1 = torch.tanh(tmp_0)",
                "return (tmp_1,)",
            ],
        }]);
        let options = SolveOptions { tune: false, for_gpu: true, ..SolveOptions::default() };
        let found = task.solve_with(&options).unwrap();
        let operations: Vec<&[String]> =
            found.passes.iter().map(|pass| pass.operations.as_slice()).collect();
        let wanted: &[&str] = if is_one { &["linear", "tanh"] } else { &["tanh"] };
        assert_eq!(operations, [wanted]);
        assert_right(&task);
    }
}

/// Between a few rows and many, a library has too few programs for all multiprocessors: for a GPU, float32 convolutions of
/// single pixels are cut into smaller tiles, with the arithmetic that stands before and behind them.
#[test]
fn for_a_gpu_convolutions_of_single_pixels_are_cut_into_tiles() {
    const CASES: [(&[&str], &[&str], &[&str]); 9] = [
        (
            &["x float32 [2, 80, 13, 10]", "w float32 [220, 80, 1, 1]", "b float32 [220]"],
            &[
                "tmp_0 = torch.conv2d(x, w, b, (1, 1), (0, 0), (1, 1), 1)",
                "tmp_1 = torch.nn.functional.gelu(tmp_0)",
                "return (tmp_1,)",
            ],
            &["conv2d gelu"],
        ),
        (
            &["x float32 [3, 90, 70]", "w float32 [240, 90, 1]", "y float32 [3, 240, 70]"],
            &[
                "tmp_0 = torch.sigmoid(x)",
                "tmp_1 = torch.conv1d(tmp_0, w, None, (1,), (0,), (1,), 1)",
                "tmp_2 = tmp_1 + y",
                "return (tmp_2,)",
            ],
            &["sigmoid conv1d add"],
        ),
        (
            &["x float32 [2, 64, 190]", "w float32 [200, 64, 1]", "b float32 [200]"],
            &[
                "tmp_0 = torch.conv1d(x, w, b, (1,), (0,), (1,), 1)",
                "tmp_1 = torch.relu(tmp_0)",
                "return (tmp_1,)",
            ],
            &["conv1d relu"],
        ),
        // Attention takes the largest of large values alone, whichever the last bits of a sum say that is.
        (
            &["x float32 [1, 192, 130]", "w float32 [192, 192, 1]", "y float32 [1, 4, 130, 48]"],
            &[
                "tmp_0 = torch.conv1d(x, w, None, (1,), (0,), (1,), 1)",
                "tmp_1 = tmp_0.reshape(1, 4, 48, 130)",
                "tmp_2 = tmp_1.transpose(2, 3)",
                "tmp_3 = torch._C._nn.scaled_dot_product_attention(tmp_2, y, y)",
                "tmp_4 = torch.relu(y)",
                "return (tmp_3, tmp_4)",
            ],
            &["relu"],
        ),
        // The mean of a row is folded over its columns, for which a tile has a part of them alone.
        (
            &["x float32 [1, 80, 260]", "w float32 [220, 80, 1]"],
            &[
                "tmp_0 = torch.conv1d(x, w, None, (1,), (0,), (1,), 1)",
                "tmp_1 = tmp_0.mean(dim=-1)",
                "return (tmp_1,)",
            ],
            &["conv1d", "mean"],
        ),
        // Channels are shuffled: the rows of a tile would be the two that stand beside each other.
        (
            &["x float32 [2, 64, 14, 14]", "w float32 [64, 64, 1, 1]", "y float32 [2, 64, 14, 14]"],
            &[
                "tmp_0 = torch.conv2d(x, w, None, (1, 1), (0, 0), (1, 1), 1)",
                "tmp_1 = torch.cat((y, tmp_0), dim=1)",
                "tmp_2 = tmp_1.view(2, 2, 64, 14, 14)",
                "tmp_3 = torch.transpose(tmp_2, 1, 2)",
                "tmp_4 = tmp_3.contiguous()",
                "return (tmp_4,)",
            ],
            &["cat view transpose contiguous"],
        ),
        // A library keeps all multiprocessors busy, or has units for the type that multiply many times as fast.
        (
            &["x float32 [1, 80, 2600]", "w float32 [2200, 80, 1]"],
            &[
                "tmp_0 = torch.conv1d(x, w, None, (1,), (0,), (1,), 1)",
                "tmp_1 = torch.relu(tmp_0)",
                "return (tmp_1,)",
            ],
            &["relu"],
        ),
        (
            &["x float16 [1, 80, 260]", "w float16 [220, 80, 1]"],
            &[
                "tmp_0 = torch.conv1d(x, w, None, (1,), (0,), (1,), 1)",
                "tmp_1 = torch.relu(tmp_0)",
                "return (tmp_1,)",
            ],
            &["relu"],
        ),
        // What a library calls for matrices is faster.
        (
            &["x float32 [2, 130, 80]", "w float32 [220, 80]", "b float32 [220]"],
            &[
                "tmp_0 = torch.nn.functional.linear(x, w, b)",
                "tmp_1 = torch.nn.functional.gelu(tmp_0)",
                "return (tmp_1,)",
            ],
            &["gelu"],
        ),
    ];
    for (inputs, body, passes) in CASES {
        let task = Task::new(&[GraphText { inputs: inputs.to_vec(), body: body.to_vec() }]);
        let options = SolveOptions { tune: false, for_gpu: true, ..SolveOptions::default() };
        let found = task.solve_with(&options).unwrap();
        let fused: Vec<String> =
            found.passes.iter().map(|pass| pass.operations.join(" ")).collect();
        assert_eq!(fused, *passes);
        let is_product = |pass: &&str| ["linear", "bmm", "conv"].iter().any(|op| pass.contains(op));
        let products = passes.iter().filter(|pass| is_product(pass)).count();
        let files = std::fs::read_dir(task.passes()).unwrap().map(|entry| entry.unwrap().path());
        let files = files.filter(|path| path.extension().is_some_and(|end| end == "py"));
        let text: String = files.map(|path| std::fs::read_to_string(path).unwrap()).collect();
        assert_eq!(text.matches("tl.dot(").count(), products, "{text}");
        assert_right(&task);
    }
}
