//! The arguments of a call as tensor functions take them.

use crate::engine::{Precision, RunOptions, Value};
use crate::native::error::{Result, TensorError, bail, ensure, err};
use crate::native::random::Generator;
use crate::native::tensor::layout::Dims;
use crate::native::tensor::{Arg, Scalar, Tensor};
use passnet_graph::DType;
use passnet_graph::ops::{Op, Signature};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::cell::{Cell, RefCell, RefMut};
use std::time::Instant;

/// Integers of an argument: dimensions, sizes, steps.
pub(crate) type Ints = SmallVec<[i64; 6]>;

/// What all nodes of one run share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) precision: Precision,
    seed: u64,
    /// Made when something is drawn: seeding it takes longer than many a graph.
    generator: RefCell<Option<Box<Generator>>>,
    /// How deep vmap is nested.
    pub(crate) nesting: Cell<i64>,
    /// When a pass's kernels must be done.
    pub(crate) deadline: Option<Instant>,
}

impl Context {
    pub(crate) fn new(precision: Precision, options: &RunOptions) -> Self {
        Context {
            precision,
            seed: options.seed,
            generator: RefCell::new(None),
            nesting: Cell::new(0),
            deadline: options.time_limit.and_then(|limit| Instant::now().checked_add(limit)),
        }
    }

    /// The generator that all nodes draw from.
    pub(crate) fn generator(&self) -> RefMut<'_, Generator> {
        let seeded = || Box::new(Generator::new(self.seed));
        RefMut::map(self.generator.borrow_mut(), |it| &mut **it.get_or_insert_with(seeded))
    }
}

/// A call's arguments, one per parameter of the signature.
#[derive(Debug)]
pub(crate) struct Args<'a> {
    pub(crate) op: Op,
    pub(crate) signature: &'static Signature,
    pub(crate) values: &'a [Cow<'a, Value>],
    pub(crate) context: &'a Context,
    /// The spelling asks for the result in the first argument.
    pub(crate) in_place: bool,
    /// Parameters whose values nothing needs afterwards.
    pub(crate) dying: u64,
    /// Set by a function that has written into the first argument itself.
    pub(crate) wrote: Cell<bool>,
}

static NONE: Value = Value::None;

impl<'a> Args<'a> {
    pub(crate) fn value(&self, name: &str) -> &Value {
        self.signature.position(name).and_then(|index| self.values.get(index)).map_or(&NONE, |v| v)
    }

    pub(crate) fn first(&self) -> &Value {
        self.values.first().map_or(&NONE, |value| value)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.signature.position(name).is_some()
    }

    pub(crate) fn tensor(&self, name: &str) -> Result<&Tensor> {
        match self.value(name) {
            Value::Tensor(tensor) => Ok(tensor),
            other => Err(wrong_type(name, "Tensor", other)),
        }
    }

    /// The first parameter, whatever it is called.
    pub(crate) fn input(&self) -> Result<&Tensor> {
        match self.first() {
            Value::Tensor(tensor) => Ok(tensor),
            other => Err(wrong_type("input", "Tensor", other)),
        }
    }

    pub(crate) fn optional_tensor(&self, name: &str) -> Result<Option<&Tensor>> {
        match self.value(name) {
            Value::None => Ok(None),
            Value::Tensor(tensor) => Ok(Some(tensor)),
            other => Err(wrong_type(name, "Tensor", other)),
        }
    }

    /// A sequence of tensors, or one tensor alone.
    pub(crate) fn tensors(&self, name: &str) -> Result<Vec<Tensor>> {
        fn collect(name: &str, value: &Value, into: &mut Vec<Tensor>) -> Result<()> {
            match value {
                Value::Tensor(tensor) => into.push(tensor.clone()),
                Value::Sequence(items) => {
                    for item in items.iter() {
                        collect(name, item, into)?;
                    }
                }
                other => return Err(wrong_type(name, "tuple of Tensors", other)),
            }
            Ok(())
        }
        let mut tensors = Vec::new();
        collect(name, self.value(name), &mut tensors)?;
        Ok(tensors)
    }

    /// A tensor or a number.
    pub(crate) fn operand(&self, name: &str) -> Result<Arg> {
        as_operand(name, self.value(name))
    }

    pub(crate) fn optional_operand(&self, name: &str) -> Result<Option<Arg>> {
        match self.value(name) {
            Value::None => Ok(None),
            value => as_operand(name, value).map(Some),
        }
    }

    /// A number; a tensor of one element counts as one.
    pub(crate) fn number(&self, name: &str) -> Result<Scalar> {
        match self.value(name) {
            Value::Number(number) => Ok(*number),
            Value::Tensor(tensor) => tensor.item(),
            other => Err(wrong_type(name, "number", other)),
        }
    }

    pub(crate) fn float(&self, name: &str) -> Result<f64> {
        self.number(name).map(Scalar::to_f64)
    }

    pub(crate) fn optional_float(&self, name: &str) -> Result<Option<f64>> {
        match self.value(name) {
            Value::None => Ok(None),
            _ => self.float(name).map(Some),
        }
    }

    pub(crate) fn int(&self, name: &str) -> Result<i64> {
        as_int(name, self.value(name))
    }

    pub(crate) fn optional_int(&self, name: &str) -> Result<Option<i64>> {
        match self.value(name) {
            Value::None => Ok(None),
            value => as_int(name, value).map(Some),
        }
    }

    pub(crate) fn size(&self, name: &str) -> Result<usize> {
        as_size(name, self.int(name)?)
    }

    /// An integer or a sequence of integers.
    pub(crate) fn ints(&self, name: &str) -> Result<Ints> {
        let mut ints = Ints::new();
        collect_ints(name, self.value(name), &mut ints)?;
        Ok(ints)
    }

    pub(crate) fn optional_ints(&self, name: &str) -> Result<Option<Ints>> {
        match self.value(name) {
            Value::None => Ok(None),
            _ => self.ints(name).map(Some),
        }
    }

    pub(crate) fn sizes(&self, name: &str) -> Result<Dims> {
        self.ints(name)?.iter().map(|size| as_size(name, *size)).collect()
    }

    /// One number per spatial dimension; a single one stands for all.
    pub(crate) fn spatial(&self, name: &str, count: usize) -> Result<Vec<usize>> {
        let sizes = self.sizes(name)?;
        match sizes.len() {
            1 => Ok(vec![sizes[0]; count]),
            len if len == count => Ok(sizes.to_vec()),
            len => bail!(Value, "`{name}` must be one int or {count} ints, got {len} of them"),
        }
    }

    pub(crate) fn flag(&self, name: &str) -> Result<bool> {
        truth(self.value(name))
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        match self.value(name) {
            Value::Text(text) | Value::Constant(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn dtype(&self, name: &str) -> Option<DType> {
        match self.value(name) {
            Value::Dtype(dtype) => Some(*dtype),
            _ => None,
        }
    }

    /// A named type as this run's precision reads it.
    pub(crate) fn precise(&self, dtype: DType) -> DType {
        self.context.precision.of(dtype)
    }

    pub(crate) fn default_float(&self) -> DType {
        self.context.precision.default_float()
    }

    /// The tensor an operation that writes is to write into: the input itself where the spelling says so, else a copy.
    pub(crate) fn written(&self) -> Result<Tensor> {
        let input = self.input()?;
        if self.in_place {
            self.wrote.set(true);
            return Ok(input.clone());
        }
        input.copy()
    }

    /// Whether the result is to be written into a tensor given as `out`.
    pub(crate) fn has_out(&self) -> bool {
        !matches!(self.value("out"), Value::None)
    }

    /// Whether the first argument's memory is free for the result: nothing else will look at it.
    pub(crate) fn may_reuse_input(&self) -> bool {
        self.dying & 1 == 1
            && matches!(self.first(), Value::Tensor(tensor)
                if tensor.is_sole_owner() && tensor.is_contiguous())
    }
}

pub(crate) fn wrong_type(name: &str, expected: &str, found: &Value) -> TensorError {
    err!(DType, "argument `{name}` must be a {expected}, not {}", found.type_name())
}

pub(crate) fn as_operand(name: &str, value: &Value) -> Result<Arg> {
    match value {
        Value::Tensor(tensor) => Ok(Arg::Tensor(tensor.clone())),
        Value::Number(number) => Ok(Arg::Scalar(*number)),
        other => Err(wrong_type(name, "Tensor or a number", other)),
    }
}

pub(crate) fn as_int(name: &str, value: &Value) -> Result<i64> {
    match value {
        Value::Number(Scalar::Int(value)) => Ok(*value),
        Value::Number(Scalar::Bool(value)) => Ok(i64::from(*value)),
        Value::Tensor(tensor) if tensor.numel() == 1 && !tensor.dtype().is_float() => {
            tensor.item().map(Scalar::to_i64)
        }
        other => Err(wrong_type(name, "int", other)),
    }
}

fn as_size(name: &str, value: i64) -> Result<usize> {
    ensure!(value >= 0, Value, "`{name}` must not be negative, got {value}");
    Ok(value as usize)
}

fn collect_ints(name: &str, value: &Value, into: &mut Ints) -> Result<()> {
    match value {
        Value::Sequence(items) => {
            // `f(*sizes)` may be given one computed sequence: `x.repeat(sizes)`.
            let items = match &items[..] {
                [Value::Sequence(inner)] => inner,
                _ => items,
            };
            for item in items.iter() {
                match item {
                    Value::Sequence(_) => return Err(wrong_type(name, "tuple of ints", item)),
                    item => into.push(as_int(name, item)?),
                }
            }
        }
        value => into.push(as_int(name, value)?),
    }
    Ok(())
}

/// Python's truth of a value.
pub(crate) fn truth(value: &Value) -> Result<bool> {
    Ok(match value {
        Value::Number(number) => !number.is_zero(),
        Value::Tensor(tensor) => !tensor.item()?.is_zero(),
        Value::Sequence(items) => !items.is_empty(),
        Value::Text(text) => !text.is_empty(),
        Value::None => false,
        _ => true,
    })
}
