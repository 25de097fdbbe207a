//! Shape, stride and dtype inference: the type of every intermediate of a graph, without running anything.
//!
//! One rule per operation (`rules`), filed by family as the operation table is. A node that torch would
//! refuse becomes a located [`Failure`]; its dependants become [`Value::Unknown`] and the rest is inferred.
//! PyTorch on meta tensors is the judge: `tests/ops/*.txt` and `python -m passnet.parity shapes`.

mod args;
mod contraction;
mod convert;
mod convolution;
mod creation;
pub mod dim;
mod display;
mod effect;
mod einsum;
mod fourier;
mod indexing;
mod join;
mod known;
mod linalg;
mod loss;
mod movement;
mod normalisation;
mod part;
mod pointwise;
mod problem;
mod promote;
mod recurrent;
mod reduction;
mod report;
mod rules;
mod sampling;
mod scalar;
mod scope;
mod setup;
mod strides;
mod subscript;
mod value;
mod view;

pub use dim::Dim;
pub use problem::Problem;
pub use report::{outline, report};
pub use scope::Guard;
pub use setup::{infer_folder, inputs_from};
pub use value::{Scalar, Shape, Strides, TensorType, Value};

use crate::graph::{Call, Graph, NodeId, NodeKind};
use crate::ops::Class;
use args::Args;
use problem::Inferred;
use scope::Scope;

/// A node that torch would refuse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The call whose type could not be found.
    pub node: NodeId,
    /// The node's name.
    pub name: Box<str>,
    /// Line of `model.py`; 0 for nodes made otherwise.
    pub line: u32,
    /// What torch would say, or what is not known.
    pub message: String,
}

/// The types of a graph's values.
#[derive(Debug)]
pub struct Inference {
    /// One value per node, placeholders included.
    pub values: Vec<Value>,
    /// What the types assume about symbols.
    pub guards: Vec<Guard>,
    /// Calls without a type, and why.
    pub failures: Vec<Failure>,
}

impl Inference {
    /// What is known of a node's value; [`Value::Unknown`] where nothing is.
    pub fn value(&self, id: NodeId) -> &Value {
        &self.values[id.index()]
    }
}

/// The largest tensor that is taken seriously (2^46 elements).
const MAX_ELEMENTS: i64 = 1 << 46;
/// Dimensions of a tensor; torch's own limit in many kernels.
const MAX_RANK: usize = 64;

/// Infers every value of a graph from the values of its placeholders; missing ones are unknown.
pub fn infer(graph: &Graph, inputs: &[Value]) -> Inference {
    infer_with(graph, inputs, |_, _, _| {})
}

/// Like [`infer`], and shows each call to `before` with all values inferred so far, placeholders included, just
/// before it is inferred itself. What `before` changes in the values, the call sees: sizes that are given as
/// placeholders can so be decided on the way.
pub fn infer_with(
    graph: &Graph,
    inputs: &[Value],
    mut before: impl FnMut(NodeId, &Call, &mut [Value]),
) -> Inference {
    let mut scope = Scope::new(graph.nodes().len());
    let mut failures = Vec::new();
    for (index, node) in graph.nodes().iter().enumerate() {
        scope.node = NodeId::new(index);
        let call = match &node.kind {
            NodeKind::Placeholder(_) => {
                let missing = || Value::Unknown(format!("`{}` has no metadata", node.name).into());
                scope.push(inputs.get(index).cloned().unwrap_or_else(missing));
                continue;
            }
            NodeKind::Call(call) => call,
        };
        before(scope.node, call, &mut scope.values);
        match step(&scope, call) {
            Ok(done) => done.record(&mut scope),
            Err(problem) => {
                let reason = match problem {
                    Problem::Unknown(reason) => reason,
                    Problem::Invalid(message) => {
                        failures.push(Failure {
                            node: scope.node,
                            name: node.name.clone(),
                            line: node.line,
                            message: message.to_string(),
                        });
                        format!("`{}`: {message}", node.name).into()
                    }
                };
                scope.push(Value::Unknown(reason));
            }
        }
    }
    let (values, guards) = scope.into_parts();
    Inference { values, guards, failures }
}

/// What a call leaves behind.
enum Done {
    New(Value),
    /// A tensor given as `out` was written.
    Written(TensorType),
    /// The target of an in-place operation; `moved` when its shape changed.
    SameObject {
        tensor: TensorType,
        target: NodeId,
        moved: bool,
    },
}

impl Done {
    fn record(self, scope: &mut Scope) {
        match self {
            Done::New(value) => scope.push(value),
            Done::Written(tensor) => {
                scope.write(tensor.origin);
                scope.push(tensor.into());
            }
            Done::SameObject { tensor, target, moved } => {
                if !moved {
                    scope.write(tensor.origin);
                }
                scope.push_same_object(tensor.into(), target, moved);
            }
        }
    }
}

/// Infers one call.
fn step(scope: &Scope, call: &Call) -> Inferred<Done> {
    if call.op().is_none() {
        return Err(Problem::invalid(format!("unknown operation `{}`", call.target.path())));
    }
    let bound = call.bind().map_err(Problem::invalid)?;
    let args = Args { bound: &bound, scope };
    let mut value = rules::apply(&args)?;
    check_size(&mut value)?;
    if bound.is_in_place() {
        return in_place(&args, value);
    }
    if let Some(target) = args.optional_tensor("out")? {
        return Ok(Done::Written(target.clone()));
    }
    if bound.class() != Class::Effect {
        effect::keep_mapped(&args, &mut value);
    }
    known::fold(&args, &mut value);
    Ok(Done::New(value))
}

/// The result of an in-place operation is its target: the shape may not grow, the dtype stays.
fn in_place(args: &Args, value: Value) -> Inferred<Done> {
    let node = args.bound.mutated().and_then(|arg| arg.as_node());
    let (Some(node), Value::Tensor(result)) = (node, &value) else {
        // `n += 1` on a Python number makes a new number.
        return Ok(Done::New(value));
    };
    let target = args.first_tensor()?;
    let class = args.bound.class();
    if class == Class::View {
        let tensor = TensorType { origin: target.origin, ..result.clone() };
        return Ok(Done::SameObject { tensor, target: node, moved: true });
    }
    if class == Class::Pointwise {
        if target.sizes() != result.sizes() {
            return Err(Problem::invalid(format!(
                "output with shape {} doesn't match the broadcast shape {}",
                strides::describe(&target.shape),
                strides::describe(&result.shape)
            )));
        }
        if !promote::can_cast(result.dtype, target.dtype) {
            return Err(Problem::invalid(format!(
                "result type {} can't be cast to the desired output type {}",
                promote::message_name(result.dtype),
                promote::message_name(target.dtype)
            )));
        }
        if target.shape.iter().zip(&target.strides).any(|(dim, step)| dim.size > 1 && *step == 0) {
            return Err(Problem::invalid(
                "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation.",
            ));
        }
    }
    Ok(Done::SameObject { tensor: target.clone(), target: node, moved: false })
}

fn check_size(value: &mut Value) -> Inferred<()> {
    let mut problem = None;
    value.for_each_tensor_mut(&mut |tensor| {
        if tensor.shape.iter().any(|dim| dim.size < 0) {
            problem = Some("Dimension size must be non-negative");
        } else if tensor.rank() > MAX_RANK {
            problem = Some("the result has more than 64 dimensions");
        } else if tensor.elements() > MAX_ELEMENTS {
            problem = Some("the result has too many elements");
        }
    });
    match problem {
        Some(message) => Err(Problem::invalid(message)),
        None => Ok(()),
    }
}
