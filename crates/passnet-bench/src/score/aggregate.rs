//! AS: one number for a whole curve.

use super::curve::{CURVE_LEVELS, Curve};

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
    let log: f64 = curve.iter().zip(WEIGHTS).map(|((_, value), w)| w * value.log10()).sum();
    10f64.powf(log / total)
}
