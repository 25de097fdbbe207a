//! How graphs are evaluated.

use crate::secret::Secret;
use crate::timing::TimingOptions;
use passnet_engine::Tier;
use serde::{Deserialize, Serialize};

/// How to evaluate.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EvaluateOptions {
    /// How often both sides are called.
    pub timing: TimingOptions,
    /// Where draws, places of extreme values and contents of timed calls come from. Results do not depend on it, so it
    /// is no part of what is stored before a graph is judged.
    #[serde(skip, default = "Secret::random")]
    pub secret: Secret,
    /// The recorded secret of a graph, to draw for it once more as it was drawn then.
    #[serde(skip)]
    pub replayed: Option<Secret>,
    /// Draws of inputs beyond the first.
    pub draws: usize,
    /// Whether to try extreme inputs and watch the kernels.
    pub thorough: bool,
    /// Relative difference below which nothing is called faster or slower on this machine.
    pub noise_floor: f64,
    /// Bytes that one run may hold.
    pub memory_limit: usize,
    /// Seconds that the kernels of passes may take in one call.
    pub call_seconds: f64,
    /// The least of tiers that passes may run in; the engine knows how.
    #[serde(default, skip_serializing_if = "Tier::is_plan")]
    pub tier: Tier,
}

/// Two are equal where they ask the same of a pass: whatever the secret, the verdict is the same.
impl PartialEq for EvaluateOptions {
    fn eq(&self, other: &Self) -> bool {
        let EvaluateOptions {
            timing,
            secret: _,
            replayed: _,
            draws,
            thorough,
            noise_floor,
            memory_limit,
            call_seconds,
            tier,
        } = self;
        *timing == other.timing
            && *draws == other.draws
            && *thorough == other.thorough
            && *noise_floor == other.noise_floor
            && *memory_limit == other.memory_limit
            && *call_seconds == other.call_seconds
            && *tier == other.tier
    }
}

impl Default for EvaluateOptions {
    fn default() -> Self {
        EvaluateOptions {
            timing: TimingOptions::default(),
            secret: Secret::random(),
            replayed: None,
            draws: 2,
            thorough: true,
            noise_floor: 0.0,
            memory_limit: 8 << 30,
            call_seconds: 20.0,
            tier: Tier::Plan,
        }
    }
}
