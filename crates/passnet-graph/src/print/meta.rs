//! `weight_meta.py` and `input_tensor_constraints.py`.

use super::python::{python_float, python_string};
use crate::read::{Constraints, Number, ShapeDim, TensorMeta};
use std::fmt::Write;

/// One class per tensor, in the given order.
pub fn print_tensor_metas(metas: &[TensorMeta]) -> String {
    let classes: Vec<String> = metas.iter().map(print_class).collect();
    classes.join("\n\n")
}

fn print_class(meta: &TensorMeta) -> String {
    let mut text = format!("class Program_weight_tensor_meta_{}:\n", meta.class_name);
    let mut field = |name: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\t{name} = {value}");
    };
    field("name", quoted(&meta.name));
    if let Some(original) = &meta.original_name {
        field("original_name", quoted(original));
    }
    field("shape", format!("{:?}", meta.shape));
    field("dtype", quoted(&meta.dtype.to_string()));
    if let Some(device) = meta.device {
        field("device", quoted(&device.to_string()));
    }
    field("mean", meta.mean.map_or("None".into(), python_float));
    field("std", meta.std.map_or("None".into(), python_float));
    let data = meta.data.as_ref().map_or("None".into(), |data| {
        let items: Vec<String> = data.iter().copied().map(print_number).collect();
        format!("[{}]", items.join(", "))
    });
    field("data", data);
    if let Some(value) = meta.min_val {
        field("min_val", print_number(value));
    }
    if let Some(value) = meta.max_val {
        field("max_val", print_number(value));
    }
    text
}

fn quoted(value: &str) -> String {
    let text = python_string(value);
    match text.strip_prefix('\'').and_then(|t| t.strip_suffix('\'')) {
        Some(inner) if !inner.contains('"') => format!("\"{inner}\""),
        _ => text,
    }
}

fn print_number(value: Number) -> String {
    match value {
        Number::Bool(true) => "True".into(),
        Number::Bool(false) => "False".into(),
        Number::Int(value) => value.to_string(),
        Number::Float(value) => python_float(value),
    }
}

/// The constraints file; empty when nothing is symbolic.
pub fn print_constraints(constraints: &Constraints) -> String {
    if constraints.symbols.is_empty() {
        return String::new();
    }
    let names: Vec<&str> = constraints.symbols.iter().map(|(name, _)| name.as_str()).collect();
    let mut text = String::from("from sympy import Symbol\n\n");
    for name in &names {
        text.push_str(&format!("{name} = Symbol(\"{name}\")\n"));
    }
    let examples: Vec<String> =
        constraints.symbols.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    text.push_str(&format!(
        "\ndynamic_dim_constraint_symbols = [{}]\n\n\
         dynamic_dim_constraint_symbol2example_value = {{{}}}\n\n\
         dynamic_dim_constraint_relations = []\n\n\
         dynamic_dim_constraint_input_shapes = [\n",
        names.join(", "),
        examples.join(", ")
    ));
    for (name, shape) in &constraints.input_shapes {
        let dims: Vec<String> = shape
            .iter()
            .map(|dim| match dim {
                ShapeDim::Size(size) => size.to_string(),
                ShapeDim::Symbol(symbol) => symbol.clone(),
            })
            .collect();
        text.push_str(&format!("    ([{}], {}),\n", dims.join(", "), quoted(name)));
    }
    text.push_str("]\n");
    text
}
