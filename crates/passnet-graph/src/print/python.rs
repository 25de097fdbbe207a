//! Values as Python writes them.

use crate::graph::{Arg, Graph};

/// An argument as source text; nodes by name.
pub fn print_arg(graph: &Graph, arg: &Arg) -> String {
    let mut text = String::new();
    write_arg(&mut text, graph, arg, Dialect::default());
    text
}

/// How values that need an import are written; a graph may use `device` or `inf` as a variable.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Dialect {
    pub qualified_device: bool,
    pub called_inf: bool,
}

pub(super) fn write_arg(text: &mut String, graph: &Graph, arg: &Arg, dialect: Dialect) {
    match arg {
        Arg::Node(id) => text.push_str(&graph.node(*id).name),
        Arg::None => text.push_str("None"),
        Arg::Bool(true) => text.push_str("True"),
        Arg::Bool(false) => text.push_str("False"),
        Arg::Int(value) => text.push_str(&value.to_string()),
        Arg::Float(value) if value.is_infinite() && !dialect.called_inf => {
            text.push_str(if *value > 0.0 { "inf" } else { "-inf" });
        }
        Arg::Float(value) => text.push_str(&python_float(*value)),
        Arg::Str(value) => text.push_str(&python_string(value)),
        Arg::Dtype(dtype) => text.push_str(&dtype.to_string()),
        Arg::Constant(name) => {
            text.push_str("torch.");
            text.push_str(name);
        }
        Arg::Ellipsis => text.push_str("Ellipsis"),
        Arg::Device(device) => {
            text.push_str(if dialect.qualified_device { "torch.device" } else { "device" });
            text.push_str("(type='");
            text.push_str(device.kind_name());
            text.push('\'');
            if let Some(index) = device.index {
                text.push_str(&format!(", index={index}"));
            }
            text.push(')');
        }
        Arg::Slice(parts) => {
            text.push_str("slice(");
            write_items(text, graph, &parts[..], dialect);
            text.push(')');
        }
        Arg::List(items) => {
            text.push('[');
            write_items(text, graph, items, dialect);
            text.push(']');
        }
        Arg::Tuple(items) => {
            text.push('(');
            write_items(text, graph, items, dialect);
            text.push_str(if items.len() == 1 { ",)" } else { ")" });
        }
    }
}

pub(super) fn write_items(text: &mut String, graph: &Graph, items: &[Arg], dialect: Dialect) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        write_arg(text, graph, item, dialect);
    }
}

/// A float as Python's `repr` gives it; infinities and NaN as calls, which need no import.
pub fn python_float(value: f64) -> String {
    if value.is_nan() {
        return "float('nan')".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "float('inf')" } else { "float('-inf')" }.into();
    }
    // Rust gives the shortest digits that round-trip; Python lays them out differently.
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let fixed = format!("{value}");
        return if fixed.contains('.') { fixed } else { format!("{fixed}.0") };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// A string literal; single quotes unless the text holds some and no double ones.
pub fn python_string(value: &str) -> String {
    let quote = if value.contains('\'') && !value.contains('"') { '"' } else { '\'' };
    let mut text = String::with_capacity(value.len() + 2);
    text.push(quote);
    for c in value.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            c if c == quote => {
                text.push('\\');
                text.push(c);
            }
            c if (c as u32) < 0x20 || c as u32 == 0x7f => {
                text.push_str(&format!("\\x{:02x}", c as u32));
            }
            c => text.push(c),
        }
    }
    text.push(quote);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_look_like_python() {
        for (value, text) in [
            (1.0, "1.0"),
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
            (-3.4028234663852886e38, "-3.4028234663852886e+38"),
            (1e16, "1e+16"),
            (123456789012345.0, "123456789012345.0"),
            (-0.0, "-0.0"),
            (f64::NEG_INFINITY, "float('-inf')"),
        ] {
            assert_eq!(python_float(value), text);
        }
    }

    #[test]
    fn strings_are_quoted_as_python_would() {
        assert_eq!(python_string("node 'ge'"), "\"node 'ge'\"");
        assert_eq!(python_string("both ' and \""), "'both \\' and \"'");
        assert_eq!(python_string("a\\b\n"), "'a\\\\b\\n'");
    }
}
