//! From a graph to steps: each call bound to its signature, its arguments resolved to places, its dead values listed.

use super::fuse::{FusedSteps, find_groups};
use super::step::{Argument, Operation, Placeholder, Step, Work};
use crate::engine::{EngineError, ErrorKind, Precision, Value};
use crate::native::dispatch::{self};
use crate::native::tensor::Scalar;
use crate::native::wrapper::Wrappers;
use passnet_graph::graph::{Annotation, Replacement};
use passnet_graph::ops::{Class, Op, Value as Bound};
use passnet_graph::{Arg, Call, Graph, Node, NodeId, NodeKind};
use std::sync::Arc;

/// Literals nested deeper than this are refused instead of recursed into.
const MAX_NESTING: usize = 32;

/// A graph ready to run.
#[derive(Debug)]
pub struct Program {
    pub(super) steps: Vec<Step>,
    pub(super) outputs: Vec<Argument>,
    pub(super) placeholders: Vec<Placeholder>,
    /// Places for values: one for each node.
    pub(super) size: usize,
    pub(super) precision: Precision,
    /// Whether vmap occurs, so that every step looks for hidden dimensions.
    pub(super) maps: bool,
    /// Steps that may run as one pass, in order.
    pub(super) groups: Vec<FusedSteps>,
}

impl Program {
    /// Compiles a graph; its replaced nodes call the wrappers given.
    pub fn compile(
        graph: &Graph,
        precision: Precision,
        wrappers: &Wrappers,
    ) -> Result<Self, EngineError> {
        graph.verify().map_err(|why| EngineError::graph(ErrorKind::Arguments, why))?;
        let mut compiler = Compiler {
            precision,
            wrappers,
            latest: (0..graph.nodes().len() as u32).collect(),
            object: (0..graph.nodes().len() as u32).collect(),
        };
        let mut steps = Vec::with_capacity(graph.op_count());
        for (id, call) in graph.calls() {
            let node = graph.node(id);
            let step = compiler.step(id, node, call).map_err(|(kind, message)| EngineError {
                kind,
                node: node.name.to_string(),
                operation: call.target.to_string(),
                line: node.line,
                message,
            })?;
            steps.push(step);
        }
        let outputs = graph
            .outputs
            .iter()
            .map(|output| compiler.place(output, 0))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|(kind, message)| EngineError::graph(kind, message))?;
        let placeholders = graph.placeholders().iter().map(|node| Placeholder {
            name: node.name.clone(),
            is_symbol: matches!(node.kind, NodeKind::Placeholder(Annotation::SymInt)),
            unused: true,
        });
        let mut program = Program {
            maps: steps.iter().any(|step| step.op() == Some(Op::AddBatchDim)),
            placeholders: placeholders.collect(),
            steps,
            outputs,
            size: graph.nodes().len(),
            precision,
            groups: Vec::new(),
        };
        program.find_last_uses();
        if !program.maps {
            program.groups = find_groups(&program.steps, precision);
        }
        Ok(program)
    }

    /// The same program, no operations joined.
    pub fn one_by_one(self) -> Program {
        Program { groups: Vec::new(), ..self }
    }

    /// What is run, in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Whether floats are as the graph says or all float64.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Notes at each step which values nothing later needs.
    fn find_last_uses(&mut self) {
        const KEPT: u32 = u32::MAX;
        let mut last: Vec<Option<u32>> = vec![None; self.size];
        for output in &self.outputs {
            output.for_each_node(&mut |node| last[node as usize] = Some(KEPT));
        }
        for (index, step) in self.steps.iter_mut().enumerate().rev() {
            let mut dead = Vec::new();
            if last[step.target].is_none() {
                dead.push(step.target as u32);
            }
            let mut dying = 0;
            for (position, argument) in step.arguments.iter().enumerate() {
                argument.for_each_node(&mut |node| {
                    let use_ = &mut last[node as usize];
                    if use_.is_none() {
                        *use_ = Some(index as u32);
                        dead.push(node);
                        if position < 64 && matches!(argument, Argument::Node(_)) {
                            dying |= 1 << position;
                        }
                    } else if *use_ == Some(index as u32) {
                        // Used twice by this very step: neither use may reuse the memory.
                        dying = 0;
                    }
                });
            }
            step.last_uses = dead.into();
            step.dying = dying;
        }
        for (placeholder, last) in self.placeholders.iter_mut().zip(&last) {
            placeholder.unused = last.is_none();
        }
    }
}

impl Argument {
    fn for_each_node(&self, visit: &mut impl FnMut(u32)) {
        match self {
            Argument::Node(node) => visit(*node),
            Argument::Constant(_) => {}
            Argument::Sequence(parts) => parts.iter().for_each(|part| part.for_each_node(visit)),
            Argument::Slice(parts) => parts.iter().for_each(|part| part.for_each_node(visit)),
        }
    }
}

type Problem = (ErrorKind, String);

struct Compiler<'a> {
    precision: Precision,
    wrappers: &'a Wrappers,
    /// Where to read a node's value now: in-place view operations (`x.unsqueeze_(0)`) change what earlier nodes that
    /// are the same Python object stand for.
    latest: Vec<u32>,
    /// For every node, the first node that is the same Python object.
    object: Vec<u32>,
}

impl Compiler<'_> {
    fn step(&mut self, id: NodeId, node: &Node, call: &Call) -> Result<Step, Problem> {
        if let Some(replacement) = call.target.replacement() {
            return self.wrapper_step(id, node, call, replacement);
        }
        let Some(op) = call.op() else {
            let message =
                format!("unknown operation `{}` cannot be run by this engine", call.target.path());
            return Err((ErrorKind::Unsupported, message));
        };
        let bound = call.bind().map_err(|why| (ErrorKind::Arguments, why))?;
        let function = dispatch::function_of(op).ok_or_else(|| {
            (ErrorKind::Unsupported, format!("`{}` is not supported yet", op.name()))
        })?;
        let subscripts = matches!(op, Op::GetItem | Op::SetItem);
        let arguments = bound
            .values
            .iter()
            .map(|value| match value {
                Bound::Given(arg @ Arg::List(_)) if subscripts => self.index_list(arg),
                Bound::Given(arg) => self.place(arg, 0),
                Bound::Default(arg) => self.place(arg, 0),
                Bound::Rest(items) => self.sequence(items, 0),
            })
            .collect::<Result<Box<[Argument]>, _>>()?;
        let in_place = bound.is_in_place();
        if in_place && let Some(target) = bound.mutated().and_then(Arg::as_node) {
            self.same_object(id, target, bound.class() == Class::View);
        }
        let out = bound.signature.position("out").filter(|_| !bound.arg("out").is_none());
        let signature = bound.signature;
        let operation = Operation { op, function, signature, in_place, out };
        Ok(self.finish_step(id, node, call, Work::Operation(operation), arguments))
    }

    fn wrapper_step(
        &self,
        id: NodeId,
        node: &Node,
        call: &Call,
        replacement: &Replacement,
    ) -> Result<Step, Problem> {
        if self.precision != Precision::AsWritten {
            let message = "the kernels of a pass compute in the types they name, no others";
            return Err((ErrorKind::Unsupported, message.into()));
        }
        let wrapper = self.wrappers.call(replacement).ok_or_else(|| {
            let message =
                format!("the wrapper of pass `{}` was not given to the engine", replacement.pass);
            (ErrorKind::Unsupported, message)
        })?;
        let arguments = call.args.iter().map(|arg| self.place(arg, 0)).collect::<Result<_, _>>()?;
        Ok(self.finish_step(id, node, call, Work::Wrapper(Box::new(wrapper)), arguments))
    }

    fn finish_step(
        &self,
        id: NodeId,
        node: &Node,
        call: &Call,
        work: Work,
        arguments: Box<[Argument]>,
    ) -> Step {
        Step {
            name: node.name.clone(),
            operation: call.target.to_string().into(),
            line: node.line,
            work,
            arguments,
            target: id.index(),
            last_uses: Box::default(),
            dying: 0,
        }
    }

    /// The result of an in-place operation is its target; a view operation also changes the target's shape.
    fn same_object(&mut self, id: NodeId, target: NodeId, moved: bool) {
        let object = self.object[target.index()];
        self.object[id.index()] = object;
        if moved {
            for (latest, own) in self.latest.iter_mut().zip(&self.object) {
                if *own == object {
                    *latest = id.index() as u32;
                }
            }
        }
    }

    fn place(&self, arg: &Arg, depth: usize) -> Result<Argument, Problem> {
        if depth > MAX_NESTING {
            return Err((ErrorKind::Arguments, "a literal is nested too deeply".into()));
        }
        Ok(Argument::Constant(match arg {
            Arg::Node(id) => return Ok(Argument::Node(self.latest[id.index()])),
            Arg::Tuple(items) | Arg::List(items) => return self.sequence(items, depth),
            Arg::Slice(parts) => {
                let [start, stop, step] = &**parts;
                let parts = [
                    self.place(start, depth + 1)?,
                    self.place(stop, depth + 1)?,
                    self.place(step, depth + 1)?,
                ];
                return Ok(match parts {
                    [Argument::Constant(a), Argument::Constant(b), Argument::Constant(c)] => {
                        Argument::Constant(Value::Slice(Arc::new([a, b, c])))
                    }
                    parts => Argument::Slice(Box::new(parts)),
                });
            }
            Arg::None => Value::None,
            Arg::Bool(value) => Value::bool(*value),
            Arg::Int(value) => Value::int(*value),
            Arg::Float(value) => Value::Number(Scalar::Float(*value)),
            Arg::Str(text) => Value::Text((&**text).into()),
            Arg::Dtype(dtype) => Value::Dtype(self.precision.of(*dtype)),
            Arg::Device(_) => Value::Device,
            Arg::Ellipsis => Value::Ellipsis,
            Arg::Constant(name) => Value::Constant((&**name).into()),
        }))
    }

    /// `x[[0, 2]]` is one index made of a list, not one index per dimension; any other list is read as a tuple.
    fn index_list(&self, arg: &Arg) -> Result<Argument, Problem> {
        let place = self.place(arg, 0)?;
        let is_number = |part: &Arg| matches!(part, Arg::Int(_) | Arg::Bool(_));
        Ok(match place {
            Argument::Constant(list) if arg.parts().iter().all(is_number) => {
                Argument::Constant(Value::sequence([list]))
            }
            place => place,
        })
    }

    fn sequence(&self, items: &[Arg], depth: usize) -> Result<Argument, Problem> {
        let places =
            items.iter().map(|item| self.place(item, depth + 1)).collect::<Result<Vec<_>, _>>()?;
        let constant = |place: &Argument| match place {
            Argument::Constant(value) => Some(value.clone()),
            _ => None,
        };
        Ok(match places.iter().map(constant).collect::<Option<Vec<_>>>() {
            Some(values) => Argument::Constant(Value::sequence(values)),
            None => Argument::Sequence(places.into()),
        })
    }
}
