//! The arguments of a call as rules ask for them: tensors, sizes, numbers, with torch's conversions.

use super::dim::Dim;
use super::problem::{Inferred, Problem};
use super::promote::Operand;
use super::scope::Scope;
use super::value::{Scalar, Shape, TensorType, Value};
use crate::dtype::DType;
use crate::graph::Arg;
use crate::ops::{Bound, Op, Value as Slot};
use crate::view::List;
use smallvec::SmallVec;
use std::borrow::Cow;

pub(super) struct Args<'a, 'g> {
    pub(super) bound: &'a Bound<'g>,
    pub(super) scope: &'a Scope,
}

/// Nesting of literals beyond this is refused instead of recursed into.
const MAX_NESTING: usize = 32;

impl<'a, 'g: 'a> Args<'a, 'g> {
    pub(super) fn op(&self) -> Op {
        self.bound.op
    }

    /// A parameter's value.
    pub(super) fn value(&self, name: &str) -> Inferred<Cow<'a, Value>> {
        self.lookup(self.bound.arg(name))
    }

    /// What an argument stands for; not inferred values stop the rule.
    pub(super) fn lookup(&self, arg: &'a Arg) -> Inferred<Cow<'a, Value>> {
        self.resolve(arg, 0)
    }

    fn resolve(&self, arg: &'a Arg, depth: usize) -> Inferred<Cow<'a, Value>> {
        if depth > MAX_NESTING {
            return Err(Problem::invalid("a literal is nested too deeply"));
        }
        let sequence = |items: &'a [Arg]| -> Inferred<Value> {
            let items = items
                .iter()
                .map(|item| self.resolve(item, depth + 1).map(Cow::into_owned))
                .collect::<Inferred<_>>()?;
            Ok(Value::Sequence(items))
        };
        Ok(Cow::Owned(match arg {
            Arg::Node(id) => {
                let value = self.scope.value(*id);
                if let Value::Unknown(reason) = value {
                    return Err(Problem::Unknown(reason.clone()));
                }
                return Ok(Cow::Borrowed(value));
            }
            Arg::None => Value::None,
            Arg::Bool(value) => Value::bool(*value),
            Arg::Int(value) => Value::int(*value),
            Arg::Float(value) => Value::float(*value),
            Arg::Str(text) => Value::Str(text.clone()),
            Arg::Dtype(dtype) => Value::Dtype(*dtype),
            Arg::Device(device) => Value::Device(Some(*device)),
            Arg::Ellipsis => Value::Ellipsis,
            Arg::Constant(name) => Value::Constant(name.clone()),
            Arg::Tuple(items) | Arg::List(items) => sequence(items)?,
            Arg::Slice(parts) => match sequence(&parts[..])? {
                Value::Sequence(items) => match <[Value; 3]>::try_from(items) {
                    Ok(parts) => Value::Slice(Box::new(parts)),
                    Err(_) => Value::None,
                },
                other => other,
            },
        }))
    }

    pub(super) fn tensor(&self, name: &str) -> Inferred<&'a TensorType> {
        self.optional_tensor(name)?.ok_or_else(|| {
            Problem::invalid(format!("argument `{name}` must be a Tensor, not None"))
        })
    }

    /// The first parameter, whatever it is called.
    pub(super) fn first_tensor(&self) -> Inferred<&'a TensorType> {
        match self.bound.signature.params.first() {
            Some(param) => self.tensor(param.name),
            None => Err(Problem::invalid("it takes no arguments")),
        }
    }

    pub(super) fn optional_tensor(&self, name: &str) -> Inferred<Option<&'a TensorType>> {
        let arg = self.bound.arg(name);
        if arg.is_none() {
            return Ok(None);
        }
        match self.lookup(arg)? {
            Cow::Borrowed(Value::Tensor(tensor)) => Ok(Some(tensor)),
            Cow::Borrowed(Value::None) => Ok(None),
            other => Err(Problem::invalid(format!(
                "argument `{name}` must be a Tensor, not {}",
                other.type_name()
            ))),
        }
    }

    /// A sequence of tensors; `None` stays `None`.
    pub(super) fn optional_tensors(&self, name: &str) -> Inferred<Vec<Option<&'a TensorType>>> {
        let mut tensors = Vec::new();
        for arg in self.items(name) {
            if arg.is_none() {
                tensors.push(None);
                continue;
            }
            match self.lookup(arg)? {
                Cow::Borrowed(Value::Tensor(tensor)) => tensors.push(Some(tensor)),
                Cow::Borrowed(Value::None) => tensors.push(None),
                Cow::Borrowed(Value::Sequence(items)) => {
                    for item in items {
                        match item {
                            Value::Tensor(tensor) => tensors.push(Some(tensor)),
                            Value::None => tensors.push(None),
                            other => return Err(not_a_tensor(name, other)),
                        }
                    }
                }
                other => return Err(not_a_tensor(name, &other)),
            }
        }
        Ok(tensors)
    }

    pub(super) fn tensors(&self, name: &str) -> Inferred<Vec<&'a TensorType>> {
        self.optional_tensors(name)?
            .into_iter()
            .map(|tensor| tensor.ok_or_else(|| not_a_tensor(name, &Value::None)))
            .collect()
    }

    /// A parameter as a list: a sequence's elements, or the value itself.
    fn items(&self, name: &str) -> &'a [Arg] {
        match self.bound.signature.position(name).map(|index| self.bound.values[index]) {
            Some(Slot::Rest(args)) => args,
            Some(Slot::Given(arg)) => arg.as_sequence().unwrap_or(std::slice::from_ref(arg)),
            Some(Slot::Default(arg)) => arg.as_sequence().unwrap_or(std::slice::from_ref(arg)),
            None => &[],
        }
    }

    /// A tensor or a Python number.
    pub(super) fn operand(&self, name: &str) -> Inferred<Cow<'a, Value>> {
        let value = self.value(name)?;
        match &*value {
            Value::Tensor(_) | Value::Scalar(_) => Ok(value),
            other => Err(Problem::invalid(format!(
                "argument `{name}` must be a Tensor or a number, not {}",
                other.type_name()
            ))),
        }
    }

    pub(super) fn int(&self, name: &str) -> Inferred<Dim> {
        self.as_int(&*self.value(name)?, name)
    }

    pub(super) fn optional_int(&self, name: &str) -> Inferred<Option<Dim>> {
        match &*self.value(name)? {
            Value::None => Ok(None),
            value => self.as_int(value, name).map(Some),
        }
    }

    /// An integer or a sequence of integers.
    pub(super) fn ints(&self, name: &str) -> Inferred<Shape> {
        let mut ints = Shape::new();
        for arg in self.items(name) {
            match &*self.lookup(arg)? {
                Value::Sequence(items) => {
                    for item in items {
                        ints.push(self.as_int(item, name)?);
                    }
                }
                value => ints.push(self.as_int(value, name)?),
            }
        }
        Ok(ints)
    }

    /// The values of an integer or a sequence of integers.
    pub(super) fn numbers(&self, name: &str) -> Inferred<List<i64>> {
        Ok(self.ints(name)?.iter().map(|dim| dim.size).collect())
    }

    /// `None` when the parameter is `None` or not one of this overload.
    pub(super) fn optional_ints(&self, name: &str) -> Inferred<Option<Shape>> {
        match self.bound.signature.position(name).map(|index| self.bound.values[index]) {
            None | Some(Slot::Given(Arg::None) | Slot::Default(Arg::None)) => Ok(None),
            Some(Slot::Given(arg)) if matches!(&*self.lookup(arg)?, Value::None) => Ok(None),
            Some(_) => self.ints(name).map(Some),
        }
    }

    /// Spatial parameters: one number stands for all dimensions.
    pub(super) fn spatial(&self, name: &str, count: usize) -> Inferred<Shape> {
        let ints = self.ints(name)?;
        match ints.len() {
            1 => Ok(SmallVec::from_elem(ints[0].clone(), count)),
            len if len == count => Ok(ints),
            len => Err(Problem::invalid(format!(
                "`{name}` must be one int or {count} ints, got {len} of them"
            ))),
        }
    }

    /// A bool; a number counts by its value, an unknown one as false.
    pub(super) fn flag(&self, name: &str) -> Inferred<bool> {
        Ok(match &*self.value(name)? {
            Value::Scalar(number) => number.as_f64().is_some_and(|value| value != 0.0),
            Value::Tensor(tensor) => {
                self.scope.known_scalar(tensor).is_some_and(|value| value != 0.0)
            }
            _ => false,
        })
    }

    /// A number, where its value is known.
    pub(super) fn number(&self, name: &str) -> Inferred<Option<f64>> {
        Ok(match &*self.value(name)? {
            Value::Scalar(number) => number.as_f64(),
            Value::Tensor(tensor) => self.scope.known_scalar(tensor),
            _ => None,
        })
    }

    pub(super) fn dtype(&self, name: &str) -> Inferred<Option<DType>> {
        Ok(match &*self.value(name)? {
            Value::Dtype(dtype) => Some(*dtype),
            _ => None,
        })
    }

    pub(super) fn text(&self, name: &str) -> Inferred<Option<Box<str>>> {
        Ok(match &*self.value(name)? {
            Value::Str(text) | Value::Constant(text) => Some(text.clone()),
            _ => None,
        })
    }

    /// A dimension given as an integer, counted from the end if negative.
    pub(super) fn axis(&self, name: &str, rank: usize) -> Inferred<usize> {
        wrap_axis(self.int(name)?.size, rank)
    }

    /// Like [`Args::axis`], for several distinct dimensions.
    pub(super) fn axes(&self, name: &str, rank: usize) -> Inferred<Option<List<usize>>> {
        let Some(ints) = self.optional_ints(name)? else { return Ok(None) };
        let mut axes: List<usize> = SmallVec::new();
        for int in &ints {
            let axis = wrap_axis(int.size, rank)?;
            if axes.contains(&axis) {
                return Err(Problem::invalid(format!(
                    "dim {axis} appears multiple times in the list of dims"
                )));
            }
            axes.push(axis);
        }
        Ok(Some(axes))
    }

    /// An integer: a Python int or bool, or a tensor with one known integer.
    pub(super) fn as_int(&self, value: &Value, name: &str) -> Inferred<Dim> {
        match value {
            Value::Scalar(number @ (Scalar::Int(_) | Scalar::Bool(_))) => {
                number.as_dim().ok_or_else(|| {
                    Problem::unknown(format!("`{name}` depends on the elements of a tensor"))
                })
            }
            Value::Tensor(tensor) if tensor.elements() == 1 && !tensor.dtype.is_float() => {
                match self.scope.known_scalar(tensor) {
                    Some(value) => Ok(Dim::fixed(value as i64)),
                    None => Err(Problem::unknown(format!(
                        "`{name}` depends on the elements of a tensor"
                    ))),
                }
            }
            other => {
                Err(Problem::invalid(format!("`{name}` must be int, not {}", other.type_name())))
            }
        }
    }
}

fn not_a_tensor(name: &str, value: &Value) -> Problem {
    Problem::invalid(format!("`{name}` must hold Tensors, not {}", value.type_name()))
}

/// `-1` is the last dimension; a 0-d tensor counts as having one.
pub(super) fn wrap_axis(axis: i64, rank: usize) -> Inferred<usize> {
    Ok(crate::view::shape::axis(axis, rank)?)
}

/// The operand view of a tensor or number.
pub(super) fn as_operand(value: &Value) -> Inferred<Operand<'_>> {
    match value {
        Value::Tensor(tensor) => Ok(Operand::Tensor(tensor)),
        Value::Scalar(number) => Ok(Operand::Number(number)),
        other => Err(Problem::invalid(format!(
            "expected a Tensor or a number, not {}",
            other.type_name()
        ))),
    }
}
