//! What timed and stressed calls are called with: values that no earlier call had, in memory of their own.
//!
//! Small inputs are drawn anew for every call. Large ones are one of the draws, each tensor rolled by a secret number of
//! places: that costs one pass over memory, and a call can neither know the content nor have met it before. Both sides are
//! called on every content, eager always after the candidate: when the candidate runs, what it must give does not exist
//! anywhere yet.

use super::failure::harness_failure;
use crate::secret::{Dice, Secret};
use crate::verdict::{Verdict, VerdictKind};
use passnet_engine::native::Result as TensorResult;
use passnet_engine::native::folder::InputDrawer;
use passnet_engine::{Content, Side, Value};
use std::collections::VecDeque;

/// Inputs of at most so many elements in all are drawn anew.
const DRAWN_ELEMENTS: usize = 1 << 13;

/// Makes contents.
#[derive(Debug)]
pub(super) struct Contents<'a> {
    drawer: &'a InputDrawer,
    draws: &'a [Vec<Value>],
    /// Which inputs have only one value.
    fixed: Vec<bool>,
    dice: Dice,
    is_small: bool,
}

impl<'a> Contents<'a> {
    pub(super) fn new(
        drawer: &'a InputDrawer,
        draws: &'a [Vec<Value>],
        secret: &Secret,
        purpose: &str,
    ) -> Self {
        let tensors = draws[0].iter().filter_map(Value::as_tensor);
        Contents {
            drawer,
            draws,
            fixed: drawer.is_fixed(),
            dice: secret.dice(purpose),
            is_small: tensors.map(|tensor| tensor.numel()).sum::<usize>() <= DRAWN_ELEMENTS,
        }
    }

    pub(super) fn next(&mut self) -> Result<Content, Box<Verdict>> {
        if self.is_small {
            let drawn = self.drawer.draw(self.dice.number());
            return drawn.map(Content::Given).map_err(|error| {
                Box::new(Verdict::new(VerdictKind::ReferenceFail).because(error.to_string()))
            });
        }
        let draw = self.dice.below(self.draws.len());
        let by = self.draws[draw].iter().zip(&self.fixed).map(|(value, is_fixed)| match value {
            Value::Tensor(tensor) if !is_fixed => self.dice.below(tensor.numel()),
            _ => 0,
        });
        Ok(Content::Rolled { draw, by: by.collect() })
    }

    /// The content's values, in memory that nothing else uses.
    pub(super) fn make(&self, content: &Content) -> Result<Vec<Value>, Box<Verdict>> {
        let rolled = |(value, by): (&Value, usize)| match value {
            Value::Tensor(tensor) => tensor.rolled(by).map(Value::Tensor),
            other => Ok(other.clone()),
        };
        let made: TensorResult<Vec<Value>> = match content {
            Content::Given(values) => values.iter().map(|value| rolled((value, 0))).collect(),
            Content::Rolled { draw, by } => {
                self.draws[*draw].iter().zip(by.iter().copied()).map(rolled).collect()
            }
        };
        made.map_err(harness_failure)
    }
}

/// Who is called on which content. Eager is one content behind the candidate, so that neither side finds the inputs of
/// the other in the caches, and what the candidate must give is computed only after it has been called.
#[derive(Debug)]
pub(super) struct Schedule<'a> {
    pub(super) contents: Contents<'a>,
    /// Contents that the candidate has been called on and eager has not, with their numbers.
    waiting: VecDeque<(u64, Content)>,
    next: u64,
}

impl<'a> Schedule<'a> {
    pub(super) fn new(contents: Contents<'a>) -> Schedule<'a> {
        Schedule { contents, waiting: VecDeque::new(), next: 0 }
    }

    /// Who goes first changes, so that neither always finds the caches as the other left them.
    pub(super) fn order(round: usize) -> [Side; 2] {
        match round.is_multiple_of(2) {
            true => [Side::Eager, Side::Candidate],
            false => [Side::Candidate, Side::Eager],
        }
    }

    /// The content of the next call of a side, and its number.
    pub(super) fn turn(&mut self, side: Side) -> Result<(u64, Content), Box<Verdict>> {
        let waiting = match side {
            Side::Eager => self.waiting.pop_front(),
            Side::Candidate => None,
        };
        if let Some(waiting) = waiting {
            return Ok(waiting);
        }
        let new = (self.next, self.contents.next()?);
        self.next += 1;
        if side == Side::Candidate {
            self.waiting.push_back(new.clone());
        }
        Ok(new)
    }

    /// Whether the candidate's last calls are still to be held against eager's.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
}
