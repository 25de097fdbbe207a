//! Timed calls, made by the worker on contents that it makes from staged draws.

use super::frames::Frame;
use super::graph::{TorchGraph, answer};
use super::wire;
use super::wire::Outgoing;
use crate::engine::{
    Called, Compared, Content, Costs, Doubtful, EngineError, RunOptions, Side, Staged, Turn, Value,
};
use serde_json::{Value as Json, json};

/// Both graphs on the candidate's draws.
pub(super) struct StagedGraphs<'a> {
    pub(super) candidate: &'a TorchGraph,
    /// The number of eager's graph.
    pub(super) eager: u64,
    pub(super) options: RunOptions,
}

impl StagedGraphs<'_> {
    fn ask(&self, mut message: Json, out: &Outgoing, calls: usize) -> Result<Frame, EngineError> {
        let graph = self.candidate;
        message["staged"] = json!(graph.id);
        message["seed"] = json!(self.options.seed);
        let limit = graph.limit(&self.options).saturating_mul(u32::try_from(calls).unwrap_or(1));
        graph.with(|worker, plans| answer(worker, message, &out.parts, limit, plans))
    }

    fn number(&self, side: Side) -> u64 {
        match side {
            Side::Eager => self.eager,
            Side::Candidate => self.candidate.id,
        }
    }

    fn turn(&self, turn: &Turn, out: &mut Outgoing) -> Result<Json, EngineError> {
        let content = match &turn.content {
            Content::Given(values) => json!({ "inputs": self.candidate.inputs(values, out)? }),
            Content::Rolled { draw, by } => json!({ "draw": draw, "by": by }),
        };
        Ok(json!({
            "graph": self.number(turn.side),
            "is_candidate": turn.side == Side::Candidate,
            "number": turn.number,
            "content": content,
            "level": turn.level,
        }))
    }
}

impl Staged for StagedGraphs<'_> {
    fn calls(&mut self, turns: &[Turn]) -> Result<Vec<Called>, EngineError> {
        let mut out = Outgoing::default();
        let described = turns.iter().map(|turn| self.turn(turn, &mut out));
        let described = described.collect::<Result<Vec<Json>, EngineError>>()?;
        let message = json!({ "call": "calls", "turns": described });
        let frame = self.ask(message, &out, turns.len())?;
        let list = |key: &str| frame.message.get(key).and_then(Json::as_array);
        let (Some(seconds), Some(compared)) = (list("seconds"), list("compared")) else {
            return Err(self.candidate.host.garbled());
        };
        if seconds.len() != turns.len() || compared.len() != turns.len() {
            return Err(self.candidate.host.garbled());
        }
        let called = seconds.iter().zip(compared).map(|(seconds, compared)| {
            Some(Called { seconds: seconds.as_f64()?, compared: read_compared(compared)? })
        });
        called.collect::<Option<_>>().ok_or_else(|| self.candidate.host.garbled())
    }

    fn doubtful(&mut self) -> Result<Option<Doubtful>, EngineError> {
        let frame = self.ask(json!({ "call": "doubtful" }), &Outgoing::default(), 1)?;
        let Some(number) = frame.message.get("number").and_then(Json::as_u64) else {
            return Ok(None);
        };
        let tensors = |key: &str| -> Option<Vec<Value>> {
            let entries = frame.message.get(key)?.as_array()?;
            let tensor = |entry: &Json| wire::tensor(entry.as_object()?, &frame.bytes);
            entries.iter().map(|entry| tensor(entry).map(Value::Tensor)).collect()
        };
        match (tensors("eager"), tensors("candidate")) {
            (Some(eager), Some(candidate)) => Ok(Some(Doubtful { number, eager, candidate })),
            _ => Err(self.candidate.host.garbled()),
        }
    }

    fn costs(&mut self, side: Side) -> Result<Costs, EngineError> {
        let message = json!({ "call": "costs", "graph": self.number(side) });
        let frame = self.ask(message, &Outgoing::default(), 1)?;
        let seconds = |key: &str| frame.message.get(key).and_then(Json::as_f64);
        Ok(Costs { host: seconds("host"), device: seconds("device"), cold: seconds("cold") })
    }
}

/// How the worker says that outputs compare: nothing, a level, `wrong`, or the number of a changed input.
fn read_compared(found: &Json) -> Option<Option<Compared>> {
    if found.is_null() {
        return Some(None);
    }
    let level = found.get("right_from").and_then(Json::as_i64).and_then(|t| i32::try_from(t).ok());
    let input = found.get("input_changed").and_then(Json::as_u64);
    Some(Some(match (level, input) {
        (Some(level), _) => Compared::RightFrom(level),
        (None, Some(input)) => Compared::InputChanged(usize::try_from(input).ok()?),
        (None, None) => found.get("wrong").map(|_| Compared::Wrong)?,
    }))
}
