//! Runs of neighbouring elementwise steps, to be done in one pass over memory.
//!
//! A group replaces its steps when the run reaches the first of them and all operands suit (one float type, one shape).
//! Otherwise the steps run one by one, as if there were no group.

use super::step::{Argument, Operation, Step, Work};
use crate::engine::{Precision, RunOptions, Value};
use crate::native::dispatch::{Args, Context, Fusible, classify};
use crate::native::error::Result;
use crate::native::ops::norm;
use crate::native::ops::pointwise::chain::{Chain, Function, Link, Source};
use crate::native::tensor::{Scalar, Tensor};
use passnet_graph::DType;
use passnet_graph::ops::Op;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;

/// Longer runs are cut: their registers would leave the first-level cache.
const MOST_LINKS: usize = 24;

/// Neighbouring steps as one chain.
#[derive(Debug)]
pub(super) struct FusedSteps {
    pub(super) first: usize,
    pub(super) length: usize,
    chain: Chain,
    inputs: Vec<Input>,
    /// What each node that is still needed afterwards holds.
    results: Vec<(u32, Held)>,
    last_uses: Box<[u32]>,
}

/// What a chain reads.
#[derive(Debug, Clone, PartialEq)]
enum Input {
    Node(u32),
    /// The factor (or the addend) of a batch normalisation: mean, variance, weight, bias and eps.
    Statistics {
        nodes: [Option<u32>; 4],
        eps: f64,
        addend: bool,
    },
}

/// What a node holds after the chain has run.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Held {
    /// The same as another node.
    Node(u32),
    Output(usize),
}

/// A Python object while a group is built: what it holds now.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Content {
    Outside(u32),
    Link(usize),
}

struct Builder {
    first: usize,
    length: usize,
    inputs: Vec<Input>,
    links: Vec<(Function, SmallVec<[Operand; 3]>)>,
    /// Node to object.
    objects: BTreeMap<u32, usize>,
    contents: Vec<Content>,
}

#[derive(Debug, Clone, Copy)]
enum Operand {
    Input(usize),
    Link(usize),
    Constant(f64),
}

/// All groups of a program, in order.
pub(super) fn find_groups(steps: &[Step], precision: Precision) -> Vec<FusedSteps> {
    let context = Context::new(precision, &RunOptions::default());
    let mut groups = Vec::new();
    let mut builder = Builder::new(0);
    for (index, step) in steps.iter().enumerate() {
        let kind = fusible(step, &context);
        if let Some(kind) = kind
            && builder.links.len() < MOST_LINKS
            && builder.add(step, kind)
        {
            continue;
        }
        groups.extend(builder.finish(steps));
        builder = Builder::new(index);
        if kind.is_none_or(|kind| !builder.add(step, kind)) {
            builder = Builder::new(index + 1);
        }
    }
    groups.extend(builder.finish(steps));
    groups
}

fn operation(step: &Step) -> Option<&Operation> {
    match &step.work {
        Work::Operation(operation) => Some(operation),
        Work::Wrapper(_) => None,
    }
}

fn fusible(step: &Step, context: &Context) -> Option<Fusible> {
    let operation = operation(step)?;
    let values: SmallVec<[Cow<'_, Value>; 8]> = step
        .arguments
        .iter()
        .map(|place| match place {
            Argument::Constant(value) => Cow::Borrowed(value),
            _ => Cow::Owned(Value::Object),
        })
        .collect();
    classify(&Args {
        op: operation.op,
        signature: operation.signature,
        values: &values,
        context,
        in_place: operation.in_place,
        dying: 0,
        wrote: Cell::new(false),
    })
}

impl Builder {
    fn new(first: usize) -> Self {
        Builder {
            first,
            length: 0,
            inputs: Vec::new(),
            links: Vec::new(),
            objects: BTreeMap::new(),
            contents: Vec::new(),
        }
    }

    fn input(&mut self, input: Input) -> usize {
        self.inputs.iter().position(|known| *known == input).unwrap_or_else(|| {
            self.inputs.push(input);
            self.inputs.len() - 1
        })
    }

    /// The object a node stands for.
    fn object(&mut self, node: u32) -> usize {
        if let Some(object) = self.objects.get(&node) {
            return *object;
        }
        self.contents.push(Content::Outside(node));
        self.objects.insert(node, self.contents.len() - 1);
        self.contents.len() - 1
    }

    fn node_operand(&mut self, node: u32) -> Operand {
        let object = self.object(node);
        match self.contents[object] {
            Content::Link(link) => Operand::Link(link),
            Content::Outside(node) => Operand::Input(self.input(Input::Node(node))),
        }
    }

    fn operand(&mut self, place: &Argument) -> Option<Operand> {
        match place {
            Argument::Node(node) => Some(self.node_operand(*node)),
            Argument::Constant(Value::Number(number)) => Some(Operand::Constant(number.to_f64())),
            _ => None,
        }
    }

    /// Appends a step, or says that it does not fit.
    fn add(&mut self, step: &Step, kind: Fusible) -> bool {
        let target = match step.arguments.first() {
            Some(Argument::Node(node)) => Some(*node),
            _ => None,
        };
        if kind == Fusible::Same {
            let Some(node) = target else { return false };
            let object = self.object(node);
            self.objects.insert(step.target as u32, object);
            self.length += 1;
            return true;
        }
        // Writing into a tensor from outside is not for a chain, whose outputs are new.
        let in_place = operation(step).is_some_and(|operation| operation.in_place);
        let object = match (in_place, target) {
            (false, _) => None,
            (true, Some(node)) => match self.objects.get(&node) {
                Some(object) if matches!(self.contents[*object], Content::Link(_)) => Some(*object),
                _ => return false,
            },
            (true, None) => return false,
        };
        let Some((function, operands)) = self.link(step, kind) else { return false };
        self.links.push((function, operands));
        let content = Content::Link(self.links.len() - 1);
        let object = match object {
            Some(object) => {
                self.contents[object] = content;
                object
            }
            None => {
                self.contents.push(content);
                self.contents.len() - 1
            }
        };
        self.objects.insert(step.target as u32, object);
        self.length += 1;
        true
    }

    fn link(&mut self, step: &Step, kind: Fusible) -> Option<(Function, SmallVec<[Operand; 3]>)> {
        let arguments = &step.arguments;
        // Nothing may be noted of a step that does not join.
        let reads = if matches!(kind, Fusible::Binary(_)) { 2 } else { 1 };
        if !arguments.get(..reads)?.iter().all(is_operand) {
            return None;
        }
        let mut operands: SmallVec<[Operand; 3]> = SmallVec::new();
        let function = match kind {
            Fusible::Unary(op) => {
                operands.push(self.operand(arguments.first()?)?);
                Function::Unary(op)
            }
            Fusible::Power(exponent) => {
                operands.push(self.operand(arguments.first()?)?);
                Function::Power(exponent)
            }
            Fusible::Binary(op) => {
                let (a, b) = (self.operand(arguments.first()?)?, self.operand(arguments.get(1)?)?);
                operands.extend(if step.op() == Some(Op::Rsub) { [b, a] } else { [a, b] });
                Function::Binary(op)
            }
            Fusible::BatchNorm => {
                let nodes =
                    ["running_mean", "running_var", "weight", "bias"].map(|name| {
                        match step.argument(name) {
                            Some(Argument::Node(node)) => Some(*node),
                            _ => None,
                        }
                    });
                // Statistics that a link of this group has just written are not to be read from outside.
                if nodes.iter().flatten().any(|node| self.objects.contains_key(node)) {
                    return None;
                }
                let Some(Argument::Constant(Value::Number(eps))) = step.argument("eps") else {
                    return None;
                };
                operands.push(self.operand(arguments.first()?)?);
                for addend in [false, true] {
                    let input = Input::Statistics { nodes, eps: eps.to_f64(), addend };
                    operands.push(Operand::Input(self.input(input)));
                }
                Function::MultiplyAdd
            }
            Fusible::Same => return None,
        };
        Some((function, operands))
    }

    /// The group, where a single pass saves anything.
    fn finish(self, steps: &[Step]) -> Option<FusedSteps> {
        if self.links.len() < 2 {
            return None;
        }
        let steps = &steps[self.first..self.first + self.length];
        let mut last_uses: Vec<u32> =
            steps.iter().flat_map(|step| step.last_uses.iter().copied()).collect();
        last_uses.sort_unstable();
        let mut outputs: Vec<usize> = Vec::new();
        let mut results = Vec::new();
        for step in steps {
            let node = step.target as u32;
            if last_uses.binary_search(&node).is_ok() {
                continue;
            }
            let held = match self.contents[self.objects[&node]] {
                Content::Outside(node) => Held::Node(node),
                Content::Link(link) => Held::Output(
                    outputs.iter().position(|known| *known == link).unwrap_or_else(|| {
                        outputs.push(link);
                        outputs.len() - 1
                    }),
                ),
            };
            results.push((node, held));
        }
        Some(FusedSteps {
            first: self.first,
            length: self.length,
            chain: allocate(&self.links, &outputs),
            inputs: self.inputs,
            results,
            last_uses: last_uses.into(),
        })
    }
}

/// A tensor, or a number that does not make the result complex.
fn is_operand(place: &Argument) -> bool {
    match place {
        Argument::Node(_) => true,
        Argument::Constant(Value::Number(number)) => !matches!(number, Scalar::Complex(..)),
        _ => false,
    }
}

/// Gives every link a register, used again once nothing reads it any more.
fn allocate(links: &[(Function, SmallVec<[Operand; 3]>)], outputs: &[usize]) -> Chain {
    let mut last_read: Vec<usize> = (0..links.len()).collect();
    for (at, (_, operands)) in links.iter().enumerate() {
        for operand in operands {
            if let Operand::Link(link) = operand {
                last_read[*link] = at;
            }
        }
    }
    for output in outputs {
        last_read[*output] = usize::MAX;
    }
    let mut free: Vec<usize> = Vec::new();
    let mut registers = 0;
    let mut place: Vec<usize> = Vec::with_capacity(links.len());
    let mut chain = Vec::with_capacity(links.len());
    for (at, (function, operands)) in links.iter().enumerate() {
        let register = free.pop().unwrap_or_else(|| {
            registers += 1;
            registers - 1
        });
        place.push(register);
        let sources = operands.iter().map(|operand| match operand {
            Operand::Input(input) => Source::Input(*input),
            Operand::Link(link) => Source::Register(place[*link]),
            Operand::Constant(value) => Source::Constant(*value),
        });
        chain.push(Link { function: *function, operands: sources.collect(), register });
        for link in 0..=at {
            if last_read[link] == at {
                free.push(place[link]);
            }
        }
    }
    let outputs = outputs.iter().map(|link| place[*link]).collect();
    Chain { links: chain, registers, outputs }
}

impl FusedSteps {
    /// The one float type of all tensors that the group reads.
    fn dtype(&self, values: &[Value]) -> Option<DType> {
        let mut common = None;
        for input in &self.inputs {
            if let Input::Node(node) = input {
                let dtype = values[*node as usize].as_tensor()?.dtype();
                if !dtype.is_float() || common.is_some_and(|known| known != dtype) {
                    return None;
                }
                common = Some(dtype);
            }
        }
        common
    }

    /// Runs the group's steps in one pass; false where they must run one by one.
    pub(super) fn run(&self, values: &mut [Value], precision: Precision) -> Result<bool> {
        let Some(dtype) = self.dtype(values) else { return Ok(false) };
        if precision == Precision::Double && dtype != DType::Float64 {
            return Ok(false);
        }
        let mut inputs: SmallVec<[Tensor; 8]> = SmallVec::new();
        for input in &self.inputs {
            inputs.push(match input {
                Input::Node(node) => match &values[*node as usize] {
                    Value::Tensor(tensor) => tensor.clone(),
                    _ => return Ok(false),
                },
                Input::Statistics { nodes, eps, addend } => {
                    let [mean, var, weight, bias] =
                        nodes.map(|node| node.and_then(|node| values[node as usize].as_tensor()));
                    let rank = inputs.iter().map(Tensor::ndim).max().unwrap_or(0);
                    let (Some(mean), Some(var)) = (mean, var) else { return Ok(false) };
                    let given = norm::Given { mean, var, weight, bias, eps: *eps };
                    match norm::channel_table(&given, rank, dtype, *addend)? {
                        Some(table) => table,
                        None => return Ok(false),
                    }
                }
            });
        }
        let Some(outputs) = self.chain.run(&inputs, dtype)? else { return Ok(false) };
        for (node, held) in &self.results {
            values[*node as usize] = match held {
                Held::Node(same) => values[*same as usize].clone(),
                Held::Output(output) => Value::Tensor(outputs[*output].clone()),
            };
        }
        drop(inputs);
        for &dead in &self.last_uses {
            values[dead as usize] = Value::None;
        }
        Ok(true)
    }
}
