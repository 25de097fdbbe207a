//! The loop over steps.

use super::compile::Program;
use super::step::{Argument, Operation, Step, Work};
use crate::engine::{EngineError, ErrorKind, Precision, RunOptions, Value};
use crate::native::dispatch::{self, Args, Context};
use crate::native::error::{Result, TensorError, bail};
use crate::native::tensor::{Budget, Scalar, Tensor};
use passnet_graph::ops::Class;
use passnet_kernel::check::Finding;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Watches a run node by node.
pub trait Observer {
    /// Whether to take the time of every node.
    const ACTIVE: bool;

    /// Called after each step.
    fn node(&mut self, step: &Step, time: &NodeTime<'_>);

    /// Whether nothing after this step is of interest, nor what it gives: it is shown with its arguments and not run.
    fn ends_at(&self, _: &Step) -> bool {
        false
    }
}

/// What one node did.
#[derive(Debug)]
pub struct NodeTime<'a> {
    /// How long the step took.
    pub elapsed: Duration,
    /// What it got.
    pub arguments: &'a [Cow<'a, Value>],
    /// What it gave.
    pub result: &'a Value,
}

/// Nobody watches.
impl Observer for () {
    const ACTIVE: bool = false;

    fn node(&mut self, _: &Step, _: &NodeTime<'_>) {}
}

/// Looks at every wrapper's kernels.
#[derive(Debug)]
pub(super) struct Checker {
    /// Where the last wrapper's result would go.
    last: Option<usize>,
    findings: Vec<Finding>,
    error: Option<EngineError>,
}

impl Checker {
    pub(super) fn new(program: &Program) -> Checker {
        let is_wrapper = |step: &&Step| matches!(step.work, Work::Wrapper(_));
        let last = program.steps.iter().rfind(is_wrapper).map(|step| step.target);
        Checker { last, findings: Vec::new(), error: None }
    }

    pub(super) fn findings(self) -> std::result::Result<Vec<Finding>, EngineError> {
        self.error.map_or(Ok(self.findings), Err)
    }
}

impl Observer for Checker {
    const ACTIVE: bool = true;

    fn node(&mut self, step: &Step, time: &NodeTime<'_>) {
        let Work::Wrapper(wrapper) = &step.work else { return };
        match wrapper.check(time.arguments) {
            Ok(findings) => self.findings.extend(findings),
            Err(error) => {
                self.error.get_or_insert_with(|| located(step, &error));
            }
        }
    }

    fn ends_at(&self, step: &Step) -> bool {
        self.last == Some(step.target)
    }
}

impl Program {
    /// Runs the graph and shows every node to `observer`.
    pub fn run_observed<O: Observer>(
        &self,
        inputs: &[Value],
        options: &RunOptions,
        observer: &mut O,
    ) -> std::result::Result<Vec<Value>, EngineError> {
        self.run_within(&Budget::new(options.memory_limit), inputs, options, observer)
    }

    /// Runs the graph with a budget of the caller's, which then tells how much memory the run took.
    pub fn run_within<O: Observer>(
        &self,
        budget: &Arc<Budget>,
        inputs: &[Value],
        options: &RunOptions,
        observer: &mut O,
    ) -> std::result::Result<Vec<Value>, EngineError> {
        budget.scope(|| {
            let mut values = self.bind_inputs(inputs)?;
            let context = Context::new(self.precision, options);
            let mut groups = self.groups.iter().peekable();
            let mut next = 0;
            while let Some(step) = self.steps.get(next) {
                // Whoever watches nodes wants to see each of them.
                if !O::ACTIVE
                    && let Some(group) = groups.next_if(|group| group.first == next)
                {
                    let last = &self.steps[next + group.length - 1];
                    let fused = group.run(&mut values, self.precision);
                    if fused.map_err(|error| located(last, &error))? {
                        next += group.length;
                        continue;
                    }
                }
                next += 1;
                let result = step
                    .run(&values, &context, self.maps, observer)
                    .map_err(|error| located(step, &error))?;
                if observer.ends_at(step) {
                    return Ok(Vec::new());
                }
                values[step.target] = result;
                for &dead in &step.last_uses {
                    values[dead as usize] = Value::None;
                }
            }
            Ok(self.outputs.iter().map(|output| output.read(&values).into_owned()).collect())
        })
    }

    /// One value per node; a symbolic size given as a tensor becomes a number, floats become what the precision says.
    fn bind_inputs(&self, inputs: &[Value]) -> std::result::Result<Vec<Value>, EngineError> {
        if inputs.len() != self.placeholders.len() {
            return Err(EngineError::graph(
                ErrorKind::Arguments,
                format!("the graph takes {} inputs, got {}", self.placeholders.len(), inputs.len()),
            ));
        }
        let mut values = Vec::with_capacity(self.size);
        for (placeholder, input) in self.placeholders.iter().zip(inputs) {
            let value = if placeholder.unused {
                Ok(Value::None)
            } else {
                bind_input(input, placeholder.is_symbol, self.precision)
            };
            values.push(value.map_err(|error| EngineError {
                kind: ErrorKind::from(&error),
                node: placeholder.name.to_string(),
                operation: "placeholder".into(),
                line: 0,
                message: error.to_string(),
            })?);
        }
        values.resize(self.size, Value::None);
        Ok(values)
    }
}

fn bind_input(input: &Value, is_symbol: bool, precision: Precision) -> Result<Value> {
    match input {
        Value::Tensor(tensor) if is_symbol => Ok(Value::Number(tensor.item()?)),
        Value::Tensor(tensor) => Ok(Value::Tensor(tensor.to_dtype(precision.of(tensor.dtype()))?)),
        other => Ok(other.clone()),
    }
}

fn located(step: &Step, error: &TensorError) -> EngineError {
    let message = error.to_string();
    let kind = match error {
        TensorError::Value(message) if message.starts_with(dispatch::ASSERTION) => {
            ErrorKind::Assertion
        }
        error => ErrorKind::from(error),
    };
    EngineError {
        kind,
        node: step.name.to_string(),
        operation: step.operation.to_string(),
        line: step.line,
        message,
    }
}

impl Argument {
    fn read<'a>(&'a self, values: &'a [Value]) -> Cow<'a, Value> {
        match self {
            Argument::Node(node) => Cow::Borrowed(&values[*node as usize]),
            Argument::Constant(value) => Cow::Borrowed(value),
            Argument::Sequence(parts) => {
                Cow::Owned(Value::sequence(parts.iter().map(|part| part.read(values).into_owned())))
            }
            Argument::Slice(parts) => {
                let [a, b, c] = &**parts;
                let parts = [a, b, c].map(|part| part.read(values).into_owned());
                Cow::Owned(Value::Slice(parts.into()))
            }
        }
    }
}

impl Step {
    fn run<O: Observer>(
        &self,
        values: &[Value],
        context: &Context,
        maps: bool,
        observer: &mut O,
    ) -> Result<Value> {
        let arguments: SmallVec<[Cow<'_, Value>; 8]> =
            self.arguments.iter().map(|place| place.read(values)).collect();
        let start = O::ACTIVE.then(Instant::now);
        let result = match &self.work {
            _ if observer.ends_at(self) => Value::None,
            Work::Operation(operation) => operation.run(&arguments, context, maps, self.dying)?,
            Work::Wrapper(wrapper) => wrapper.run(&arguments, context)?,
        };
        let result = if context.precision == Precision::Double { widened(result)? } else { result };
        if let Some(start) = start {
            let elapsed = start.elapsed();
            observer.node(self, &NodeTime { elapsed, arguments: &arguments, result: &result });
        }
        Ok(result)
    }
}

impl Operation {
    fn run(
        &self,
        arguments: &[Cow<'_, Value>],
        context: &Context,
        maps: bool,
        dying: u64,
    ) -> Result<Value> {
        let args = Args {
            op: self.op,
            signature: self.signature,
            values: arguments,
            context,
            in_place: self.in_place,
            dying,
            wrote: Cell::new(false),
        };
        if maps && dispatch::vmap::concerns(&args) {
            dispatch::vmap::apply(&args)
        } else {
            self.finish(&args, (self.function)(&args)?)
        }
    }

    /// Writes the result where an in-place spelling or `out=` wants it.
    fn finish(&self, args: &Args<'_>, result: Value) -> Result<Value> {
        if let Some(out) = self.out {
            let (Value::Tensor(target), Value::Tensor(result)) = (&*args.values[out], &result)
            else {
                return Ok(result);
            };
            write(target, result)?;
            return Ok(Value::Tensor(target.clone()));
        }
        if !self.in_place || args.wrote.get() || self.op.class() == Class::View {
            return Ok(result);
        }
        match (args.values.first().map(Cow::as_ref), &result) {
            (Some(Value::Tensor(target)), Value::Tensor(result)) => {
                write(target, result)?;
                Ok(Value::Tensor(target.clone()))
            }
            // `n += 1` on a Python number makes a new number.
            _ => Ok(result),
        }
    }
}

/// Stores a result into an existing tensor: the shape must be its own, the type castable to its own.
fn write(target: &Tensor, result: &Tensor) -> Result<()> {
    if target.shape() != result.shape() {
        bail!(
            Shape,
            "output with shape {:?} doesn't match the broadcast shape {:?}",
            target.shape(),
            result.shape()
        );
    }
    if result.dtype().kind() > target.dtype().kind() {
        bail!(
            DType,
            "result type {} can't be cast to the desired output type {}",
            result.dtype(),
            target.dtype()
        );
    }
    target.copy_from(result)
}

/// In double precision every float is float64, whatever type an operation of integers chose.
fn widened(value: Value) -> Result<Value> {
    Ok(match value {
        Value::Tensor(tensor) => {
            let wide = Precision::Double.of(tensor.dtype());
            Value::Tensor(tensor.to_dtype(wide)?)
        }
        Value::Sequence(items) => {
            let items = items.iter().cloned().map(widened).collect::<Result<Vec<_>>>()?;
            Value::sequence(items)
        }
        Value::Dtype(dtype) => Value::Dtype(Precision::Double.of(dtype)),
        Value::Number(number @ Scalar::Float(_)) => Value::Number(number),
        other => other,
    })
}
