//! Rules on small graphs; sizes were checked against PyTorch by `python -m passnet.parity.compare_stats`.

use super::*;
use crate::files::{FileName, GraphFiles};
use crate::infer::infer_folder;
use crate::read::read_folder;

fn meta(name: &str, shape: &str, dtype: &str, rest: &str) -> String {
    format!(
        "class Program_weight_tensor_meta_{name}:\n    name = \"{name}\"\n    shape = {shape}\n    dtype = \"torch.{dtype}\"\n{rest}    data = None\n\n"
    )
}

/// The statistics of the value named `out` of a graph over `x` (normal), `w` (a matrix), `p` (positive) and
/// `i` (indices below 10).
fn stat(body: &str) -> Option<Stat> {
    let lines: String = body.lines().map(|line| format!("        {}\n", line.trim())).collect();
    let model = format!(
        "import torch\n\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, x, w, p, i):\n{lines}        return (out,)\n"
    );
    let metas = [
        meta("x", "[8, 64]", "float32", "    mean = 1.0\n    std = 2.0\n"),
        meta("w", "[32, 64]", "float32", "    mean = 0.0\n    std = 0.5\n"),
        meta("p", "[8, 64]", "float32", "    mean = 1.0\n    std = 0.1\n    min_val = 0.0\n"),
        meta("i", "[8, 4]", "int64", "    min_val = 0\n    max_val = 9\n"),
    ];
    let files = GraphFiles::new("stats")
        .with(FileName::Model, model)
        .with(FileName::WeightMeta, metas.concat());
    let folder = read_folder(&files).unwrap();
    let types = infer_folder(&folder);
    assert!(types.failures.is_empty(), "{:?}", types.failures);
    let out = folder.graph.ids().find(|id| &*folder.graph.node(*id).name == "out").unwrap();
    propagate(&folder, &types).of(out)
}

fn near(stat: Option<Stat>, mean: f64, std: f64) {
    let stat = stat.unwrap();
    assert!((stat.mean - mean).abs() < 0.02 * (1.0 + mean.abs()), "{stat:?}");
    assert!((stat.std - std).abs() < 0.05 * (0.1 + std), "{stat:?}");
}

#[test]
fn arithmetic_adds_means_and_variances() {
    near(stat("out = x + p"), 2.0, (4.0f64 + 0.01).sqrt());
    near(stat("out = x - 3"), -2.0, 2.0);
    near(stat("out = x * 3"), 3.0, 6.0);
    near(stat("out = x * x"), 5.0, 48f64.sqrt());
    near(stat("out = x / 2"), 0.5, 1.0);
}

#[test]
fn a_recurrent_state_lies_between_one_and_minus_one() {
    let state = "h = torch.zeros(8, 32)\nu = torch.zeros(32, 32)\n";
    let cell = stat(&format!("{state}out = torch.rnn_tanh_cell(x, h, w, u)")).unwrap();
    let layer = "s = x.unsqueeze(0)\nk = h.unsqueeze(0)\n";
    let call = "out = torch.rnn_tanh(s, k, [w, u], False, 1, 0.0, False, False, False)[0]";
    let layer = stat(&format!("{state}{layer}{call}")).unwrap();
    for found in [cell, layer] {
        assert!(found.min == -1.0 && found.max == 1.0 && found.std > 0.0, "{found:?}");
    }
}

#[test]
fn functions_are_integrated_over_a_normal_distribution() {
    // E[max(N(1, 2), 0)] = 1.395, its deviation 1.50.
    near(stat("out = torch.relu(x)"), 1.396, 1.50);
    near(stat("out = torch.sigmoid(x)"), 0.649, 0.285);
    assert_eq!(stat("out = torch.relu(x)").unwrap().min, 0.0);
    assert_eq!(stat("out = torch.sigmoid(x)").unwrap().max, 1.0);
}

#[test]
fn products_of_matrices_sum_over_their_fan_in() {
    // 64 products of N(1, 2) and N(0, 0.5).
    near(stat("out = torch._C._nn.linear(x, w, None)"), 0.0, (64.0f64 * 1.25).sqrt());
}

#[test]
fn norms_and_softmax_have_their_own_size() {
    near(stat("out = torch.nn.functional.layer_norm(x, (64,), None, None, 1e-05)"), 0.0, 1.0);
    let soft = stat("out = torch.nn.functional.softmax(x, dim=-1)").unwrap();
    assert_eq!((soft.mean, soft.min, soft.max), (1.0 / 64.0, 0.0, 1.0));
}

#[test]
fn reductions_average_and_count() {
    near(stat("out = x.mean(-1)"), 1.0, 0.25);
    near(stat("out = x.sum(-1)"), 64.0, 16.0);
}

fn bounds(body: &str) -> (f64, f64) {
    let stat = stat(body).unwrap();
    (stat.min, stat.max)
}

#[test]
fn indices_stay_legal() {
    assert_eq!(bounds("out = i + 1"), (1.0, 10.0));
    assert_eq!(bounds("out = torch.argmax(x, dim=-1)"), (0.0, 63.0));
    assert_eq!(bounds("out = torch.arange(4, 12)"), (4.0, 11.0));
    assert_eq!(bounds("a = i.ne(1)\nb = a.int()\nout = torch.cumsum(b, dim=1)"), (0.0, 4.0));
    assert_eq!(bounds("out = i // 2"), (0.0, 4.0));
    assert_eq!(bounds("out = i % 4"), (0.0, 3.0));
    assert_eq!(bounds("k = x.max(dim=-1)\nout = k[1]"), (0.0, 63.0));
    assert_eq!(bounds("out = torch.clamp(i, 2, 5)"), (2.0, 5.0));
    assert_eq!(bounds("out = torch.cat([i, i + 20], 1)"), (0.0, 29.0));
    assert_eq!(bounds("out = x > 0"), (0.0, 1.0));
    assert_eq!(bounds("a = i + 0\na[0] = 40\nout = a + 0").1, 40.0);
    assert_eq!(bounds("a = i * 0\nb = a.view(-1)\nb.fill_(7)\nout = a + 0"), (0.0, 7.0));
}

#[test]
fn a_description_has_the_fields_of_its_dtype() {
    let mut index = TensorMeta::new("i", vec![4], DType::Int64);
    Stat::uniform(0.0, 9.0).describe(&mut index);
    assert_eq!(index.max_val.map(|n| n.as_f64()), Some(9.0));
    assert_eq!(index.mean, None);
    let mut float = TensorMeta::new("x", vec![4], DType::Float32);
    Stat { min: 0.0, ..Stat::normal(1.0, 0.5) }.describe(&mut float);
    assert_eq!((float.mean, float.std), (Some(1.0), Some(0.5)));
    assert_eq!(float.min_val.map(|n| n.as_f64()), Some(0.0));
    assert_eq!(float.max_val, None);
}

#[test]
fn an_epsilon_is_not_rounded_to_zero() {
    let written = |value: f64| {
        let text = meta("x", "[]", "float32", "");
        let files = GraphFiles::new("m")
            .with(FileName::Model, "import torch\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, x):\n        return (x,)\n")
            .with(FileName::WeightMeta, text);
        let mut meta = read_folder(&files).unwrap().metas.remove(0);
        Stat::constant(value).describe(&mut meta);
        let bound = meta.min_val.map(|bound| bound.as_f64());
        assert_eq!(bound, meta.mean);
        meta.mean.unwrap()
    };
    assert_eq!(written(1e-12), 1e-12);
    assert_eq!(written(-1.234_567_89e-7), -1.234_57e-7);
    assert_eq!(written(0.123_456_789), 0.123_457);
    assert_eq!(written(12.345_678_9), 12.345_679);
    assert_eq!(written(0.0), 0.0);
    assert_eq!(written(3.4e38), 3.4e38);
}
