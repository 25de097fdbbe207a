//! What reads and writes elsewhere than element by element: assignments to parts, interpolation, orders.

mod cases;
mod common;

use cases::{Case, all_are_whole_and_right, pytorch};
use common::{GraphText, Task, written};
use passnet_bench::verdict::VerdictKind;

/// Assignments to parts of new tensors and of arguments.
const ASSIGNMENTS: &[Case] = &[
    // Every second column, as tables of sines and cosines have them.
    (
        &["x float32 [6, 20]"],
        &[
            "tmp_0 = torch.zeros((6, 40), dtype=torch.float32, device=torch.device('cpu'))",
            "tmp_1 = torch.sin(x)",
            "tmp_0[slice(None, None, None), slice(0, None, 2)] = tmp_1",
            "tmp_2 = tmp_0",
            "tmp_3 = torch.cos(x)",
            "tmp_0[slice(None, None, None), slice(1, None, 2)] = tmp_3",
            "tmp_4 = tmp_0",
            "tmp_5 = tmp_0.unsqueeze(0)",
            "return (tmp_5,)",
        ],
    ),
    // Beginning after some steps, in half precision.
    (
        &["x float16 [6, 12]", "y float32 [6, 2]"],
        &[
            "tmp_0 = x * 2.0",
            "tmp_0[Ellipsis, slice(7, None, 3)] = y",
            "tmp_1 = tmp_0",
            "tmp_2 = tmp_0 + x",
            "return (tmp_2,)",
        ],
    ),
    // Numbers into parts of a table of half precision: a constant is rounded, too.
    (
        &["x float16 [4, 16, 16]"],
        &[
            "tmp_0 = x.new_zeros((16, 16))",
            "tmp_0[slice(0, -8, None), slice(-4, None, None)] = 2",
            "tmp_1 = tmp_0",
            "tmp_0[slice(-8, -4, None), slice(0, -8, None)] = 0.1",
            "tmp_2 = tmp_0",
            "tmp_3 = tmp_0 - 1.0",
            "tmp_4 = tmp_3.unsqueeze(0)",
            "tmp_5 = x + tmp_4",
            "return (tmp_5,)",
        ],
    ),
    // Places relative to each other in a square, with a row and a column for what lies in no square.
    (
        &["x float32 [26, 26]"],
        &[
            "tmp_0 = torch.arange(5, device=torch.device('cpu'))",
            "tmp_1 = torch.arange(5, device=torch.device('cpu'))",
            "tmp_2 = torch.functional.meshgrid(tmp_0, tmp_1, indexing='ij')",
            "tmp_3 = tmp_2[0]",
            "tmp_4 = tmp_2[1]",
            "tmp_5 = torch.stack((tmp_3, tmp_4))",
            "tmp_6 = torch.flatten(tmp_5, 1)",
            "tmp_7 = tmp_6[slice(None, None, None), slice(None, None, None), None]",
            "tmp_8 = tmp_6[slice(None, None, None), None, slice(None, None, None)]",
            "tmp_9 = tmp_7 - tmp_8",
            "tmp_10 = tmp_9.permute(1, 2, 0)",
            "tmp_11 = tmp_10.contiguous()",
            "tmp_12 = tmp_11[slice(None, None, None), slice(None, None, None), 0]",
            "tmp_12 += 4",
            "tmp_13 = tmp_12",
            "tmp_11[slice(None, None, None), slice(None, None, None), 0] = tmp_13",
            "tmp_14 = tmp_11",
            "tmp_15 = tmp_11[slice(None, None, None), slice(None, None, None), 1]",
            "tmp_15 += 4",
            "tmp_16 = tmp_15",
            "tmp_11[slice(None, None, None), slice(None, None, None), 1] = tmp_16",
            "tmp_17 = tmp_11",
            "tmp_18 = tmp_11[slice(None, None, None), slice(None, None, None), 0]",
            "tmp_18 *= 9",
            "tmp_19 = tmp_18",
            "tmp_11[slice(None, None, None), slice(None, None, None), 0] = tmp_19",
            "tmp_20 = tmp_11",
            "tmp_21 = torch.zeros(size=(26, 26), dtype=torch.int64, device=torch.device('cpu'))",
            "tmp_22 = tmp_11.sum(-1)",
            "tmp_21[slice(1, None, None), slice(1, None, None)] = tmp_22",
            "tmp_23 = tmp_21",
            "tmp_21[0, slice(0, None, None)] = 81",
            "tmp_24 = tmp_21",
            "tmp_21[slice(0, None, None), 0] = 82",
            "tmp_25 = tmp_21",
            "tmp_21[0, 0] = 83",
            "tmp_26 = tmp_21",
            "tmp_27 = x + tmp_21",
            "return (tmp_27,)",
        ],
    ),
    // By a mask, of a new tensor and of one from outside.
    (
        &["x float32 [6, 40]", "y bool [6, 40]", "z bool [6]"],
        &[
            "tmp_0 = x * 2.0",
            "tmp_0[y] = -1.5",
            "tmp_1 = tmp_0",
            "tmp_0[z] = 0.5",
            "tmp_2 = tmp_0",
            "tmp_3 = tmp_0 + x",
            "return (tmp_0, tmp_3)",
        ],
    ),
    (
        &["x float32 [6, 40]", "y bool [6, 40]"],
        &["x[y] = 0.0", "tmp_0 = x", "tmp_1 = x.exp()", "return (tmp_1,)"],
    ),
    // What is assigned has dimensions of one in front, or the part a new one.
    (
        &["x float32 [6, 40]", "y float32 [1, 1, 40]", "z float32 [1, 2, 1]"],
        &[
            "tmp_0 = x * 2.0",
            "tmp_0[2] = y",
            "tmp_1 = tmp_0",
            "tmp_0[None, slice(3, 5, None)] = z",
            "tmp_2 = tmp_0",
            "tmp_3 = tmp_0 + x",
            "return (tmp_3,)",
        ],
    ),
    // What is copied before it is updated is read once.
    (
        &["x float32 [1, 6, 40]"],
        &[
            "tmp_0 = x.clone()",
            "tmp_1 = torch.nn.functional.relu(x, inplace=True)",
            "return (tmp_0, tmp_1)",
        ],
    ),
    // The whole of a new tensor, rounded to what it holds.
    (
        &["x float16 [6, 40]", "y float32 [40]"],
        &[
            "tmp_0 = torch.zeros_like(x)",
            "tmp_1 = tmp_0.copy_(y)",
            "tmp_2 = tmp_1 + x",
            "return (tmp_2,)",
        ],
    ),
];

/// Neighbours weighed by their distance, and the nearest one.
const INTERPOLATIONS: &[Case] = &[
    (
        &["x float32 [2, 3, 5, 7]"],
        &[
            "tmp_0 = torch.nn.functional.interpolate(x, (9, 4), None, 'bicubic', True)",
            "tmp_1 = tmp_0 * 2.0",
            "return (tmp_1,)",
        ],
    ),
    (
        &["x float16 [1, 3, 6, 4]"],
        &[
            "tmp_0 = torch.nn.functional.interpolate(x, None, (2.5, 1.25), 'bicubic', False)",
            "tmp_1 = tmp_0 * 3.0",
            "return (tmp_1,)",
        ],
    ),
    // Positions of patches, read as they lie.
    (
        &["x bfloat16 [1, 13, 8]"],
        &[
            "tmp_0 = x[slice(None, None, None), slice(1, None, None)]",
            "tmp_1 = tmp_0.reshape(1, 3, 4, 8)",
            "tmp_2 = tmp_1.permute(0, 3, 1, 2)",
            "tmp_3 = tmp_2.to(torch.float32)",
            "tmp_4 = torch.nn.functional.interpolate(tmp_3, size=(3, 10), mode='bicubic', align_corners=False)",
            "tmp_5 = tmp_4.to(torch.bfloat16)",
            "return (tmp_5,)",
        ],
    ),
    (
        &["x float32 [1, 20, 6]"],
        &[
            "tmp_0 = x.transpose(1, 2)",
            "tmp_1 = tmp_0.view(1, 6, 4, 5)",
            "tmp_2 = torch.nn.functional.interpolate(tmp_1, (7, 9), mode='bilinear')",
            "tmp_3 = tmp_2 + 1.0",
            "return (tmp_3,)",
        ],
    ),
    // By no whole factor, and of what is computed.
    (
        &["x float32 [2, 3, 5, 7]"],
        &[
            "tmp_0 = torch.relu(x)",
            "tmp_1 = torch.nn.functional.interpolate(tmp_0, (8, 16), mode='nearest')",
            "tmp_2 = torch.nn.functional.interpolate(x, (8, 16), mode='nearest-exact')",
            "tmp_3 = tmp_1 - tmp_2",
            "return (tmp_3,)",
        ],
    ),
    // A result of twice the size whose steps are not halves.
    (
        &["x float32 [2, 3, 3]"],
        &[
            "tmp_0 = torch.nn.functional.interpolate(x, None, 2.3, 'nearest')",
            "tmp_1 = tmp_0 * 2.0",
            "return (tmp_1,)",
        ],
    ),
];

/// Rows in order, and where their elements stood.
const ORDERS: &[Case] = &[
    // Whole steps that are written as floats; a running sum of two in half precision rounds once, in whatever order.
    (
        &["x float16 [6, 2]"],
        &[
            "tmp_0 = torch.arange(3, -9, -2.0, dtype=torch.int64, device=torch.device('cpu'))",
            "tmp_1 = tmp_0[slice(None, None, None), None]",
            "tmp_2 = x * tmp_1",
            "tmp_3 = torch.cumsum(tmp_2, dim=-1)",
            "return (tmp_3,)",
        ],
    ),
    (
        &["x float32 [6, 40]"],
        &[
            "tmp_0 = torch.sort(x, dim=-1, stable=True)",
            "tmp_1 = tmp_0[0]",
            "tmp_2 = tmp_0[1]",
            "tmp_3 = tmp_1 * 2.0",
            "return (tmp_3, tmp_2)",
        ],
    ),
    // Of values alone nobody knows the order of equal ones.
    (
        &["x float32 [2, 7, 3]"],
        &[
            "tmp_0 = torch.sort(x, dim=1)",
            "tmp_1 = tmp_0[0]",
            "tmp_2 = torch.clip(tmp_1, 0.001, 10.0)",
            "return (tmp_2,)",
        ],
    ),
    (
        &["x int64 [6, 40]"],
        &[
            "tmp_0 = x * -5",
            "tmp_1 = torch.sort(tmp_0, descending=True)",
            "tmp_2 = tmp_1[0]",
            "return (tmp_2,)",
        ],
    ),
    // Many elements are equal.
    (
        &["x float16 [3, 70, 5]"],
        &[
            "tmp_0 = torch.floor(x)",
            "tmp_1 = tmp_0.sort(dim=1, descending=True, stable=True)",
            "tmp_2 = tmp_1[0]",
            "tmp_3 = tmp_1[1]",
            "return (tmp_2, tmp_3)",
        ],
    ),
    (
        &["x int32 [6, 40]"],
        &["tmp_0 = x * 3", "tmp_1 = torch.argsort(tmp_0, dim=1, stable=True)", "return (tmp_1,)"],
    ),
];

/// Rows that become diagonals and diagonals that become rows, and products of two rows.
const MATRICES: &[Case] = &[
    (
        &["x float16 [1]", "y float32 [3, 40, 40]"],
        &[
            "tmp_0 = x.repeat(40)",
            "tmp_1 = torch.diag(tmp_0, 0)",
            "tmp_2 = y + tmp_1",
            "return (tmp_2,)",
        ],
    ),
    (
        &["x float32 [40]", "y float32 [43, 43]", "z float32 [43, 43]"],
        &[
            "tmp_0 = torch.diag(x, 3)",
            "tmp_1 = y + tmp_0",
            "tmp_2 = torch.diag(x, diagonal=-3)",
            "tmp_3 = z - tmp_2",
            "tmp_4 = tmp_1 * tmp_3",
            "return (tmp_4,)",
        ],
    ),
    (
        &["x float32 [40, 44]", "z float32 [38]"],
        &[
            "tmp_0 = x * 2.0",
            "tmp_1 = torch.diag(tmp_0, 3)",
            "tmp_2 = torch.diag(tmp_0, -2)",
            "tmp_3 = tmp_1[slice(None, 38, None)]",
            "tmp_4 = tmp_3 * tmp_2",
            "tmp_5 = tmp_4 + z",
            "return (tmp_5,)",
        ],
    ),
    (
        &["x float32 [20]", "y float16 [6, 40]"],
        &[
            "tmp_0 = torch.arange(6, device=torch.device('cpu'))",
            "tmp_1 = tmp_0.type_as(x)",
            "tmp_2 = torch.outer(tmp_1, x)",
            "tmp_3 = torch.cat((tmp_2, tmp_2), dim=-1)",
            "tmp_4 = tmp_3.cos()",
            "tmp_5 = tmp_4 * y",
            "return (tmp_5,)",
        ],
    ),
];

/// Functions with bounds of their own.
const FUNCTIONS: &[Case] = &[(
    &["x float32 [6, 40]"],
    &[
        "tmp_0 = torch.sigmoid(x)",
        "tmp_1 = torch._C._special.special_logit(tmp_0, eps=0.1)",
        "tmp_2 = torch._C._special.special_logit(x, eps=1e-05)",
        "tmp_3 = torch.logit(tmp_0)",
        "tmp_4 = tmp_1 + tmp_2",
        "tmp_5 = tmp_4 + tmp_3",
        "return (tmp_5,)",
    ],
)];

#[test]
fn matrices_are_made_of_rows_as_in_the_native_engine() {
    all_are_whole_and_right(MATRICES, Task::evaluate);
    all_are_whole_and_right(FUNCTIONS, Task::evaluate);
}

#[test]
fn assignments_become_choices_as_in_the_native_engine() {
    all_are_whole_and_right(ASSIGNMENTS, Task::evaluate);
}

#[test]
fn interpolations_read_what_they_weigh_as_in_the_native_engine() {
    all_are_whole_and_right(INTERPOLATIONS, Task::evaluate);
}

#[test]
fn rows_are_sorted_as_in_the_native_engine() {
    all_are_whole_and_right(ORDERS, Task::evaluate);
}

#[test]
#[ignore = "needs PyTorch; tools/full-check runs it"]
fn one_pass_computes_all_of_it_as_pytorch_does() {
    let engine = pytorch();
    for cases in [ASSIGNMENTS, INTERPOLATIONS, ORDERS, MATRICES, FUNCTIONS] {
        all_are_whole_and_right(cases, |task| task.evaluate_on(&engine));
    }
}

/// What lies at one place in a dimension of one lies at all of them: a norm by the sum of a row reads the row once.
#[test]
fn what_is_found_through_a_dimension_of_one_is_read_once() {
    let task = Task::new(&[GraphText {
        inputs: vec!["x float32 [1, 3, 6, 40]"],
        body: vec![
            "tmp_0 = torch.sigmoid(x)",
            "tmp_1 = tmp_0.sum(dim=-1)",
            "tmp_2 = tmp_1.unsqueeze(-1)",
            "tmp_3 = tmp_0 / tmp_2",
            "return (tmp_3,)",
        ],
    }]);
    task.solve().unwrap();
    let text = written(&task.passes());
    assert_eq!(text.matches("tl.load(x_ptr").count(), 1, "{text}");
}

/// A view of something else is updated by its strides, and given back as the view that it is.
#[test]
fn a_part_is_updated_where_it_lies() {
    let task = Task::new(&[GraphText {
        inputs: vec!["x float32 [2, 6, 40]", "y float16 [6, 12]"],
        body: vec![
            "tmp_0 = x[Ellipsis, slice(None, 12, None)]",
            "tmp_0 *= y",
            "tmp_1 = tmp_0",
            "return (tmp_1,)",
        ],
    }]);
    let found = task.solve().unwrap();
    let operations: Vec<&[String]> = found.passes.iter().map(|pass| &pass.operations[..]).collect();
    assert_eq!(operations, [["mul"]]);
    for evaluation in task.evaluate() {
        let verdict = &evaluation.judged.verdict;
        assert_eq!(verdict.kind, VerdictKind::Correct, "{verdict}\n{}", written(&task.passes()));
    }
}

/// Nothing is rounded that is read as it lies in memory.
#[test]
fn what_is_looked_up_is_not_rounded() {
    for (inputs, body) in [
        (
            vec!["x float16 [6, 80]"],
            vec![
                "tmp_0 = x.chunk(2, dim=-1)",
                "tmp_1 = tmp_0[0]",
                "tmp_2 = tmp_0[1]",
                "tmp_3 = tmp_1 + tmp_2",
                "return (tmp_3,)",
            ],
        ),
        (
            vec!["x int64 [6]", "y float16 [4, 40]", "z float16 [6, 40]"],
            vec![
                "tmp_0 = torch.nn.functional.embedding(x, y)",
                "tmp_1 = tmp_0 + z",
                "return (tmp_1,)",
            ],
        ),
    ] {
        let task = Task::new(&[GraphText { inputs, body }]);
        task.solve().unwrap();
        let text = written(&task.passes());
        assert!(!text.contains("element_ty"), "{text}");
    }
}

/// Positions as detection models make them: two tables of sines and cosines side by side are one kernel with all that they are
/// made of, and each function is computed once, of what is chosen.
#[test]
fn joined_tables_are_one_kernel_with_what_they_are_made_of() {
    let task = Task::new(&[GraphText {
        inputs: vec!["x float32 [2, 30]", "y float32 [2, 30]", "var float32 [16]"],
        body: vec![
            "tmp_0 = x[slice(None, None, None), slice(None, None, None), None]",
            "tmp_1 = tmp_0 / var",
            "tmp_2 = y[slice(None, None, None), slice(None, None, None), None]",
            "tmp_3 = tmp_2 / var",
            "tmp_4 = tmp_1[slice(None, None, None), slice(None, None, None), slice(0, None, 2)]",
            "tmp_5 = tmp_4.sin()",
            "tmp_6 = tmp_1[slice(None, None, None), slice(None, None, None), slice(1, None, 2)]",
            "tmp_7 = tmp_6.cos()",
            "tmp_8 = torch.stack((tmp_5, tmp_7), dim=3)",
            "tmp_9 = tmp_8.flatten(2)",
            "tmp_10 = tmp_3[slice(None, None, None), slice(None, None, None), slice(0, None, 2)]",
            "tmp_11 = tmp_10.sin()",
            "tmp_12 = tmp_3[slice(None, None, None), slice(None, None, None), slice(1, None, 2)]",
            "tmp_13 = tmp_12.cos()",
            "tmp_14 = torch.stack((tmp_11, tmp_13), dim=3)",
            "tmp_15 = tmp_14.flatten(2)",
            "tmp_16 = torch.cat((tmp_15, tmp_9), dim=2)",
            "return (tmp_16,)",
        ],
    }]);
    let found = task.solve().unwrap();
    let text = written(&task.passes());
    assert_eq!(found.passes.len(), 1, "{text}");
    assert_eq!(
        [text.matches("tl.sin(").count(), text.matches("tl.cos(").count()],
        [1, 1],
        "{text}"
    );
    for evaluation in task.evaluate() {
        let verdict = &evaluation.judged.verdict;
        assert_eq!(verdict.kind, VerdictKind::Correct, "{verdict}\n{text}");
    }
}
