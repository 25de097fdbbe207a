//! The few functions of Python that are evaluated while tracing.

use super::concrete;
use super::value::{Arguments, MAX_ITEMS, Value};
use passnet_graph::Arg;
use passnet_graph::syntax::ast;

const BUILTINS: &[&str] = &[
    "abs",
    "all",
    "any",
    "bool",
    "dict",
    "enumerate",
    "float",
    "getattr",
    "int",
    "len",
    "list",
    "max",
    "min",
    "range",
    "reversed",
    "round",
    "slice",
    "str",
    "sum",
    "tuple",
    "zip",
];

pub(super) fn is_builtin(name: &str) -> bool {
    BUILTINS.contains(&name)
}

/// Builtins that only rearrange, so that graph nodes may stand in their arguments.
pub(super) fn works_on_sequences(path: &str) -> bool {
    matches!(path, "dict" | "enumerate" | "len" | "list" | "reversed" | "slice" | "tuple" | "zip")
}

/// The result of a builtin; `None` if the function is not one of them.
pub(super) fn evaluate<'a>(
    path: &str,
    arguments: &Arguments<'a>,
) -> Option<Result<Value<'a>, &'static str>> {
    if let Some(function) = path.strip_prefix("math.") {
        return math(function, arguments);
    }
    if !is_builtin(path) {
        return None;
    }
    let args = arguments.positional.as_slice();
    let result = match (path, args) {
        ("range", _) => range(args),
        ("slice", _) => slice(args),
        ("len", [Value::Sequence { items, .. }]) => Ok(Value::int(items.len() as i64)),
        ("len", [Value::Dict(items)]) => Ok(Value::int(items.len() as i64)),
        ("tuple", [Value::Sequence { items, .. }]) => Ok(Value::tuple(items.clone())),
        ("list", [Value::Sequence { items, .. }]) => Ok(Value::list(items.clone())),
        ("tuple", []) => Ok(Value::tuple(Vec::new())),
        ("list", []) => Ok(Value::list(Vec::new())),
        ("dict", []) => {
            let items = arguments.keywords.iter();
            let items = items.map(|(k, v)| (Value::Arg(Arg::Str(k.as_str().into())), v.clone()));
            Ok(Value::Dict(items.collect()))
        }
        ("reversed", [Value::Sequence { items, .. }]) => {
            Ok(Value::list(items.iter().rev().cloned().collect()))
        }
        ("enumerate", [Value::Sequence { items, .. }]) => Ok(Value::list(
            items
                .iter()
                .enumerate()
                .map(|(i, item)| Value::tuple(vec![Value::int(i as i64), item.clone()]))
                .collect(),
        )),
        ("zip", _) => zip(args),
        ("bool", [value]) => concrete::truth(value).map(Value::bool).ok_or("this has no value yet"),
        ("any" | "all", [Value::Sequence { items, .. }]) => {
            let mut truths = items.iter().map(|item| concrete::truth(item).unwrap_or(true));
            Ok(Value::bool(if path == "any" { truths.any(|t| t) } else { truths.all(|t| t) }))
        }
        ("int", [Value::Arg(arg)]) => int(arg),
        ("float", [Value::Arg(Arg::Str(text))]) => text
            .trim()
            .parse()
            .map(|v| Value::Arg(Arg::Float(v)))
            .map_err(|_| "this is not a number"),
        ("float", [Value::Arg(arg)]) => {
            arg.as_float().map(|v| Value::Arg(Arg::Float(v))).ok_or("this is not a number")
        }
        ("str", [Value::Arg(Arg::Str(text))]) => Ok(Value::Arg(Arg::Str(text.clone()))),
        ("str", [Value::Arg(Arg::Int(value))]) => {
            Ok(Value::Arg(Arg::Str(value.to_string().into())))
        }
        ("abs", [Value::Arg(Arg::Int(value))]) => {
            value.checked_abs().map(Value::int).ok_or("the result does not fit in 64 bits")
        }
        ("abs", [Value::Arg(Arg::Float(value))]) => Ok(Value::Arg(Arg::Float(value.abs()))),
        ("round", [Value::Arg(arg)]) => match arg.as_float() {
            Some(value) => int(&Arg::Float(value.round_ties_even())),
            None => Err("this is not a number"),
        },
        ("sum", [Value::Sequence { items, .. }]) => items
            .iter()
            .try_fold(Value::int(0), |sum, item| concrete::binary(ast::Operator::Add, &sum, item)),
        ("min" | "max", [Value::Sequence { items, .. }]) => extreme(items, path == "max"),
        ("min" | "max", items) => extreme(items, path == "max"),
        _ => Err("this builtin cannot take these arguments here"),
    };
    Some(result)
}

fn range<'a>(args: &[Value<'a>]) -> Result<Value<'a>, &'static str> {
    let mut numbers = [0; 3];
    for (slot, arg) in numbers.iter_mut().zip(args) {
        *slot = match arg {
            Value::Arg(arg) => arg.as_int().ok_or("`range` takes integers")?,
            _ => return Err("`range` takes integers"),
        };
    }
    let (start, stop, step) = match args.len() {
        1 => (0, numbers[0], 1),
        2 => (numbers[0], numbers[1], 1),
        3 => (numbers[0], numbers[1], numbers[2]),
        _ => return Err("`range` takes one to three integers"),
    };
    if step == 0 {
        return Err("the step of `range` is zero");
    }
    let mut items = Vec::new();
    let mut value = start;
    while if step > 0 { value < stop } else { value > stop } {
        if items.len() >= MAX_ITEMS {
            return Err("this range is too long to trace");
        }
        items.push(Value::int(value));
        value = value.saturating_add(step);
    }
    Ok(Value::list(items))
}

fn slice<'a>(args: &[Value<'a>]) -> Result<Value<'a>, &'static str> {
    let mut parts = args.iter().map(|arg| arg.to_arg().map_err(|_| "a slice takes numbers"));
    let mut next = || parts.next().unwrap_or(Ok(Arg::None));
    let parts = match args.len() {
        1 => [Arg::None, next()?, Arg::None],
        2 | 3 => [next()?, next()?, next()?],
        _ => return Err("`slice` takes one to three arguments"),
    };
    Ok(Value::Arg(Arg::Slice(Box::new(parts))))
}

fn zip<'a>(args: &[Value<'a>]) -> Result<Value<'a>, &'static str> {
    let mut columns = Vec::with_capacity(args.len());
    for arg in args {
        match arg {
            Value::Sequence { items, .. } => columns.push(items),
            _ => return Err("`zip` takes sequences here"),
        }
    }
    let length = columns.iter().map(|items| items.len()).min().unwrap_or(0);
    let row = |i: usize| Value::tuple(columns.iter().map(|items| items[i].clone()).collect());
    Ok(Value::list((0..length).map(row).collect()))
}

fn int<'a>(arg: &Arg) -> Result<Value<'a>, &'static str> {
    match arg {
        Arg::Float(value) if value.is_finite() && value.abs() < 9e18 => {
            Ok(Value::int(value.trunc() as i64))
        }
        Arg::Str(text) => text.trim().parse().map(Value::int).map_err(|_| "this is not an integer"),
        other => other.as_int().map(Value::int).ok_or("this is not a number that fits in 64 bits"),
    }
}

fn extreme<'a>(items: &[Value<'a>], largest: bool) -> Result<Value<'a>, &'static str> {
    let op = if largest { ast::CmpOp::Gt } else { ast::CmpOp::Lt };
    let mut items = items.iter();
    let first = items.next().ok_or("an empty sequence has no extreme")?;
    items
        .try_fold(first, |best, item| match concrete::compare(op, item, best)? {
            true => Some(item),
            false => Some(best),
        })
        .cloned()
        .ok_or("these values cannot be compared")
}

fn math<'a>(function: &str, arguments: &Arguments<'a>) -> Option<Result<Value<'a>, &'static str>> {
    let numbers: Option<Vec<f64>> = arguments
        .positional
        .iter()
        .map(|value| value.to_arg().ok().and_then(|arg| arg.as_float()))
        .collect();
    let result = match (function, numbers.as_deref()) {
        (_, None) => return Some(Err("module `math` takes numbers, not tensors")),
        ("sqrt", Some([x])) if *x >= 0.0 => x.sqrt(),
        ("exp", Some([x])) => x.exp(),
        ("log", Some([x])) if *x > 0.0 => x.ln(),
        ("log2", Some([x])) if *x > 0.0 => x.log2(),
        ("pow", Some([x, y])) => x.powf(*y),
        ("fabs", Some([x])) => x.abs(),
        ("ceil", Some([x])) => return Some(int(&Arg::Float(x.ceil()))),
        ("floor", Some([x])) => return Some(int(&Arg::Float(x.floor()))),
        ("prod", _) => return None,
        _ => return Some(Err("this function of `math` cannot take these arguments here")),
    };
    Some(Ok(Value::Arg(Arg::Float(result))))
}
