//! Python's own functions and the `math` module, on sizes.

use super::call_args::CallArgs;
use super::interp::{Interp, Result};
use super::value::Value;
use crate::consts::{self, Const, next_power_of_2};
use passnet_graph::syntax::Ranged;
use passnet_graph::syntax::arithmetic::{self, Number};
use passnet_graph::syntax::ast::{CmpOp, Operator};
use std::cmp::Ordering;

const NAMES: &[&str] = &[
    "len",
    "range",
    "min",
    "max",
    "sum",
    "abs",
    "int",
    "float",
    "bool",
    "str",
    "isinstance",
    "tuple",
    "list",
    "dict",
    "set",
    "zip",
    "enumerate",
    "reversed",
    "sorted",
    "all",
    "any",
    "print",
    "round",
    "divmod",
    "slice",
    "type",
    "ValueError",
    "RuntimeError",
    "NotImplementedError",
    "TypeError",
    "AssertionError",
    "Exception",
    "callable",
    "id",
    "pow",
    "map",
    "filter",
];

pub(super) fn is_builtin(name: &str) -> bool {
    NAMES.contains(&name)
}

impl<'a> Interp<'a> {
    pub(super) fn python_builtin(&mut self, name: &str, args: CallArgs<'a>) -> Result<Value<'a>> {
        let at = args.range;
        match name {
            "print" => {
                if self.notes.len() < 16 {
                    let line = self.line(&at);
                    self.notes.push(format!("line {line}: `print` is ignored"));
                }
                Ok(Value::NONE)
            }
            "len" => match self.first(name, &args)? {
                Value::Tensor(t) => {
                    let size = t.shape.first().map(|&n| Value::int(n));
                    size.ok_or_else(|| self.error(&at, "`len` of a 0-d tensor"))
                }
                value => Ok(Value::int(self.iterate(&at, &value)?.len() as i64)),
            },
            "range" => self.range(&args),
            "min" | "max" => self.extreme(name, &args),
            "abs" | "round" | "int" | "float" | "bool" | "str" => match args.positional.first() {
                Some(value) => self.convert(name, &args, &value.clone()),
                None => Ok(Value::Const(match name {
                    "int" => Const::Int(0),
                    "float" => Const::Float(0.0),
                    "str" => Const::Str(String::new()),
                    _ => Const::Bool(false),
                })),
            },
            "tuple" | "list" | "set" | "reversed" | "sorted" => self.sequence(name, &args),
            "dict" => self.dict(&args),
            "sum" | "all" | "any" => self.folded(name, &args),
            "zip" | "enumerate" => self.paired(name, &args),
            "map" | "filter" => self.mapped(name, &args),
            "divmod" => match &args.positional[..] {
                [a, b] => {
                    let q = self.binary(&at, Operator::FloorDiv, a, b)?;
                    let r = self.binary(&at, Operator::Mod, a, b)?;
                    Ok(Value::tuple([q, r]))
                }
                _ => Err(self.error(&at, "`divmod` takes two numbers")),
            },
            "pow" => match &args.positional[..] {
                [a, b] => self.binary(&at, Operator::Pow, a, b),
                _ => Err(self.error(&at, "`pow` takes two numbers")),
            },
            "isinstance" => self.isinstance(&args),
            "slice" => {
                let mut parts = args.positional.into_iter();
                let (a, b, c) = (parts.next(), parts.next(), parts.next());
                let none = || Value::NONE;
                let parts = match b {
                    None => [none(), a.unwrap_or_else(none), none()],
                    Some(b) => [a.unwrap_or_else(none), b, c.unwrap_or_else(none)],
                };
                Ok(Value::Slice(std::rc::Rc::new(parts)))
            }
            "callable" => Ok(Value::bool(matches!(
                self.first(name, &args)?,
                Value::Function(..) | Value::Lambda(..) | Value::Kernel(_)
            ))),
            _ => Err(self.outside(&at, format!("`{name}` cannot be called in a wrapper"))),
        }
    }

    fn first(&self, name: &str, args: &CallArgs<'a>) -> Result<Value<'a>> {
        let first = args.positional.first().cloned();
        first.ok_or_else(|| self.error(&args.range, format!("`{name}` needs an argument")))
    }

    fn extreme(&mut self, name: &str, args: &CallArgs<'a>) -> Result<Value<'a>> {
        let at = args.range;
        let items = match &args.positional[..] {
            [one] => self.iterate(&at, one)?,
            several => several.to_vec(),
        };
        let op = if name == "min" { CmpOp::Lt } else { CmpOp::Gt };
        let mut best: Option<Const> = None;
        for item in items {
            let Value::Const(c) = item else {
                return Err(self.arithmetic_error(&at, &item));
            };
            let is_better = match &best {
                None => true,
                Some(b) => consts::compare(op, &c, b).map_err(|m| self.error(&at, m))?,
            };
            if is_better {
                best = Some(c);
            }
        }
        best.or_else(|| args.named("default").and_then(|d| self.to_const(&d)))
            .map(Value::Const)
            .ok_or_else(|| self.error(&at, format!("`{name}` of nothing")))
    }

    fn sequence(&mut self, name: &str, args: &CallArgs<'a>) -> Result<Value<'a>> {
        let at = args.range;
        let mut items = match args.positional.first() {
            Some(value) => self.iterate(&at, value)?,
            None => Vec::new(),
        };
        match name {
            "tuple" => return Ok(Value::tuple(items)),
            "set" => return self.new_set(&at, items),
            "reversed" => items.reverse(),
            "sorted" => items = self.sorted(args, items)?,
            _ => {}
        }
        Ok(self.new_list(items))
    }

    fn sorted(&mut self, args: &CallArgs<'a>, items: Vec<Value<'a>>) -> Result<Vec<Value<'a>>> {
        let at = args.range;
        let mut keys: Vec<Const> = Vec::new();
        for item in items {
            let Value::Const(c) = item else {
                return Err(self.arithmetic_error(&at, &item));
            };
            keys.push(c);
        }
        let mut failure = None;
        keys.sort_by(|a, b| {
            match (consts::compare(CmpOp::Lt, a, b), consts::compare(CmpOp::Gt, a, b)) {
                (Ok(true), _) => Ordering::Less,
                (_, Ok(true)) => Ordering::Greater,
                (Err(e), _) => {
                    failure = Some(e);
                    Ordering::Equal
                }
                _ => Ordering::Equal,
            }
        });
        if let Some(e) = failure {
            return Err(self.error(&at, e));
        }
        if args.named("reverse").is_some_and(|r| self.truthy(&at, &r).unwrap_or(false)) {
            keys.reverse();
        }
        Ok(keys.into_iter().map(Value::Const).collect())
    }

    fn dict(&mut self, args: &CallArgs<'a>) -> Result<Value<'a>> {
        let mut items = match args.positional.first() {
            Some(Value::Dict(id)) => self.dicts[id.0].clone(),
            Some(other) => {
                let what = other.describe();
                return Err(self.error(&args.range, format!("cannot make a dict of {what}")));
            }
            None => Vec::new(),
        };
        items.extend(args.named.iter().map(|(k, v)| (Value::str(k.clone()), v.clone())));
        Ok(self.new_dict(items))
    }

    fn folded(&mut self, name: &str, args: &CallArgs<'a>) -> Result<Value<'a>> {
        let at = args.range;
        let value = self.first(name, args)?;
        let items = self.iterate(&at, &value)?;
        if name == "sum" {
            let start = args.positional.get(1).cloned().unwrap_or(Value::int(0));
            return items
                .iter()
                .try_fold(start, |sum, item| self.binary(&at, Operator::Add, &sum, item));
        }
        let mut result = name == "all";
        for item in items {
            let truth = self.truthy(&at, &item)?;
            if truth != (name == "all") {
                result = truth;
            }
        }
        Ok(Value::bool(result))
    }

    fn paired(&mut self, name: &str, args: &CallArgs<'a>) -> Result<Value<'a>> {
        let at = args.range;
        if name == "enumerate" {
            let value = self.first(name, args)?;
            let start = args.positional.get(1).and_then(Value::as_int).unwrap_or(0);
            let items = self.iterate(&at, &value)?.into_iter();
            return Ok(Value::tuple(
                items.zip(start..).map(|(v, i)| Value::tuple([Value::int(i), v])),
            ));
        }
        let mut columns = Vec::new();
        for arg in &args.positional {
            columns.push(self.iterate(&at, arg)?);
        }
        let rows = columns.iter().map(Vec::len).min().unwrap_or(0);
        let row = |i: usize| Value::tuple(columns.iter().map(|c| c[i].clone()));
        Ok(Value::tuple((0..rows).map(row).collect::<Vec<_>>()))
    }

    fn mapped(&mut self, name: &str, args: &CallArgs<'a>) -> Result<Value<'a>> {
        let at = args.range;
        let function = self.first(name, args)?;
        let Some(items) = args.positional.get(1) else {
            return Err(self.error(&at, format!("`{name}` takes a function and a sequence")));
        };
        let mut out = Vec::new();
        for item in self.iterate(&at, items)? {
            let value = self.call_value(&function, CallArgs::of(vec![item.clone()], at))?;
            if name == "map" {
                out.push(value);
            } else if self.truthy(&at, &value)? {
                out.push(item);
            }
        }
        Ok(Value::tuple(out))
    }

    fn range(&mut self, args: &CallArgs<'a>) -> Result<Value<'a>> {
        let mut bounds = Vec::new();
        for arg in &args.positional {
            bounds.push(arg.as_int().ok_or_else(|| {
                self.error(&args.range, format!("`range` takes integers, not {}", arg.describe()))
            })?);
        }
        let (low, high, step) = match bounds[..] {
            [high] => (0, high, 1),
            [low, high] => (low, high, 1),
            [low, high, step] if step != 0 => (low, high, step),
            _ => {
                return Err(self.error(
                    &args.range,
                    "`range` takes one to three integers and a step that is not zero",
                ));
            }
        };
        let mut items = Vec::new();
        let mut i = low;
        while if step > 0 { i < high } else { i > high } {
            if items.len() >= self.limits.items {
                return Err(self.error(&args.range, "range is too long"));
            }
            items.push(Value::int(i));
            i = i.saturating_add(step);
        }
        Ok(Value::tuple(items))
    }

    fn convert(&mut self, name: &str, args: &CallArgs<'a>, value: &Value<'a>) -> Result<Value<'a>> {
        let at = args.range;
        if name == "str" {
            let text = self.text(value);
            return Ok(Value::str(text));
        }
        if name == "bool" {
            return self.truthy(&at, value).map(Value::bool);
        }
        let Value::Const(c) = value else {
            return Err(match value {
                Value::Tensor(_) => {
                    self.outside(&at, "a wrapper cannot read tensor data: it sees shapes only")
                }
                other => self.arithmetic_error(&at, other),
            });
        };
        let number = match c {
            Const::Str(s) => s.trim().parse::<f64>().ok(),
            other => other.as_float(),
        };
        let number =
            number.ok_or_else(|| self.error(&at, format!("`{name}` of {}", value.describe())))?;
        Ok(Value::Const(match (name, c.as_int()) {
            ("float", _) => Const::Float(number),
            ("abs", Some(i)) => Const::Int(i.checked_abs().unwrap_or(i64::MAX)),
            ("abs", None) => Const::Float(number.abs()),
            (_, Some(i)) => Const::Int(i),
            ("int", None) => Const::Int(number as i64),
            _ => match args.positional.get(1).and_then(Value::as_int) {
                Some(digits) => {
                    let scale = 10f64.powi(digits.clamp(-300, 300) as i32);
                    Const::Float((number * scale).round_ties_even() / scale)
                }
                None => Const::Int(number.round_ties_even() as i64),
            },
        }))
    }

    fn isinstance(&mut self, args: &CallArgs<'a>) -> Result<Value<'a>> {
        let at = args.range;
        let [value, types] = &args.positional[..] else {
            return Err(self.error(&at, "`isinstance` takes two arguments"));
        };
        let types = match types {
            Value::Tuple(items) => items.to_vec(),
            other => vec![other.clone()],
        };
        let mut found = false;
        for ty in &types {
            if let Value::Class(class) = ty {
                found |= self.is_of_class(value, *class);
                continue;
            }
            let Value::Path(path) = ty else {
                return Err(self.outside(
                    &at,
                    format!("`isinstance` with {} is not supported", ty.describe()),
                ));
            };
            let matches = match &**path {
                "builtins.int" => matches!(value, Value::Const(Const::Int(_) | Const::Bool(_))),
                "builtins.float" => matches!(value, Value::Const(Const::Float(_))),
                "builtins.bool" => matches!(value, Value::Const(Const::Bool(_))),
                "builtins.str" => matches!(value, Value::Const(Const::Str(_))),
                "builtins.tuple" => matches!(value, Value::Tuple(_)),
                "builtins.list" => matches!(value, Value::List(_)),
                "builtins.dict" => matches!(value, Value::Dict(_)),
                "torch.Tensor" => matches!(value, Value::Tensor(_)),
                "torch.dtype" => matches!(value, Value::DType(_)),
                "torch.Size" => matches!(value, Value::Tuple(_)),
                _ => {
                    return Err(
                        self.outside(&at, format!("`isinstance` with `{path}` is not supported"))
                    );
                }
            };
            found |= matches;
        }
        Ok(Value::bool(found))
    }

    /// `math.*`, and `triton.cdiv` / `triton.next_power_of_2`.
    pub(super) fn math_function(
        &mut self,
        path: &str,
        args: &CallArgs<'a>,
    ) -> Result<Option<Value<'a>>> {
        let at = args.range;
        let ints: Option<Vec<i64>> = args.positional.iter().map(Value::as_int).collect();
        match path {
            "triton.cdiv" => {
                let Some([a, b]) = ints.as_deref() else {
                    return Err(self.error(&at, "`triton.cdiv` takes two integers"));
                };
                let (a, b) = (i128::from(*a), i128::from(*b));
                return match arithmetic::integers(Operator::FloorDiv, a + b - 1, b) {
                    Ok(Number::Int(blocks)) => self.fitting(&at, blocks).map(Some),
                    _ => Err(self.error(&at, "division by zero")),
                };
            }
            "triton.next_power_of_2" => {
                let Some([n]) = ints.as_deref() else {
                    return Err(self.error(&at, "`triton.next_power_of_2` takes an integer"));
                };
                return Ok(Some(Value::int(next_power_of_2(*n))));
            }
            "math.prod" => {
                let value = args.positional.first().cloned().unwrap_or(Value::NONE);
                let mut total = Value::int(1);
                for item in self.iterate(&at, &value)? {
                    total = self.binary(&at, Operator::Mult, &total, &item)?;
                }
                return Ok(Some(total));
            }
            "math.gcd" => {
                let Some([a, b]) = ints.as_deref() else {
                    return Err(self.error(&at, "`math.gcd` takes two integers"));
                };
                let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
                while b != 0 {
                    (a, b) = (b, a % b);
                }
                return self.fitting(&at, i128::from(a)).map(Some);
            }
            _ => {}
        }
        match path.strip_prefix("math.") {
            Some(name) => self.float_function(name, args),
            None => Ok(None),
        }
    }

    /// An integer, where it is one of those that wrappers compute with.
    fn fitting(&self, at: &impl Ranged, value: i128) -> Result<Value<'a>> {
        let fits = i64::try_from(value).map(Value::int);
        fits.map_err(|_| self.error(at, "integer does not fit in 64 bits"))
    }

    /// A function of `math` whose first argument is a float.
    fn float_function(&mut self, name: &str, args: &CallArgs<'a>) -> Result<Option<Value<'a>>> {
        let at = args.range;
        let number = |index: usize| match args.positional.get(index) {
            Some(Value::Const(c)) => c.as_float(),
            _ => None,
        };
        let Some(x) = number(0) else {
            return Err(self.error(&at, format!("`math.{name}` takes a number")));
        };
        let float = |v: f64| Ok(Some(Value::Const(Const::Float(v))));
        match name {
            "ceil" => Ok(Some(Value::int(x.ceil() as i64))),
            "floor" => Ok(Some(Value::int(x.floor() as i64))),
            "trunc" => Ok(Some(Value::int(x.trunc() as i64))),
            "sqrt" => float(x.sqrt()),
            "exp" => float(x.exp()),
            "log2" => float(x.log2()),
            "log10" => float(x.log10()),
            "log" => float(number(1).map_or(x.ln(), |base| x.ln() / base.ln())),
            "pow" => match number(1) {
                Some(y) => float(x.powf(y)),
                None => Err(self.error(&at, "`math.pow` takes two numbers")),
            },
            "sin" => float(x.sin()),
            "cos" => float(x.cos()),
            "tanh" => float(x.tanh()),
            "fabs" => float(x.abs()),
            "isinf" => Ok(Some(Value::bool(x.is_infinite()))),
            "isnan" => Ok(Some(Value::bool(x.is_nan()))),
            _ => Ok(None),
        }
    }
}
