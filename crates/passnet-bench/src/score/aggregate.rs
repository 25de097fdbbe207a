//! AS: one number for a whole curve.

use super::curve::{CURVE_LEVELS, Curve, curve_levels, graph_error_aware};
use super::{Parameters, ScoredGraph};

/// How much each level from -10 to 4 counts; the reference's choice. Strict tolerances hardly count because honest
/// kernels round differently from eager; from -2 on, each looser level counts four fifths of the one before.
pub const WEIGHTS: [f64; CURVE_LEVELS] = [
    0.001, 0.001, 0.001, 0.001, 0.001, // -10 .. -6
    1.0, 1.0, 1.0, // -5 .. -3
    0.8, 0.64, 0.512, // -2 .. 0
    0.4096, 0.32768, 0.262144, // 1 .. 3
    0.001,    // 4
];

/// The weighted geometric mean of a curve.
pub fn aggregated_speedup(curve: &Curve) -> f64 {
    let total: f64 = WEIGHTS.iter().sum();
    10f64.powf(weighted_log(curve, &WEIGHTS) / total)
}

/// The same with weights of one's own, from -10 to 4, as they are: those that sum to 1 give a mean.
pub fn weighted_speedup(curve: &Curve, weights: &[f64; CURVE_LEVELS]) -> f64 {
    10f64.powf(weighted_log(curve, weights))
}

fn weighted_log(curve: &Curve, weights: &[f64; CURVE_LEVELS]) -> f64 {
    curve.iter().zip(weights).map(|((_, value), w)| w * value.log10()).sum()
}

/// What one graph adds to AS: AS is the exponential of the mean of these over its graphs. Two runs over the same
/// graphs can therefore be compared pair by pair, failures included.
pub fn graph_log_score(scored: &ScoredGraph, parameters: Parameters) -> f64 {
    let total: f64 = WEIGHTS.iter().sum();
    let levels = curve_levels().zip(WEIGHTS);
    levels.map(|(t, w)| w * graph_error_aware(scored, t, parameters).ln()).sum::<f64>() / total
}
