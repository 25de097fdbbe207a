//! What reads and writes elsewhere than element by element: interpolation, orders.

mod cases;
mod common;

use cases::{Case, all_are_whole_and_right, pytorch};
use common::Task;

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
    (
        &["x float32 [6, 40]"],
        &[
            "tmp_0 = torch.sort(x, dim=-1)",
            "tmp_1 = tmp_0[0]",
            "tmp_2 = tmp_0[1]",
            "tmp_3 = tmp_1 * 2.0",
            "return (tmp_3, tmp_2)",
        ],
    ),
    // Many elements are equal.
    (
        &["x float16 [3, 70, 5]"],
        &[
            "tmp_0 = torch.floor(x)",
            "tmp_1 = tmp_0.sort(1, descending=True)",
            "tmp_2 = tmp_1[0]",
            "tmp_3 = tmp_1[1]",
            "return (tmp_2, tmp_3)",
        ],
    ),
    (
        &["x int32 [6, 40]"],
        &["tmp_0 = x * 3", "tmp_1 = torch.argsort(tmp_0, dim=1)", "return (tmp_1,)"],
    ),
];

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
    for cases in [INTERPOLATIONS, ORDERS] {
        all_are_whole_and_right(cases, |task| task.evaluate_on(&engine));
    }
}
