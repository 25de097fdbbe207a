//! Single operations with a loop form of their own: one kernel for all of it, held against the native engine and PyTorch.

mod cases;
mod common;

use cases::{Case, all_are_whole_and_right, pytorch};
use common::{GraphText, Task, written};
use passnet_bench::evaluate::Evaluation;
use passnet_bench::verdict::VerdictKind;
use passnet_engine::native::NativeEngine;
use passnet_solver::solve::SolveOptions;

/// What the solver writes for a GPU that is not here.
fn written_for_gpu(task: &Task) -> String {
    let options = SolveOptions { tune: false, for_gpu: true, ..SolveOptions::default() };
    task.solve_with(&options).unwrap();
    written(&task.passes())
}

fn assert_correct(evaluations: &[Evaluation], passes: &str) {
    for evaluation in evaluations {
        let verdict = &evaluation.judged.verdict;
        assert_eq!(verdict.kind, VerdictKind::Correct, "{verdict}\n{passes}");
    }
}

/// Inputs and statements of graphs that one pass computes as a whole.
const CASES: &[Case] = &[
    // Windows of an adaptive pooling overlap and differ in length.
    (
        &["x float32 [3, 5, 8, 9]"],
        &["tmp_0 = torch.nn.functional.adaptive_avg_pool2d(x, (3, 4))", "return (tmp_0,)"],
    ),
    (
        &["x float16 [2, 3, 4, 5, 6]"],
        &["tmp_0 = torch.nn.functional.adaptive_avg_pool3d(x, (3, None, 7))", "return (tmp_0,)"],
    ),
    // Windows that do not overlap, of what is computed.
    (
        &["x float16 [2, 96]"],
        &[
            "tmp_0 = torch.ones_like(x, dtype=torch.float32)",
            "tmp_1 = torch.nn.functional.pad(x, (0, 0), 'constant', None)",
            "tmp_2 = torch.nn.functional.pad(tmp_0, (0, 0), 'constant', None)",
            "tmp_3 = tmp_1.unfold(dimension=-1, size=16, step=16)",
            "tmp_4 = tmp_2.unfold(dimension=-1, size=16, step=16)",
            "tmp_5 = torch.cat([tmp_3, tmp_4], dim=-1)",
            "return (tmp_5,)",
        ],
    ),
    // Windows that overlap, of what is read.
    (
        &["x float32 [3, 40, 5]"],
        &["tmp_0 = x.unfold(1, 8, 4)", "tmp_1 = tmp_0 * 2.0", "return (tmp_1,)"],
    ),
    // A mean over the single samples of a batch of one.
    (
        &["x float16 [1, 6, 40]", "y float16 [1, 1, 6, 40]"],
        &[
            "tmp_0 = x.unsqueeze(1)",
            "tmp_1 = tmp_0 - y",
            "tmp_2 = torch.mean(tmp_1, dim=1)",
            "tmp_3 = tmp_2 + x",
            "return (tmp_3,)",
        ],
    ),
    (
        &["x float16 [1, 17, 32]", "y float16 [1, 17, 32]"],
        &[
            "tmp_0 = torch.cat((x, y), dim=0)",
            "tmp_1 = tmp_0[slice(None, None, None), 0]",
            "tmp_2 = tmp_0[slice(None, None, None), slice(1, None, None)]",
            "tmp_3 = tmp_2.reshape(2, 4, 4, 32)",
            "tmp_4 = tmp_3.permute(0, 3, 1, 2)",
            "tmp_5 = tmp_4.contiguous()",
            "tmp_6 = tmp_5.flatten(2)",
            "tmp_7 = tmp_6.permute((0, 2, 1))",
            "tmp_8 = tmp_1.unsqueeze(dim=1)",
            "tmp_9 = tmp_8.expand_as(tmp_7)",
            "tmp_10 = torch.cat((tmp_7, tmp_9), -1)",
            "return (tmp_10,)",
        ],
    ),
    (
        &["x int64 [6, 40]"],
        &[
            "tmp_0 = torch.nn.functional.one_hot(x, num_classes=4)",
            "tmp_1 = torch.cumsum(tmp_0, dim=-2)",
            "tmp_2 = tmp_0 * tmp_1",
            "return (tmp_2,)",
        ],
    ),
    // A part of a new tensor is assigned to, then another one by way of a view.
    (
        &["x float32 [6, 40]", "y float32 [6, 8]"],
        &[
            "tmp_0 = x * 2.0",
            "tmp_0[slice(None, None, None), slice(4, 12, None)] = y",
            "tmp_1 = tmp_0",
            "tmp_2 = tmp_0[slice(None, None, None), slice(None, 20, None)]",
            "tmp_2 += 1.5",
            "tmp_3 = tmp_2",
            "tmp_0[slice(None, None, None), slice(None, 20, None)] = tmp_3",
            "tmp_4 = tmp_0",
            "tmp_5 = tmp_0.exp()",
            "return (tmp_5,)",
        ],
    ),
    (
        &["x float16 [2, 6, 40]", "y float32 [40]"],
        &[
            "tmp_0 = x * 0.5",
            "tmp_0[Ellipsis, -1, slice(None, None, None)] = y",
            "tmp_1 = tmp_0",
            "tmp_0[slice(None, None, None), 0] = 3",
            "tmp_2 = tmp_0",
            "tmp_3 = tmp_0 + x",
            "return (tmp_0, tmp_3)",
        ],
    ),
    // Of what comes from outside nothing but the part is written.
    (
        &["x float32 [6, 40]", "y float32 [6]"],
        &[
            "tmp_0 = y + 1.0",
            "x[slice(None, None, None), 7] = tmp_0",
            "tmp_1 = x",
            "tmp_2 = x * 3.0",
            "return (tmp_2,)",
        ],
    ),
    (
        &["x int64 [6, 40]", "y float16 [6, 40]"],
        &[
            "tmp_0 = x - 1",
            "tmp_1 = torch.sign(tmp_0)",
            "tmp_2 = torch.sign(y)",
            "tmp_3 = tmp_1 * tmp_2",
            "return (tmp_3,)",
        ],
    ),
    // A fold of single elements gives them back.
    (
        &["x float32 [6, 5, 40]"],
        &[
            "tmp_0 = torch.nn.functional.softmax(x, dim=-1)",
            "tmp_1 = tmp_0.unsqueeze(1)",
            "tmp_2 = tmp_1.mean(dim=1)",
            "return (tmp_2,)",
        ],
    ),
    // The last of a row that is counted is a number.
    (
        &["x float32 [6, 12]"],
        &[
            "tmp_0 = torch.arange(1, 13, dtype=torch.float32, device=torch.device('cpu'))",
            "tmp_1 = tmp_0[slice(-1, None, None)]",
            "tmp_2 = tmp_1 + 1e-06",
            "tmp_3 = x / tmp_2",
            "return (tmp_3,)",
        ],
    ),
    // A view that lies as the kernel writes it, with what is computed from it.
    (
        &["x float32 [6, 40, 3]", "y float32 [6, 40, 3]"],
        &[
            "tmp_0 = x + y",
            "tmp_1 = tmp_0.transpose(1, 2)",
            "tmp_2 = tmp_1 * 2.0",
            "return (tmp_1, tmp_2)",
        ],
    ),
    (
        &["x float32 [6, 40]"],
        &["tmp_0 = torch.nn.functional.logsigmoid(x)", "tmp_1 = tmp_0 * 2.0", "return (tmp_1,)"],
    ),
    (
        &["x float16 [6, 40]"],
        &["tmp_0 = torch.nn.functional.logsigmoid(x)", "tmp_1 = tmp_0 + x", "return (tmp_1,)"],
    ),
    (
        &["x float32 [6, 40]", "y float32 [6, 40]"],
        &[
            "tmp_0 = torch.div(x, 0.1, rounding_mode='floor')",
            "tmp_1 = torch.div(y, -0.25, rounding_mode='trunc')",
            "tmp_2 = tmp_0 + tmp_1",
            "return (tmp_2,)",
        ],
    ),
    (
        &["x float32 [6, 40]", "y float32 [6, 1]"],
        &[
            "tmp_0 = torch.div(x, y, rounding_mode='floor')",
            "tmp_1 = torch.remainder(x, y)",
            "tmp_2 = x // 0.75",
            "tmp_3 = tmp_0 + tmp_1",
            "tmp_4 = tmp_3 + tmp_2",
            "return (tmp_4,)",
        ],
    ),
    (
        &["x int64 [6, 40]"],
        &[
            "tmp_0 = x - 2",
            "tmp_1 = torch.div(tmp_0, 2, rounding_mode='trunc')",
            "tmp_2 = torch.div(tmp_0, 2, rounding_mode='floor')",
            "tmp_3 = tmp_1 * 10 + tmp_2",
            "return (tmp_3,)",
        ],
    ),
    // Exact before the maximum: of values that round to one number, which one is the largest is a matter of the last bit.
    (
        &["x float32 [6, 5, 40]"],
        &[
            "tmp_0 = torch.abs(x)",
            "tmp_1 = torch.max(tmp_0, -1)",
            "tmp_2 = tmp_1[0]",
            "tmp_3 = tmp_1[1]",
            "tmp_4 = tmp_2 * 3.0",
            "return (tmp_4, tmp_3)",
        ],
    ),
    (
        &["x float32 [6, 5, 40]"],
        &[
            "tmp_0 = x.min(1, keepdim=True)",
            "tmp_1 = tmp_0[0]",
            "tmp_2 = x - tmp_1",
            "return (tmp_2,)",
        ],
    ),
    (
        &["x int64 [6, 40]"],
        &["tmp_0 = x * 7", "tmp_1 = tmp_0.min(dim=1)", "tmp_2 = tmp_1[1]", "return (tmp_2,)"],
    ),
    (
        &["x float32 [6, 40]"],
        &["tmp_0 = torch.sigmoid(x)", "tmp_1 = tmp_0.max()", "return (tmp_1,)"],
    ),
    (
        &["x float16 [6, 40]", "y bool [6, 40]"],
        &[
            "tmp_0 = torch.full((6, 40), -65504.0, dtype=torch.float16)",
            "tmp_1 = torch.full((6, 40), 0.1, dtype=torch.float16)",
            "tmp_2 = torch.where(y, tmp_0, x)",
            "tmp_3 = tmp_2 * tmp_1",
            "return (tmp_3,)",
        ],
    ),
    // A mask that transformers make under vmap: who sees whom, and who is padding. The region is taken out as a whole.
    (
        &["x bool [3, 40]", "y int64 [6]"],
        &[
            "tmp_0 = torch.arange(3, device=torch.device('cpu'))",
            "tmp_1 = torch.arange(40, device=torch.device('cpu'))",
            "tmp_2 = torch._functorch.predispatch._vmap_increment_nesting(3, 'error')",
            "tmp_3 = torch._functorch.predispatch._add_batch_dim(tmp_0, 0, 1)",
            "tmp_4 = torch._functorch.predispatch._vmap_increment_nesting(6, 'error')",
            "tmp_5 = torch._functorch.predispatch._add_batch_dim(y, 0, 2)",
            "tmp_6 = torch._functorch.predispatch._vmap_increment_nesting(40, 'error')",
            "tmp_7 = torch._functorch.predispatch._add_batch_dim(tmp_1, 0, 3)",
            "tmp_8 = tmp_5.new_ones((), dtype=torch.bool)",
            "tmp_9 = tmp_7.le(tmp_5)",
            "tmp_10 = tmp_8.__and__(tmp_9)",
            "tmp_11 = torch.ops.aten.index(x, [tmp_3, tmp_7])",
            "tmp_12 = tmp_10.__and__(tmp_11)",
            "tmp_13 = torch._functorch.predispatch._remove_batch_dim(tmp_12, 3, 40, 0)",
            "tmp_14 = torch._functorch.predispatch._vmap_decrement_nesting()",
            "tmp_15 = torch._functorch.predispatch._remove_batch_dim(tmp_13, 2, 6, 0)",
            "tmp_16 = torch._functorch.predispatch._vmap_decrement_nesting()",
            "tmp_17 = torch._functorch.predispatch._remove_batch_dim(tmp_15, 1, 3, 0)",
            "tmp_18 = torch._functorch.predispatch._vmap_decrement_nesting()",
            "return (tmp_17,)",
        ],
    ),
    // Of a padded tensor parts are taken that hold nothing but padding: nothing is read for them.
    (
        &["x float32 [1, 1, 6, 40]", "y float32 [1, 1, 6, 40]"],
        &[
            "tmp_0 = torch.nn.functional.pad(x, (0, 0, 0, 0, 1, 1), 'constant', 0)",
            "tmp_1 = tmp_0[slice(None, None, None), slice(0, 1, None)]",
            "tmp_2 = tmp_0[slice(None, None, None), slice(1, 2, None)]",
            "tmp_3 = tmp_0[slice(None, None, None), slice(2, 3, None)]",
            "tmp_4 = torch.cat([tmp_1, tmp_2, tmp_3, y], dim=2)",
            "return (tmp_4,)",
        ],
    ),
    // The last of running sums is the sum of the row.
    (
        &["x float32 [3, 6, 40]"],
        &[
            "tmp_0 = x.cumsum(2, dtype=torch.float32)",
            "tmp_1 = tmp_0[slice(None, None, None), slice(None, None, None), slice(-1, None, None)]",
            "tmp_2 = tmp_1 + 1000.0",
            "tmp_3 = tmp_0 / tmp_2",
            "return (tmp_3,)",
        ],
    ),
    // Dropout at inference is a second name of its input, by which it is updated.
    (
        &["x float32 [6, 40]", "y float32 [6, 1]"],
        &[
            "tmp_0 = torch.nn.functional.layer_norm(x, (40,), None, None, 1e-05)",
            "tmp_1 = torch.nn.functional.dropout(tmp_0, p=0.1, training=False)",
            "tmp_1 *= y",
            "tmp_2 = tmp_1",
            "tmp_3 = tmp_0 + 1.0",
            "return (tmp_2, tmp_3)",
        ],
    ),
    // A product of a few numbers is written out; how often rows are repeated is a number of the graph.
    (
        &["x float32 [6, 40]", "y float32 [6, 40]"],
        &[
            "tmp_0 = torch.stack((x, y), dim=-1)",
            "tmp_1 = tmp_0.prod(-1)",
            "tmp_2 = 11 % 4",
            "tmp_3 = torch.repeat_interleave(tmp_1, repeats=tmp_2, dim=-1)",
            "return (tmp_3,)",
        ],
    ),
    (
        &["x int64 [5, 2]"],
        &[
            "tmp_0 = torch.as_tensor([(50, 3), (7, 11)], dtype=torch.int64, device=torch.device('cpu'))",
            "tmp_1 = tmp_0.prod(1)",
            "tmp_2 = x * tmp_1",
            "return (tmp_2,)",
        ],
    ),
];

#[test]
fn one_pass_computes_all_of_it_as_the_native_engine_does() {
    all_are_whole_and_right(CASES, Task::evaluate);
}

/// Where tanh saturates, the place of the largest value hangs on its last bit: it is looked for in what eager has stored.
#[test]
fn places_of_extremes_are_looked_for_in_stored_values() {
    let largest = ["tmp_1 = torch.max(tmp_0, -1)", "tmp_2 = tmp_1[1]", "return (tmp_2,)"];
    let first = ["tmp_2 = tmp_0.argmax(-1)", "return (tmp_2,)"];
    for (statement, is_exact) in [
        ("tmp_0 = torch.tanh(x)", false),
        ("tmp_0 = x / 3.0", false),
        ("tmp_0 = x * 2.0 + 1.0", false),
        ("tmp_0 = x * 2.0", true),
        ("tmp_0 = torch.abs(x)", true),
    ] {
        for rest in [&largest[..], &first] {
            let body: Vec<&str> = std::iter::once(statement).chain(rest.iter().copied()).collect();
            let task = Task::new(&[GraphText { inputs: vec!["x float32 [6, 40]"], body }]);
            let found = task.solve().unwrap();
            let is_together = found.passes.iter().any(|pass| {
                let has =
                    |names: &[&str]| pass.operations.iter().any(|op| names.contains(&op.as_str()));
                has(&["max", "argmax"]) && has(&["tanh", "div", "mul", "add", "abs"])
            });
            assert_eq!(is_together, is_exact, "{statement}, {rest:?}: {:?}", found.passes);
            for evaluation in task.evaluate() {
                assert_eq!(
                    evaluation.judged.verdict.kind,
                    VerdictKind::Correct,
                    "{statement}, {rest:?}"
                );
            }
        }
    }
}

#[test]
#[ignore = "needs PyTorch; tools/full-check runs it"]
fn one_pass_computes_all_of_it_as_pytorch_does() {
    let engine = pytorch();
    all_are_whole_and_right(CASES, |task| task.evaluate_on(&engine));
}

/// A wrapper called `max` would hide Python's from all wrappers of its file.
#[test]
fn no_pass_has_a_name_that_wrappers_use() {
    for (statement, name) in [("tmp_0 = x.max()", "fused_max"), ("tmp_0 = x.sum()", "fused_sum")] {
        let body = vec![statement, "return (tmp_0,)"];
        let task = Task::new(&[GraphText { inputs: vec!["x float32 [6, 40]"], body }]);
        let found = task.solve().unwrap();
        let names: Vec<&str> = found.passes.iter().map(|pass| pass.name.as_str()).collect();
        assert_eq!(names, [name]);
    }
}

/// What is made without a device lies on the host, where no pass for a GPU can take it.
#[test]
fn a_neutral_pass_takes_views_of_inputs() {
    let task = Task::new(&[GraphText {
        // A product that is left to the library.
        inputs: vec!["x float16 [60, 400]", "y float16 [400, 300]"],
        body: vec![
            "tmp_0 = torch.matmul(x, y)",
            "tmp_1 = torch.arange(8)",
            "tmp_2 = tmp_1[slice(2, 6, None)]",
            "tmp_3 = tmp_2.unsqueeze(1)",
            "tmp_4 = tmp_3 > 3",
            "tmp_5 = x.reshape(1, 60, 400)",
            "tmp_6 = tmp_5.unsqueeze(-1)",
            "tmp_7 = torch.logical_and(tmp_6, tmp_6)",
            "return (tmp_0, tmp_3, tmp_6)",
        ],
    }]);
    let found = task
        .solve_with(&SolveOptions { tune: false, for_gpu: true, ..SolveOptions::default() })
        .unwrap();
    let names: Vec<&str> = found.passes.iter().map(|pass| pass.name.as_str()).collect();
    assert_eq!(names, ["neutral_reshape_unsqueeze"]);
}

#[test]
fn a_neutral_pass_hands_back_all_views_of_a_product_at_once() {
    let task = Task::new(&[GraphText {
        inputs: vec!["x float16 [60, 400]", "y float16 [400, 192]"],
        body: vec![
            "tmp_0 = torch.matmul(x, y)",
            "tmp_1 = tmp_0.view(4, 15, 3, 64)",
            "tmp_2 = torch.unbind(tmp_1, 2)",
            "tmp_3 = tmp_2[0]",
            "tmp_4 = tmp_2[1]",
            "tmp_5 = tmp_2[2]",
            "tmp_6 = tmp_3.transpose(1, 2)",
            "tmp_7 = tmp_4.transpose(1, 2)",
            "return (tmp_6, tmp_7, tmp_5)",
        ],
    }]);
    let found = task
        .solve_with(&SolveOptions { tune: false, for_gpu: true, ..SolveOptions::default() })
        .unwrap();
    let [pass] = &found.passes[..] else { panic!("{:?}", found.passes) };
    assert_eq!(pass.name, "neutral_view_unbind");
    let wrapper = "    tmp_1 = tmp_0.view(4, 15, 3, 64)\n    tmp_3 = tmp_1.select(2, 0)\n    \
                   tmp_4 = tmp_1.select(2, 1)\n    tmp_5 = tmp_1.select(2, 2)\n    \
                   tmp_6 = tmp_3.transpose(1, 2)\n    tmp_7 = tmp_4.transpose(1, 2)\n    \
                   return tmp_5, tmp_6, tmp_7\n";
    let text = written(&task.passes());
    assert!(text.contains(wrapper), "{text}");
}

/// On a GPU PyTorch's own kernel, which takes half precision, keeps strides that the library and the CPU do not.
#[test]
fn a_norm_that_the_gpu_lays_out_by_itself_is_left_to_it() {
    let names = |dtype: &str| {
        let task = Task::new(&[GraphText {
            inputs: vec![
                match dtype {
                    "bfloat16" => "x bfloat16 [4, 6, 16]",
                    _ => "x float32 [4, 6, 16]",
                },
                match dtype {
                    "bfloat16" => "w bfloat16 [16]",
                    _ => "w float32 [16]",
                },
            ],
            body: vec![
                "tmp_0 = torch.abs(x)",
                "tmp_1 = tmp_0.transpose(1, 2)",
                "tmp_2 = torch.nn.functional.batch_norm(tmp_1, w, w, w, w, False, 0.1, 1e-05)",
                "tmp_3 = torch.relu(tmp_2)",
                "return (tmp_3,)",
            ],
        }]);
        let found = task
            .solve_with(&SolveOptions { tune: false, for_gpu: true, ..SolveOptions::default() })
            .unwrap();
        found.passes.iter().map(|pass| pass.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names("float32"), ["abs_batch_norm_relu"]);
    assert!(names("bfloat16").iter().all(|name| !name.contains("batch_norm")));
}

/// Graphs whose kernels need each other's results or would copy views, each with the operations of its one pass for a GPU.
const FEW_LAUNCHES: &[(&[&str], &[&str])] = &[
    // What nobody needs of the sum, and a norm of one of its rows.
    (
        &["x float32 [1, 17, 32]", "y float32 [1, 17, 32]", "w float32 [32]"],
        &[
            "tmp_0 = x + y",
            "tmp_1 = torch.functional.split(tmp_0, [1, 16], 1)",
            "tmp_2 = tmp_1[0]",
            "tmp_3 = tmp_1[1]",
            "tmp_4 = tmp_3.permute(0, 2, 1)",
            "tmp_5 = tmp_4.view(1, 32, 4, 4)",
            "tmp_6 = torch.nn.functional.layer_norm(tmp_2, (32,), w, w, 1e-05)",
            "return (tmp_6,)",
        ],
    ),
    // A place that is looked for again for every element of the row that lies there.
    (
        &["x int64 [4, 7]", "y float16 [4, 7, 16]", "z int64 [4]"],
        &[
            "tmp_0 = x.to(torch.int32)",
            "tmp_1 = tmp_0.argmax(dim=-1)",
            "tmp_2 = y[z, tmp_1]",
            "return (tmp_2,)",
        ],
    ),
    // Folds over different dimensions of one sum.
    (
        &["x float32 [6, 40]", "y float32 [6, 40]"],
        &[
            "tmp_0 = x + y",
            "tmp_1 = tmp_0.sum(0)",
            "tmp_2 = tmp_0.mean(1)",
            "return (tmp_0, tmp_1, tmp_2)",
        ],
    ),
];

#[test]
fn small_kernels_compute_again_what_others_give() {
    for (inputs, body) in FEW_LAUNCHES {
        let task = Task::new(&[GraphText { inputs: inputs.to_vec(), body: body.to_vec() }]);
        let options = SolveOptions { tune: false, for_gpu: true, ..SolveOptions::default() };
        let found = task.solve_with(&options).unwrap();
        assert_eq!(found.passes.len(), 1, "{body:?}: {:?}", found.passes);
        for evaluation in task.evaluate() {
            let verdict = &evaluation.judged.verdict;
            assert_eq!(verdict.kind, VerdictKind::Correct, "{body:?}: {verdict}");
        }
    }
}

/// Views of what is updated must not be read afterwards as they were, nor be handed out as copies.
#[test]
fn no_pass_reads_a_view_of_what_was_updated() {
    for body in [
        // Read after another view was updated.
        vec![
            "tmp_0 = x * 2.0",
            "tmp_1 = tmp_0[slice(None, None, None), slice(None, 20, None)]",
            "tmp_0[slice(None, None, None), slice(0, 10, None)] = 1.0",
            "tmp_2 = tmp_0",
            "tmp_3 = tmp_1 + 1.0",
            "return (tmp_0, tmp_3)",
        ],
        // Not assigned back, so that the whole shows it by itself.
        vec![
            "tmp_0 = x * 2.0",
            "tmp_1 = tmp_0[slice(None, None, None), slice(None, 20, None)]",
            "tmp_1 += 1.0",
            "tmp_2 = tmp_1",
            "tmp_3 = tmp_0 * 3.0",
            "return (tmp_3,)",
        ],
        // The view of an argument that is updated is that argument's memory.
        vec![
            "x += 1.0",
            "tmp_0 = x",
            "tmp_1 = tmp_0.transpose(0, 1)",
            "tmp_2 = tmp_1 * 2.0",
            "return (tmp_1, tmp_2)",
        ],
        // What is read under another name after the update.
        vec![
            "tmp_0 = x * 2.0",
            "tmp_4 = x.add_(tmp_0)",
            "tmp_1 = torch.nn.functional.dropout(x, 0.0, False, False)",
            "tmp_2 = tmp_1.exp()",
            "return (tmp_1, tmp_2)",
        ],
        // Pieces of a list are views, too.
        vec![
            "tmp_0 = x * 2.0",
            "tmp_1 = tmp_0.chunk(2, dim=1)",
            "tmp_2 = tmp_1[0]",
            "tmp_0 += 1.0",
            "tmp_3 = tmp_0",
            "tmp_4 = tmp_2 * 3.0",
            "return (tmp_4,)",
        ],
    ] {
        let text = format!("{body:?}");
        let task = Task::new(&[GraphText { inputs: vec!["x float32 [6, 40]"], body }]);
        if task.solve().is_err() {
            continue;
        }
        for evaluation in task.evaluate() {
            let verdict = &evaluation.judged.verdict;
            assert_eq!(verdict.kind, VerdictKind::Correct, "{text}: {verdict}");
        }
    }
}

/// Every multiprocessor has work where there is enough, and what lies across is moved in squares.
#[test]
fn tiles_for_a_gpu_follow_sizes_and_layout() {
    let add = ["tmp_0 = x + y", "return (tmp_0,)"];
    let turn = ["tmp_0 = x.transpose(0, 1)", "tmp_1 = tmp_0 + y", "return (tmp_1,)"];
    // Powers for every column are worked out once for all rows of a program.
    let powers = [
        "tmp_0 = torch.arange(800, dtype=torch.float32, device=torch.device('cpu'))",
        "tmp_1 = torch.exp2(tmp_0)",
        "tmp_2 = x * tmp_1",
        "tmp_3 = tmp_2 + y",
        "return (tmp_3,)",
    ];
    let softmax =
        ["tmp_0 = x + y", "tmp_1 = torch.nn.functional.softmax(tmp_0, dim=-1)", "return (tmp_1,)"];
    let fold = ["tmp_0 = x + y", "tmp_1 = tmp_0.sum(1)", "return (tmp_1,)"];
    let both = ["tmp_0 = x + y", "tmp_1 = tmp_0.sum(1)", "return (tmp_0, tmp_1)"];
    let pool = ["tmp_0 = torch.nn.functional.max_pool2d(x, 3, 1, 1)", "return (tmp_0,)"];
    let resampled = [
        "tmp_0 = torch.nn.functional.interpolate(x, scale_factor=2, mode='bilinear')",
        "return (tmp_0,)",
    ];
    for (inputs, body, words) in [
        (["x float32 [80, 100]", "y float32 [80, 100]"], &add[..], "count), 256)"),
        // Rows that lie side by side and are short: lanes fold rows of their own, unless what is summed is stored, too.
        (["x float32 [4, 3, 6000]", "y float32 [4, 3, 6000]"], &fold, "(rows), 128)"),
        (["x float16 [4, 3, 99000]", "y float16 [4, 3, 99000]"], &fold, "(rows), 1024)"),
        (["x float32 [4, 3, 6000]", "y float32 [4, 3, 6000]"], &both, "max(1, 512 // width)"),
        // Many results of a window are many loads for a lane to wait for; resampled neighbours share their places.
        (["x float32 [9, 64, 30, 30]", "y float32 [1]"], &pool, "num_warps=2"),
        (["x float32 [9, 64, 30, 30]", "y float32 [1]"], &pool, "(columns), 256)"),
        (["x float32 [9, 64, 30, 30]", "y float32 [1]"], &resampled, "num_warps=2"),
        (["x float32 [4, 200, 6000]", "y float32 [4, 200, 6000]"], &fold, "max(1, 4096 // width)"),
        // Every lane loads 16 bytes at once.
        (["x float32 [800, 1000]", "y float32 [800, 1000]"], &add, "count), 512)"),
        (["x float16 [800, 1000]", "y float16 [800, 1000]"], &add, "count), 1024)"),
        (["x float16 [800, 1000]", "y float16 [800, 1000]"], &add, "count: tl.constexpr"),
        (["x float32 [100, 80]", "y float32 [80, 100]"], &turn, "width = max(32, 1024 //"),
        (["x float32 [2000, 800]", "y float32 [800, 2000]"], &turn, "width = max(64, 4096 //"),
        (["x float32 [2000, 800]", "y float32 [2000, 800]"], &powers, "width = max(64, 4096 //"),
        (["x float32 [50, 3000]", "y float32 [50, 3000]"], &softmax, "num_warps=16"),
        // As many rows in a program as leave one for every multiprocessor.
        (["x float32 [264, 60]", "y float32 [264, 60]"], &softmax, "max(1, 128 // width)"),
    ] {
        let task = Task::new(&[GraphText { inputs: inputs.to_vec(), body: body.to_vec() }]);
        let text = written_for_gpu(&task);
        assert!(text.contains(words), "{words} is not in\n{text}");
    }
}

/// Tiles of the largest graph would leave most of a GPU idle in a small one. The wrapper decides, and both graphs are right.
#[test]
fn smaller_graphs_of_a_task_have_smaller_tiles() {
    let add = ["tmp_0 = x + y", "return (tmp_0,)"];
    let turn = ["tmp_0 = x.transpose(0, 1)", "tmp_1 = tmp_0 + y", "return (tmp_1,)"];
    let softmax =
        ["tmp_0 = x + y", "tmp_1 = torch.nn.functional.softmax(tmp_0, dim=-1)", "return (tmp_1,)"];
    for (large, small, body, words) in [
        (
            ["x float32 [800, 1000]", "y float32 [800, 1000]"],
            ["x float32 [40, 50]", "y float32 [40, 50]"],
            &add[..],
            &["is_small = count < 800000", "tile = 256 if is_small else 512"][..],
        ),
        (
            ["x float32 [1500, 800]", "y float32 [800, 1500]"],
            ["x float32 [100, 80]", "y float32 [80, 100]"],
            &turn,
            &[
                "is_small = rows * columns < 1200000",
                "side = 32 if is_small else 64",
                "num_warps=4 if is_small else 8",
            ],
        ),
        // Slabs count, too.
        (
            ["x float32 [16, 64, 2000]", "y float32 [16, 1, 2000]"],
            ["x float32 [2, 16, 200]", "y float32 [2, 1, 200]"],
            &add,
            &["is_small = slabs * rows * columns < 2048000"],
        ),
        // A warp folds a row by itself where there are rows enough.
        (
            ["x float32 [1200, 1000]", "y float32 [1200, 1000]"],
            ["x float32 [20, 1000]", "y float32 [20, 1000]"],
            &softmax,
            &["is_small = rows * columns < 1200000", "num_warps=4 if is_small else 1"],
        ),
        (
            ["x float32 [2500, 500]", "y float32 [2500, 500]"],
            ["x float32 [2400, 500]", "y float32 [2400, 500]"],
            &softmax,
            &["max(1, 1024 // width)", "num_warps=1"],
        ),
    ] {
        let graph =
            |inputs: [&'static str; 2]| GraphText { inputs: inputs.to_vec(), body: body.to_vec() };
        let task = Task::new(&[graph(large), graph(small)]);
        let text = written_for_gpu(&task);
        for word in words {
            assert!(text.contains(word), "{word} is not in\n{text}");
        }
        assert_correct(&task.evaluate(), &text);
    }
}

/// Lanes that fold rows of their own give what the graph gives, also where a row has a NaN or there are more rows than a tile.
#[test]
fn rows_side_by_side_are_folded_by_lanes() {
    for (body, words) in [
        (&["tmp_0 = x * y", "tmp_1 = tmp_0.sum(1)", "return (tmp_1,)"][..], "sum_1 +="),
        (&["tmp_0 = x + y", "tmp_1 = tmp_0.amax(1)", "return (tmp_1,)"], "tl.maximum(sum_1"),
        (&["tmp_0 = x + y", "tmp_1 = tmp_0.mean(1)", "return (tmp_1,)"], "COLUMNS=1"),
    ] {
        let task = Task::new(&[GraphText {
            inputs: vec!["x float32 [3, 7, 5003]", "y float32 [3, 7, 5003]"],
            body: body.to_vec(),
        }]);
        let text = written_for_gpu(&task);
        assert!(text.contains(words), "{words} is not in\n{text}");
        assert_correct(&task.evaluate(), &text);
    }
}

/// Adaptive pooling whose windows overlap, divide evenly, or are whole dimensions, in one kernel each.
#[test]
fn adaptive_pooling_is_a_fold_over_what_each_result_stands_for() {
    for (inputs, call) in [
        (["x float32 [3, 5, 8, 9]", "x float32 [3, 5, 3, 4]"], "adaptive_avg_pool2d(x, (3, 4))"),
        // What divides here does not divide there, and what is pooled here is spread there.
        (["x float16 [2, 7, 12, 18]", "x float16 [2, 7, 13, 4]"], "adaptive_avg_pool2d(x, 6)"),
        (["x float32 [4, 6, 50]", "x float32 [4, 6, 49]"], "adaptive_avg_pool1d(x, 7)"),
        (
            ["x float32 [2, 3, 6, 6, 7]", "x float32 [2, 3, 5, 9, 2]"],
            "adaptive_avg_pool3d(x, (2, None, 1))",
        ),
    ] {
        let pooled = format!("tmp_0 = torch.nn.functional.{call}");
        let body =
            vec![pooled.as_str(), "tmp_1 = torch.nn.functional.relu(tmp_0)", "return (tmp_1,)"];
        let [task, other] =
            inputs.map(|input| Task::new(&[GraphText { inputs: vec![input], body: body.clone() }]));
        let text = written_for_gpu(&task);
        assert!(text.contains("tl.sum(") && text.contains(call), "{call}: {text}");
        // The pass of one size is right on another, too.
        for on in [&task, &other] {
            assert_correct(&on.evaluate_with(&NativeEngine, &task.passes()), &text);
        }
    }
}

/// The place that a result begins at comes from a product that is larger than the tensor.
#[test]
fn adaptive_pooling_counts_in_bits_that_suffice() {
    let pooled = |size: &'static str| GraphText {
        inputs: vec![size],
        body: vec!["tmp_0 = torch.nn.functional.adaptive_avg_pool1d(x, 700)", "return (tmp_0,)"],
    };
    let options = SolveOptions { tune: false, for_gpu: true, ..SolveOptions::default() };
    for (size, is_solved) in [("x float16 [1, 3000000]", true), ("x float16 [1, 3100000]", false)] {
        let task = Task::new(&[pooled(size)]);
        let passes = task.solve_with(&options).map(|found| found.passes).unwrap_or_default();
        assert_eq!(!passes.is_empty(), is_solved, "{size}: {passes:?}");
    }
}

/// A join of what is worked out between other elements would do that work for every part of it.
#[test]
fn resampled_parts_of_a_join_have_kernels_of_their_own() {
    let resampled = |part: &str, name: &str| {
        format!("{part} = torch.nn.functional.interpolate({name}, size=[96, 96], mode='bilinear')")
    };
    let lines = [resampled("tmp_0", "x"), resampled("tmp_1", "y"), resampled("tmp_2", "z")];
    let mut body: Vec<&str> = lines.iter().map(String::as_str).collect();
    body.extend(["tmp_3 = torch.cat([w, tmp_0, tmp_1, tmp_2], 1)", "return (tmp_3,)"]);
    let task = Task::new(&[GraphText {
        inputs: vec![
            "x float32 [4, 8, 48, 48]",
            "y float32 [4, 8, 24, 24]",
            "z float32 [4, 8, 12, 12]",
            "w float32 [4, 512, 96, 96]",
        ],
        body,
    }]);
    let text = written_for_gpu(&task);
    for name in ["# cat.py", "# interpolate.py"] {
        assert!(text.contains(name), "{name} is not in\n{text}");
    }
}

/// Both halves have one pattern and other sizes: whichever half a pass is given, its kernels are right for it.
#[test]
fn parts_that_are_alike_are_not_given_each_others_tensors() {
    let task = Task::new(&[GraphText {
        inputs: vec!["x float16 [2, 19, 4]", "y float16 [1, 19, 4]", "z float16 [1, 19, 4]"],
        body: vec![
            "tmp_0 = x * z",
            "tmp_1 = x[Ellipsis, slice(2, None, None)]",
            "tmp_2 = torch.cat((-tmp_1, tmp_1), dim=-1)",
            "tmp_3 = tmp_0 + tmp_2",
            "tmp_4 = y * z",
            "tmp_5 = y[Ellipsis, slice(2, None, None)]",
            "tmp_6 = torch.cat((-tmp_5, tmp_5), dim=-1)",
            "tmp_7 = tmp_4 + tmp_6",
            "return (tmp_3, tmp_7)",
        ],
    }]);
    task.solve_with(&SolveOptions { tune: false, for_gpu: true, ..SolveOptions::default() })
        .unwrap();
    for evaluation in task.evaluate() {
        let verdict = &evaluation.judged.verdict;
        assert_eq!(verdict.kind, VerdictKind::Correct, "{verdict}\n{}", written(&task.passes()));
    }
}

/// What is made on the host and moved is no view that a pass for a GPU could hand back.
#[test]
fn a_neutral_pass_moves_nothing_from_the_host() {
    let task = Task::new(&[GraphText {
        // A product that is left to the library.
        inputs: vec!["x float16 [60, 400]", "y float16 [400, 300]"],
        body: vec![
            "tmp_0 = torch.matmul(x, y)",
            "tmp_1 = torch.arange(8)",
            "tmp_2 = tmp_1.to(torch.device(type='cuda', index=0))",
            "return (tmp_0, tmp_2)",
        ],
    }]);
    let options = SolveOptions { tune: false, for_gpu: true, ..SolveOptions::default() };
    let passes = task.solve_with(&options).map(|found| found.passes).unwrap_or_default();
    assert!(passes.iter().all(|pass| pass.name != "neutral_to"), "{passes:?}");
}

/// A value that is computed at two places gets a second name, which must not be another value's.
#[test]
fn names_of_values_are_not_names_of_others() {
    let task = Task::new(&[GraphText {
        inputs: vec!["x float32 [40, 40]", "y float32 [40, 40]"],
        body: vec![
            "m = x * y",
            "m_1 = m.transpose(0, 1)",
            "m_2 = m - m_1",
            "m_3 = m_2 * m_1",
            "return (m_3,)",
        ],
    }]);
    task.solve().unwrap();
    for evaluation in task.evaluate() {
        let verdict = &evaluation.judged.verdict;
        assert_eq!(verdict.kind, VerdictKind::Correct, "{verdict}\n{}", written(&task.passes()));
    }
}

/// Pictures made rows and joined: what a reshape took apart a permutation does not put together by dividing, and what lies
/// across is moved in squares.
#[test]
fn a_number_is_not_computed_from_its_quotient_and_remainder() {
    let task = Task::new(&[GraphText {
        inputs: vec!["x float32 [1, 64, 40, 50]", "y float32 [1, 64, 20, 25]"],
        body: vec![
            "tmp_0 = x.flatten(2)",
            "tmp_1 = tmp_0.transpose(1, 2)",
            "tmp_2 = y.flatten(2)",
            "tmp_3 = tmp_2.transpose(1, 2)",
            "tmp_4 = torch.cat([tmp_1, tmp_3], 1)",
            "return (tmp_4,)",
        ],
    }]);
    let text = written_for_gpu(&task);
    assert!(!text.contains("part") && text.contains("width = max(32, 1024 //"), "{text}");
    for evaluation in task.evaluate() {
        let verdict = &evaluation.judged.verdict;
        assert_eq!(verdict.kind, VerdictKind::Correct, "{verdict}\n{text}");
    }
}
