//! What a call costs. Prices are the user's: a table of ours would be wrong next month.

use crate::chat::Usage;
use serde::{Deserialize, Serialize};

/// Money for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Prices {
    /// For plain tokens of a prompt.
    pub input: f64,
    /// For tokens of a reply.
    pub output: f64,
    /// For prompt tokens read from the provider's cache.
    pub cached: f64,
    /// For prompt tokens written into it.
    pub cache_written: f64,
}

const MILLION: f64 = 1e6;

impl Prices {
    pub(crate) fn cost(&self, usage: &Usage) -> f64 {
        let plain = usage.input.saturating_sub(usage.cached).saturating_sub(usage.cache_written);
        (plain as f64 * self.input
            + usage.cached as f64 * self.cached
            + usage.cache_written as f64 * self.cache_written
            + usage.output as f64 * self.output)
            / MILLION
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_tokens_have_their_own_price() {
        let prices = Prices { input: 3.0, output: 15.0, cached: 0.3, cache_written: 3.75 };
        let usage = Usage {
            input: 1_000_000,
            cached: 600_000,
            cache_written: 100_000,
            output: 200_000,
            estimated: false,
        };
        assert!((prices.cost(&usage) - (0.9 + 0.18 + 0.375 + 3.0)).abs() < 1e-12);
    }
}
