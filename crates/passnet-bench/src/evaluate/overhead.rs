//! Where the harness's own time goes: everything that is not a timed call.

use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Seconds of each stage of an evaluation, timed calls left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Overhead {
    /// Reading and rewriting, then planning and drawing inputs side by side.
    pub prepare: f64,
    /// Making extreme inputs.
    pub stress: f64,
    /// Comparing, kernels under watch and other sizes, side by side.
    pub look: f64,
    /// Around the timed calls: fresh inputs, checked outputs, intervals.
    pub around_calls: f64,
}

impl Overhead {
    /// The stages by name, in the order they run.
    pub fn stages(&self) -> [(&'static str, f64); 4] {
        [
            ("preparing and drawing inputs", self.prepare),
            ("extreme inputs", self.stress),
            ("comparing, watched kernels and other sizes", self.look),
            ("around timed calls", self.around_calls),
        ]
    }

    /// Of all stages.
    pub fn total(&self) -> f64 {
        self.stages().iter().map(|(_, seconds)| seconds).sum()
    }
}

impl std::iter::Sum for Overhead {
    fn sum<I: Iterator<Item = Overhead>>(all: I) -> Overhead {
        all.fold(Overhead::default(), |sum, one| Overhead {
            prepare: sum.prepare + one.prepare,
            stress: sum.stress + one.stress,
            look: sum.look + one.look,
            around_calls: sum.around_calls + one.around_calls,
        })
    }
}

/// Does work and adds its seconds to a stage.
pub(super) fn timed<R>(stage: &mut f64, work: impl FnOnce() -> R) -> R {
    let started = Instant::now();
    let result = work();
    *stage += started.elapsed().as_secs_f64();
    result
}
