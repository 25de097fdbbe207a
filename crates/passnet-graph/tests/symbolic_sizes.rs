//! Sizes that derive from symbols keep their expression; what holds only for the example becomes a guard;
//! a refused call is located and only its dependants are unknown.

use passnet_graph::infer::{Inference, Scalar, Value, infer_folder};
use passnet_graph::read::{GraphFolder, read_folder};
use passnet_graph::{FileName, GraphFiles};

fn folder(statements: &str) -> GraphFolder {
    let meta = |name: &str, shape: &str| {
        format!(
            "class Program_weight_tensor_meta_{name}:\n    name = \"{name}\"\n    shape = {shape}\n    dtype = \"torch.float32\"\n"
        )
    };
    let files = GraphFiles::new("test")
        .with(
            FileName::Model,
            format!("class GraphModule:\n    def forward(self, x, w, b):\n{statements}        return ()\n"),
        )
        .with(
            FileName::WeightMeta,
            [meta("x", "[2, 6, 4]"), meta("w", "[8, 4]"), meta("b", "[6, 1]")].concat(),
        )
        .with(
            FileName::InputTensorConstraints,
            "dynamic_dim_constraint_symbol2example_value = {S0: 2, S1: 6}\n\
             dynamic_dim_constraint_input_shapes = [([S0, S1, 4], \"x\")]\n",
        );
    read_folder(&files).expect("a well-formed folder")
}

fn shapes(folder: &GraphFolder, inference: &Inference) -> Vec<String> {
    let types = folder.graph.calls().map(|(id, _)| match inference.value(id) {
        Value::Tensor(tensor) => {
            let dims: Vec<String> = tensor.shape.iter().map(ToString::to_string).collect();
            dims.join(", ")
        }
        Value::Scalar(Scalar::Int(Some(dim))) => format!("int {dim}"),
        other => other.to_json().to_string(),
    });
    types.collect()
}

#[test]
fn expressions_follow_the_sizes() {
    let folder = folder(
        "        y = torch._C._nn.linear(x, w)
        a = y.flatten(1)
        b2 = y[(slice(None, None, None), slice(None, None, 4))]
        c = torch.cat([y, y], 1)
        d = y.view(-1, 8)
        e = y.view(2, 3, -1, 8)
        n = y.size(1)
        m = n // 2
        f = torch.arange(m)
        g = torch.nn.functional.max_pool1d(y.transpose(1, 2), 3, 2, 1)
",
    );
    let inference = infer_folder(&folder);
    assert!(inference.failures.is_empty(), "{:?}", inference.failures);
    assert_eq!(
        shapes(&folder, &inference),
        [
            "S0, S1, 8",
            "S0, S1*8",
            "S0, (S1 + 3)//4, 8",
            "S0, S1*2, 8",
            "S0*S1, 8",
            "2, 3, (S0*S1)//6, 8",
            "int S1",
            "int S1//2",
            "S1//2",
            "S0, 8, S1",
            "S0, 8, (S1 - 1)//2 + 1",
        ]
    );
    assert!(inference.guards.is_empty(), "{:?}", inference.guards);
}

#[test]
fn what_holds_only_for_the_example_is_a_guard() {
    let folder = folder("        y = x + b\n        z = x.view(2, 24)\n");
    let inference = infer_folder(&folder);
    assert!(inference.failures.is_empty());
    let guards: Vec<String> = inference.guards.iter().map(ToString::to_string).collect();
    assert_eq!(guards, ["S1 == 6", "S0*S1*4 == 48"]);
}

#[test]
fn a_refused_call_is_located_and_the_rest_is_inferred() {
    let folder = folder(
        "        y = x.view(7)\n        z = y + 1\n        k = w.t()\n        u = torch.no_such_thing(x)\n",
    );
    let inference = infer_folder(&folder);
    let failures: Vec<(&str, u32, &str)> =
        inference.failures.iter().map(|f| (&*f.name, f.line, f.message.as_str())).collect();
    assert_eq!(
        failures,
        [
            ("y", 3, "shape '[7]' is invalid for input of size 48"),
            ("u", 6, "unknown operation `torch.no_such_thing`"),
        ]
    );
    let results = shapes(&folder, &inference);
    assert!(results[1].contains("`y`: shape '[7]'"), "the dependant says why: {}", results[1]);
    assert_eq!(results[2], "4, 8");
}
