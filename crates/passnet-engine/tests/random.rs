//! Torch's generator and the drawing of inputs, bit for bit.
//!
//! Goldens: `python/goldens/random_goldens.py` and `python/goldens/input_goldens.py`, PyTorch 2.11.

mod support;

use passnet_engine::native::inputs::{InputMeta, materialise};
use passnet_engine::native::random::Generator;
use passnet_engine::native::{Scalar, Tensor};
use serde_json::Value;
use support::{assert_same, dtype, fnv1a, load, sizes, tensor};

fn draw(generator: &mut Generator, case: &Value) -> Tensor {
    let (shape, dtype) = (sizes(&case["shape"]), dtype(&case["dtype"]));
    match case["kind"].as_str().unwrap() {
        "randn" => generator.randn(&shape, dtype),
        "rand" => generator.rand(&shape, dtype),
        "randint" => generator.randint(-7, 1000, &shape, dtype),
        "randint_wide" => generator.randint(-5, 1 << 40, &shape, dtype),
        "randperm" => generator.randperm(shape[0], dtype),
        "bernoulli" => {
            generator.bernoulli(&Tensor::full(&shape, Scalar::Float(0.3), dtype).unwrap())
        }
        kind => panic!("unknown draw {kind}"),
    }
    .unwrap()
}

#[test]
fn draws_equal_torch() {
    let mut generator = Generator::new(123);
    for (i, case) in load("random.json").iter().enumerate() {
        let what = format!("draw {i}, {} {}", case["kind"], case["dtype"]);
        let got = draw(&mut generator, case);
        if let Some(value) = case.get("value") {
            assert_same(&what, &got, &tensor(value));
        }
        assert_eq!(fnv1a(&got.to_bytes().unwrap()), case["fnv1a"], "{what}");
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) => text.parse().ok(),
        value => value.as_f64(),
    }
}

fn scalar(value: &Value) -> Option<Scalar> {
    match value.as_i64() {
        Some(int) => Some(Scalar::Int(int)),
        None => number(value).map(Scalar::Float),
    }
}

#[test]
fn inputs_equal_torch() {
    let cases = load("inputs.json");
    let metas: Vec<InputMeta> = cases
        .iter()
        .map(|case| InputMeta {
            class_name: case["class_name"].as_str().unwrap().into(),
            name: case["name"].as_str().unwrap().into(),
            shape: sizes(&case["shape"]),
            dtype: dtype(&case["dtype"]),
            mean: number(&case["mean"]),
            std: number(&case["std"]),
            data: case["data"].as_array().map(|d| d.iter().filter_map(scalar).collect()),
            min_val: scalar(&case["min_val"]),
            max_val: scalar(&case["max_val"]),
        })
        .collect();
    let drawn = materialise(&[], &metas, 123).unwrap();
    for case in &cases {
        let name = case["name"].as_str().unwrap();
        let (_, got) = drawn.iter().find(|(n, _)| n == name).unwrap();
        if let Some(value) = case.get("value") {
            assert_same(name, got, &tensor(value));
        }
        assert_eq!(fnv1a(&got.to_bytes().unwrap()), case["fnv1a"], "{name}");
    }
}
