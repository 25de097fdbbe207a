//! ES(t) from aggregated statistics ("macro" form): the same number as the micro form, computed from rates and
//! means instead of graph by graph. Useful as a check, and to score published tables that only give rates.

use super::curve::{Curve, frozen};
use super::{Parameters, ScoredGraph, geometric_mean};
use crate::verdict::ErrorClass;

/// What the macro form knows about the graphs at one level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Statistics {
    /// Geometric mean of the speed-ups of right graphs (1 if there are none).
    pub alpha: f64,
    /// Geometric mean of those below 1 (1 if there are none).
    pub beta: f64,
    /// Share of graphs that are right.
    pub lambda: f64,
    /// Share of right graphs that are slower than eager.
    pub eta: f64,
    /// Shares of the error classes among the failures: accuracy, execution, never forgiven.
    pub pi: [f64; 3],
}

const CLASSES: [ErrorClass; 3] = [ErrorClass::Accuracy, ErrorClass::Execution, ErrorClass::Never];

impl Statistics {
    /// `None` without graphs.
    pub fn at(scored: &[ScoredGraph], t: i32) -> Option<Self> {
        if scored.is_empty() {
            return None;
        }
        let right: Vec<f64> = scored.iter().filter_map(|o| o.speedup_at(t)).collect();
        let slow: Vec<f64> = right.iter().copied().filter(|&s| s < 1.0).collect();
        let failed = (scored.len() - right.len()).max(1) as f64;
        let pi = CLASSES.map(|class| {
            let of_class = |o: &&ScoredGraph| o.speedup_at(t).is_none() && o.class() == class;
            scored.iter().filter(of_class).count() as f64 / failed
        });
        Some(Statistics {
            lambda: right.len() as f64 / scored.len() as f64,
            eta: slow.len() as f64 / right.len().max(1) as f64,
            alpha: geometric_mean(right).unwrap_or(1.0),
            beta: geometric_mean(slow).unwrap_or(1.0),
            pi,
        })
    }
}

/// The macro form, right or as the reference has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MacroForm {
    /// Agrees with the micro form everywhere.
    Consistent,
    /// Puts failures that are never forgiven among those forgiven from t = 3, as the reference does. It therefore
    /// disagrees with the micro form at t >= 3 whenever there is one, which is why the reference switches its own
    /// cross-check off.
    Reference,
}

impl MacroForm {
    /// S(t): `alpha^lambda · beta^(lambda·eta·p) · b^(1-lambda)`.
    pub fn speed(self, scored: &[ScoredGraph], parameters: Parameters) -> Option<Curve> {
        Curve::from_fn(|t| {
            let statistics = Statistics::at(scored, t)?;
            Some(combine(&statistics, parameters, parameters.b))
        })
    }

    /// ES(t): as S(t), with b softened by the share of failures that are forgiven at t.
    pub fn error_aware(self, scored: &[ScoredGraph], parameters: Parameters) -> Option<Curve> {
        Curve::from_fn(|t| {
            let statistics = Statistics::at(scored, frozen(t))?;
            let unforgiven: f64 = CLASSES
                .iter()
                .zip(statistics.pi)
                .filter(|(class, _)| !self.class(**class).is_tolerated_at(t))
                .map(|(_, share)| share)
                .sum();
            let gamma = if t <= 0 { parameters.b } else { parameters.b.powf(unforgiven) };
            Some(combine(&statistics, parameters, gamma))
        })
    }

    fn class(self, class: ErrorClass) -> ErrorClass {
        match (self, class) {
            (MacroForm::Reference, ErrorClass::Never) => ErrorClass::Execution,
            _ => class,
        }
    }
}

fn combine(s: &Statistics, parameters: Parameters, gamma: f64) -> f64 {
    s.alpha.powf(s.lambda)
        * s.beta.powf(s.lambda * s.eta * parameters.p)
        * gamma.powf(1.0 - s.lambda)
}
