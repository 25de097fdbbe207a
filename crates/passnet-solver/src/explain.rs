//! What was fused, why it should pay, and what was measured: `explain.json` beside a solution.

use crate::analysis::Piece;
use crate::analysis::groups::Left;
use crate::emit::Choice;
use crate::graph_family::GraphFamily;
use passnet_engine::Engine;
use passnet_graph::NodeId;
use passnet_graph::infer::Value;
use passnet_graph::ops::Class;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The explanation of a whole solution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// Digest of everything the solution depends on.
    pub key: String,
    /// The name of the task.
    pub task: String,
    /// The passes that were kept, in order.
    pub passes: Vec<PassExplanation>,
    /// Passes that were tried and not kept, with the reason.
    pub dropped: Vec<Dropped>,
    /// Nodes that stay in the graph.
    pub left: Vec<LeftNode>,
    /// Graphs that could not be read.
    pub unreadable: Vec<String>,
    /// Whether any pass beats leaving the graph alone, where that was measured.
    pub wins: Option<bool>,
    /// The same in words.
    pub outcome: String,
    /// The speed-up of whole graphs with all passes, where that was measured.
    #[serde(rename = "whole")]
    pub whole_graphs: Vec<WholeGraph>,
    /// How long the solver worked on it.
    pub seconds: f64,
}

/// What one pass does, and what is known of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PassExplanation {
    /// The name of its file, without the ending.
    pub name: String,
    /// What was fused, by the graph's names.
    pub nodes: Vec<String>,
    /// Their operations.
    pub operations: Vec<String>,
    /// What the kernel's loops look like.
    pub kernel: String,
    /// Whether there is no kernel, and eager computes nothing here either.
    #[serde(rename = "neutral")]
    pub passthrough: bool,
    /// Elements that one program holds at a time.
    pub tile: usize,
    /// Groups of 32 lanes that work on a program.
    pub warps: usize,
    /// Graphs of the task the pass is written for.
    pub graphs: usize,
    /// What the cost model says.
    pub estimate: Estimate,
    /// Speed-up of the fused piece alone over eager, measured while tuning.
    pub measured_speedup: Option<f64>,
    /// Share of the memory's speed that the piece reached.
    pub roofline: Option<f64>,
}

/// How a graph of the task did with all passes, in a short race.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WholeGraph {
    /// Its path in the task.
    pub graph: String,
    /// Its speed-up over eager.
    pub speedup: f64,
}

/// A pass that was tried and not kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dropped {
    /// What it was called.
    pub name: String,
    /// Why it was not kept.
    pub reason: String,
}

/// A node that stays in the graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeftNode {
    /// Its name in the graph.
    pub node: String,
    /// What it computes.
    pub operation: String,
    /// Why no kernel computes it.
    pub reason: String,
}

/// The cost model: bytes and launches, for the largest graph of a family.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Bytes that eager moves, one operation at a time.
    pub eager_bytes: f64,
    /// Bytes that the kernel moves.
    pub fused_bytes: f64,
    /// Kernels that eager starts.
    pub eager_launches: usize,
    /// Arithmetic operations.
    pub operations: f64,
    /// What these say of the speed-up over eager.
    pub expected_speedup: f64,
}

/// How fast this machine moves memory and starts work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Bytes that a large copy reads and writes in a second.
    pub bytes_per_second: f64,
    /// What starting a kernel costs.
    pub seconds_per_launch: f64,
    /// Of a GPU: a kernel with fewer programs leaves some of them idle.
    pub multiprocessors: usize,
}

/// As many as large GPUs have.
const USUAL_MULTIPROCESSORS: usize = 132;

impl Rates {
    /// What the engine's device reaches on a few megabytes.
    pub fn measure(engine: &dyn Engine) -> Rates {
        const BYTES: u64 = 64 << 20;
        // Where nobody can tell, bytes are as good as free and launches decide.
        let copy = engine.copy_seconds(BYTES).unwrap_or(f64::MIN_POSITIVE);
        // Eager's own cost of a step, measured on tiny graphs of the native engine.
        Rates {
            bytes_per_second: BYTES as f64 / copy,
            seconds_per_launch: 2e-6,
            multiprocessors: USUAL_MULTIPROCESSORS,
        }
    }

    fn seconds(&self, bytes: f64, launches: usize) -> f64 {
        bytes / self.bytes_per_second + launches as f64 * self.seconds_per_launch
    }
}

/// Bytes of a node's value in the largest graph.
fn bytes(values: &[Value]) -> f64 {
    let tensors = values.iter().filter_map(Value::as_tensor);
    let sizes = tensors.map(|tensor| tensor.elements() as f64 * tensor.dtype.size() as f64);
    sizes.fold(0.0, f64::max)
}

pub(crate) fn estimate(piece: &Piece, rates: &Rates) -> Estimate {
    let mut eager_bytes = 0.0;
    let mut launches = 0;
    let mut operations = 0.0;
    for (id, call) in piece.graph.calls() {
        let Ok(bound) = call.bind() else { continue };
        let free = matches!(bound.class(), Class::View | Class::Scalar | Class::Random);
        if free {
            continue;
        }
        launches += 1;
        eager_bytes += bytes(piece.values(id));
        call.for_each_input(|input| eager_bytes += bytes(piece.values(input)));
        operations += bytes(piece.values(id)) / 4.0;
    }
    let params = piece.graph.ids().take(piece.params.len()).map(|id| bytes(piece.values(id)));
    let outputs = piece.outputs.iter().map(|id| bytes(piece.values(*id)));
    let fused_bytes: f64 = params.chain(outputs).sum();
    let launches = launches.max(1);
    let eager_bytes = eager_bytes.max(fused_bytes);
    Estimate {
        eager_bytes,
        fused_bytes,
        eager_launches: launches,
        operations,
        expected_speedup: rates.seconds(eager_bytes, launches) / rates.seconds(fused_bytes, 1),
    }
}

/// Explains one pass.
pub fn pass(
    name: &str,
    family: &GraphFamily,
    (members, piece): (&BTreeSet<NodeId>, &Piece),
    kernel: &str,
    choice: Choice,
    rates: &Rates,
) -> PassExplanation {
    let graph = family.graph();
    PassExplanation {
        name: name.to_string(),
        nodes: members.iter().map(|id| graph.node(*id).name.to_string()).collect(),
        operations: members
            .iter()
            .filter_map(|id| graph.call(*id)?.op())
            .map(|op| op.name().to_string())
            .collect(),
        kernel: kernel.to_string(),
        passthrough: false,
        tile: choice.tile,
        warps: choice.warps,
        graphs: family.recorded().len(),
        estimate: estimate(piece, rates),
        measured_speedup: None,
        roofline: None,
    }
}

/// Explains a pass that hands back a view or its argument.
pub fn passthrough_pass(
    name: &str,
    family: &GraphFamily,
    nodes: &[NodeId],
    piece: &Piece,
) -> PassExplanation {
    let graph = family.graph();
    let operations = nodes.iter().filter_map(|node| graph.call(*node)?.op());
    PassExplanation {
        name: name.to_string(),
        nodes: nodes.iter().map(|node| graph.node(*node).name.to_string()).collect(),
        operations: operations.map(|op| op.name().to_string()).collect(),
        kernel: "none: what eager hands back is handed back".into(),
        passthrough: true,
        tile: 0,
        warps: 0,
        graphs: piece.graphs,
        estimate: Estimate {
            eager_bytes: 0.0,
            fused_bytes: 0.0,
            eager_launches: 0,
            operations: 0.0,
            expected_speedup: 1.0,
        },
        measured_speedup: None,
        roofline: None,
    }
}

pub(crate) fn left(family: &GraphFamily, left: &[Left]) -> Vec<LeftNode> {
    let node = |left: &Left| LeftNode {
        node: family.graph().node(left.node).name.to_string(),
        operation: left.operation.clone(),
        reason: left.reason.clone(),
    };
    left.iter().map(node).collect()
}
