//! The curves S(t) and ES(t), graph by graph ("micro" form).
//!
//! S(t) asks how fast the graphs are that are right at tolerance t; a wrong one scores b. ES(t) is the same up to
//! t = 0 and then forgives, class by class, what went wrong: a forgiven failure scores 1, as if never rewritten.

use super::{Parameters, ScoredGraph, geometric_mean};
use crate::tolerance::LOWEST;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// The last level of a curve: one above the number of error classes.
pub const CURVE_HIGHEST: i32 = 4;
/// How many levels a curve has.
pub const CURVE_LEVELS: usize = (CURVE_HIGHEST - LOWEST + 1) as usize;

/// The levels of a curve, strictest first.
pub fn curve_levels() -> impl DoubleEndedIterator<Item = i32> + ExactSizeIterator + Clone {
    // A `RangeInclusive` has no exact size.
    LOWEST..CURVE_HIGHEST + 1
}

/// From t = 1 on nothing is measured any more: what was seen at this level is what is forgiven.
const FROZEN_AT: i32 = 1;

/// One value per level from -10 to 4.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Curve([f64; CURVE_LEVELS]);

impl Curve {
    /// `None` outside the curve's levels.
    pub fn at(&self, t: i32) -> Option<f64> {
        usize::try_from(t.checked_sub(LOWEST)?).ok().and_then(|i| self.0.get(i)).copied()
    }

    /// Levels with their values, strictest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (i32, f64)> + '_ {
        curve_levels().zip(self.0.iter().copied())
    }

    pub(super) fn from_fn(mut value: impl FnMut(i32) -> Option<f64>) -> Option<Self> {
        let mut values = [0.0; CURVE_LEVELS];
        for (slot, t) in values.iter_mut().zip(curve_levels()) {
            *slot = value(t)?;
        }
        Some(Curve(values))
    }
}

/// An object with the levels as keys: `{"-10": 0.1, ..., "4": 1.25}`.
impl Serialize for Curve {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(CURVE_LEVELS))?;
        for (t, value) in self.iter() {
            map.serialize_entry(&t.to_string(), &value)?;
        }
        map.end()
    }
}

/// What one graph adds to S(t).
pub fn graph_speed(scored: &ScoredGraph, t: i32, parameters: Parameters) -> f64 {
    scored.speedup_at(t).map_or(parameters.b, |s| parameters.rectified(s))
}

/// What one graph adds to ES(t).
pub fn graph_error_aware(scored: &ScoredGraph, t: i32, parameters: Parameters) -> f64 {
    match scored.speedup_at(t.min(FROZEN_AT)) {
        Some(speedup) => parameters.rectified(speedup),
        None if scored.class().is_tolerated_at(t) => 1.0,
        None => parameters.b,
    }
}

/// S(t) of a set of graphs; `None` if it is empty.
pub fn speed(scored: &[ScoredGraph], parameters: Parameters) -> Option<Curve> {
    Curve::from_fn(|t| geometric_mean(scored.iter().map(|o| graph_speed(o, t, parameters))))
}

/// ES(t) of a set of graphs; `None` if it is empty.
pub fn error_aware(scored: &[ScoredGraph], parameters: Parameters) -> Option<Curve> {
    Curve::from_fn(|t| geometric_mean(scored.iter().map(|o| graph_error_aware(o, t, parameters))))
}

pub(super) fn frozen(t: i32) -> i32 {
    t.min(FROZEN_AT)
}
