//! Calls that are timed and compared where an engine computes.

use super::error::EngineError;
use super::value::Value;
use passnet_graph::DType;

/// Two graphs whose inputs lie where an engine computes.
pub trait Staged {
    /// Timed calls, one after the other. What the candidate gives for a content is kept until eager is called on the
    /// same content, and then compared with what eager gives.
    fn calls(&mut self, turns: &[Turn]) -> Result<Vec<Called>, EngineError>;

    /// What both sides gave in a call whose outputs differed by more than `Turn::level` allows; the worst of those that
    /// were compared since this was last asked.
    fn doubtful(&mut self) -> Result<Option<Doubtful>, EngineError>;

    /// What a call costs the host and the device, each by itself.
    fn costs(&mut self, side: Side) -> Result<Costs, EngineError>;
}

/// Seconds of one call, taken apart.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Costs {
    /// Until the call returns, its work queued; on a CPU that is all of it.
    pub host: Option<f64>,
    /// The device at work, without the gaps between launches; `None` where it cannot tell.
    pub device: Option<f64>,
    /// The same with nothing of the inputs left in the device's cache.
    pub cold: Option<f64>,
}

/// Whose call it is: that of the graph as it is, or of what is compared with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The graph as it is.
    Eager,
    /// What is compared with it.
    Candidate,
}

/// Of every float type: `rtol` and `atol` of each level of the tolerance ladder, the strictest first.
pub type Tolerances = Vec<(DType, Vec<[f64; 2]>)>;

/// A timed call.
#[derive(Debug, Clone)]
pub struct Turn {
    /// Whose turn it is.
    pub side: Side,
    /// What numbers the content: the candidate's call and eager's call on it have the same number.
    pub number: u64,
    /// What the inputs hold.
    pub content: Content,
    /// Of a call of eager: the strictest level of the tolerance ladder at which the candidate's outputs are compared
    /// with these; `None` where they are not compared.
    pub level: Option<i32>,
}

/// The inputs of a timed call, made outside the clock: values that no earlier call had, in memory of their own.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "fields are what the sentence of their variant names")]
pub enum Content {
    /// These values.
    Given(Vec<Value>),
    /// A draw whose tensors are rolled, each by so many elements of its row-major order.
    Rolled { draw: usize, by: Vec<usize> },
}

/// What one timed call showed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Called {
    /// From before the call until its outputs are there.
    pub seconds: f64,
    /// Of a call of eager that was compared: how the candidate's outputs for the same content were.
    pub compared: Option<Compared>,
}

/// How the candidate's outputs of a timed call compare with eager's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// Right from this level on, and not below.
    RightFrom(i32),
    /// Right at no level, or of another type, shape or number.
    Wrong,
    /// An input is not as eager leaves it.
    InputChanged(usize),
}

/// What both sides gave for one content.
#[derive(Debug)]
pub struct Doubtful {
    /// The number of the call.
    pub number: u64,
    /// What eager gave.
    pub eager: Vec<Value>,
    /// What the candidate gave.
    pub candidate: Vec<Value>,
}
