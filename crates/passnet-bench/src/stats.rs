//! Statistics of repeated timings: order statistics, their uncertainty, and when a difference is real.
//!
//! Medians and quartiles because timings have long right tails; a bootstrap because nothing is known about their
//! distribution; a generator of our own with a fixed seed, so that the same timings always give the same answer.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What a log reports about one list of timings, each number rounded to six significant digits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TimingSummary {
    pub(crate) median: f64,
    /// Third quartile minus first.
    pub(crate) iqr: f64,
    pub(crate) mean: f64,
    /// Of the population, not of a sample.
    pub(crate) std: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl TimingSummary {
    /// `None` for an empty list or one with a value that is not finite.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let sorted = sorted(samples)?;
        let n = sorted.len() as f64;
        let mean = sorted.iter().sum::<f64>() / n;
        let variance = sorted.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
        let round = |x| round_significant(x, 6);
        Some(TimingSummary {
            median: round(quantile(&sorted, 0.5)),
            iqr: round(quantile(&sorted, 0.75) - quantile(&sorted, 0.25)),
            mean: round(mean),
            std: round(variance.sqrt()),
            min: round(sorted[0]),
            max: round(sorted[sorted.len() - 1]),
        })
    }
}

/// The middle value, or the mean of the two middle ones.
pub fn median(samples: &[f64]) -> Option<f64> {
    sorted(samples).map(|s| quantile(&s, 0.5))
}

/// Third quartile minus first, linearly interpolated.
pub fn interquartile_range(samples: &[f64]) -> Option<f64> {
    sorted(samples).map(|s| quantile(&s, 0.75) - quantile(&s, 0.25))
}

fn sorted(samples: &[f64]) -> Option<Vec<f64>> {
    if samples.is_empty() || samples.iter().any(|x| !x.is_finite()) {
        return None;
    }
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(sorted)
}

/// The quantile of a sorted, non-empty list, linear between neighbours.
fn quantile(sorted: &[f64], fraction: f64) -> f64 {
    let position = fraction * (sorted.len() - 1) as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    let weight = position - below as f64;
    sorted[below] + (sorted[above] - sorted[below]) * weight
}

/// Rounds to so many significant decimal digits. Zero and non-finite values stay as they are.
pub fn round_significant(value: f64, digits: usize) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    // Through decimal text: scaling by powers of ten would round twice.
    format!("{value:.*e}", digits.saturating_sub(1)).parse().unwrap_or(value)
}

/// xoshiro256++ (Blackman and Vigna, public domain), seeded through SplitMix64.
#[derive(Debug, Clone)]
pub struct Xoshiro256 {
    state: [u64; 4],
}

impl Xoshiro256 {
    pub(crate) fn seeded(seed: u64) -> Self {
        let mut z = seed;
        let state = std::array::from_fn(|_| {
            z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut x = z;
            x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            x ^ (x >> 31)
        });
        Xoshiro256 { state }
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A uniform index below `bound`, which must not be zero. The bias is below 2^-64 · bound.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next_u64()) * bound as u128) >> 64) as usize
    }
}

/// A speed-up and where it lies with the asked-for confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RatioInterval {
    /// The lower end of the interval.
    pub low: f64,
    /// The estimate.
    pub ratio: f64,
    /// The upper end.
    pub high: f64,
}

/// Of the intervals by which something is called faster or slower.
pub const CONFIDENCE: f64 = 0.99;

/// How an interval is found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bootstrap {
    /// More make the interval's ends steadier.
    pub resamples: usize,
    /// The same seed draws the same resamples.
    pub seed: u64,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Bootstrap { resamples: 2000, seed: 123 }
    }
}

/// A ratio, and what it might have been.
#[derive(Debug, Clone, PartialEq)]
pub struct Resampled {
    ratio: f64,
    /// Sorted.
    ratios: Vec<f64>,
}

impl Resampled {
    /// Where the ratio lies with this confidence, two-sided, for example 0.99.
    pub fn interval(&self, confidence: f64) -> RatioInterval {
        let tail = (1.0 - confidence.clamp(0.0, 1.0)) / 2.0;
        RatioInterval {
            low: quantile(&self.ratios, tail),
            ratio: self.ratio,
            high: quantile(&self.ratios, 1.0 - tail),
        }
    }
}

/// Timings of one side in order, and which round each is of.
struct Ranked {
    values: Vec<f64>,
    rounds: Vec<usize>,
}

impl Ranked {
    fn new(timings: &[f64]) -> Option<Ranked> {
        if timings.is_empty() || timings.iter().any(|time| !(time.is_finite() && *time > 0.0)) {
            return None;
        }
        let mut rounds: Vec<usize> = (0..timings.len()).collect();
        rounds.sort_by(|a, b| timings[*a].total_cmp(&timings[*b]));
        Some(Ranked { values: rounds.iter().map(|round| timings[*round]).collect(), rounds })
    }

    /// The median of each draw.
    fn medians_of(&self, draws: &Draws) -> Vec<f64> {
        match u8::try_from(self.values.len()) {
            Ok(_) => self.medians_counted::<u8>(draws),
            Err(_) => self.medians_counted::<u32>(draws),
        }
    }

    /// The same, in the narrowest type that can count so many timings: the more of them are counted at once.
    fn medians_counted<C: Count>(&self, draws: &Draws) -> Vec<f64> {
        let n = self.values.len();
        let (low, high) = (C::of((n - 1) / 2), C::of(n / 2));
        // For all draws at once, because that takes whole vectors: how many of a draw's timings have been passed, and how
        // many values it takes to come to the middle.
        let mut passed = vec![C::default(); draws.count];
        let mut to_low = vec![C::default(); draws.count];
        let mut to_high = vec![C::default(); draws.count];
        for round in &self.rounds {
            let counts = draws.of_round(*round);
            let places = passed.iter_mut().zip(&mut to_low).zip(&mut to_high);
            for (((passed, to_low), to_high), count) in places.zip(counts) {
                *passed += C::from(*count);
                *to_low += C::from(u8::from(*passed <= low));
                *to_high += C::from(u8::from(*passed <= high));
            }
        }
        let value = |position: C| self.values[(position.into() as usize).min(n - 1)];
        to_low
            .into_iter()
            .zip(to_high)
            .map(|(low, high)| (value(low) + value(high)) / 2.0)
            .collect()
    }
}

/// What timings are counted in.
trait Count: Copy + Default + PartialOrd + std::ops::AddAssign + From<u8> + Into<u32> {
    fn of(timings: usize) -> Self;
}

impl Count for u8 {
    fn of(timings: usize) -> Self {
        timings as u8
    }
}

impl Count for u32 {
    fn of(timings: usize) -> Self {
        timings as u32
    }
}

/// Draws of as many rounds as there are, with replacement.
#[derive(Debug)]
struct Draws {
    count: usize,
    /// How often a round is in each draw, one round after the other.
    counts: Box<[u8]>,
}

impl Draws {
    fn of_round(&self, round: usize) -> &[u8] {
        &self.counts[round * self.count..][..self.count]
    }
}

impl Bootstrap {
    /// What `median(eager) / median(candidate)` might have been: rounds, in which each side was called once, are drawn
    /// again with replacement, many times. Rounds are drawn whole, because what disturbs one call of a round is likely to
    /// disturb the other. `None` for empty, non-finite or non-positive timings, or without a partner for each.
    pub fn ratio_of_medians(&self, eager: &[f64], candidate: &[f64]) -> Option<Resampled> {
        if eager.len() != candidate.len() {
            return None;
        }
        let (eager, candidate) = (Ranked::new(eager)?, Ranked::new(candidate)?);
        let n = eager.values.len();
        let draws = self.draws(n);
        let medians = eager.medians_of(&draws).into_iter().zip(candidate.medians_of(&draws));
        let mut ratios: Vec<f64> = medians.map(|(eager, candidate)| eager / candidate).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        let ratio = quantile(&eager.values, 0.5) / quantile(&candidate.values, 0.5);
        Some(Resampled { ratio, ratios })
    }

    /// Draws of `n` rounds. They do not depend on the timings, and few counts of rounds occur in a run, so they are made
    /// once.
    fn draws(&self, n: usize) -> Arc<Draws> {
        type Known = BTreeMap<(usize, usize, u64), Arc<Draws>>;
        static KNOWN: Mutex<Known> = Mutex::new(BTreeMap::new());
        const MOST_KNOWN: usize = 32;
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        let draw = || {
            let mut random = Xoshiro256::seeded(self.seed);
            let count = self.resamples.max(1);
            let mut counts = vec![0u8; n * count];
            for draw in 0..count {
                for _ in 0..n {
                    let times = &mut counts[random.below(n) * count + draw];
                    // A round is drawn once on average, and never 255 times.
                    *times = times.saturating_add(1);
                }
            }
            Arc::new(Draws { count, counts: counts.into() })
        };
        known.entry((n, self.resamples, self.seed)).or_insert_with(draw).clone()
    }

    /// The interval of the mean over all values of all groups. Whole groups are drawn, because values of one group
    /// go together: four graphs of one task are not four independent findings. `None` without values.
    pub fn mean_of_groups(&self, groups: &[Vec<f64>]) -> Option<MeanInterval> {
        let groups: Vec<(f64, usize)> = groups
            .iter()
            .filter(|group| !group.is_empty())
            .map(|group| (group.iter().sum(), group.len()))
            .collect();
        let mean = |(sum, count): (f64, usize)| sum / count as f64;
        let add = |all: (f64, usize), one: (f64, usize)| (all.0 + one.0, all.1 + one.1);
        let whole = groups.iter().copied().reduce(add).map(mean).filter(|m| m.is_finite())?;
        let mut random = Xoshiro256::seeded(self.seed);
        let mut means: Vec<f64> = (0..self.resamples.max(1))
            .map(|_| {
                let draws = (0..groups.len()).map(|_| groups[random.below(groups.len())]);
                mean(draws.fold((0.0, 0), add))
            })
            .collect();
        means.sort_by(f64::total_cmp);
        let tail = (1.0 - CONFIDENCE) / 2.0;
        Some(MeanInterval {
            low: quantile(&means, tail),
            mean: whole,
            high: quantile(&means, 1.0 - tail),
        })
    }
}

/// A mean and where it lies with the asked-for confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MeanInterval {
    pub(crate) low: f64,
    pub(crate) mean: f64,
    pub(crate) high: f64,
}

/// The chance that fair coins fall at least as unevenly (two-sided, exact).
pub fn sign_test(better: usize, worse: usize) -> f64 {
    let (n, k) = (better + worse, better.min(worse));
    // In logarithms: 2^-n is no float for large n.
    let mut log_choose = 0.0;
    let mut tail = (-(n as f64) * std::f64::consts::LN_2).exp();
    for i in 1..=k {
        log_choose += ((n - i + 1) as f64 / i as f64).ln();
        tail += (log_choose - n as f64 * std::f64::consts::LN_2).exp();
    }
    (2.0 * tail).min(1.0)
}

/// What a measured ratio allows us to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The interval lies above 1 by more than the noise floor.
    Faster,
    /// The interval lies below 1 by more than the noise floor.
    Slower,
    /// The interval holds 1, or the difference is no larger than the machine's own noise.
    Tie,
}

impl Decision {
    /// As it stands in stored runs.
    pub const fn name(self) -> &'static str {
        match self {
            Decision::Faster => "faster",
            Decision::Slower => "slower",
            Decision::Tie => "tie",
        }
    }
}

impl RatioInterval {
    /// `noise_floor` is the relative difference that a run of the same thing against itself shows on this machine
    /// (0.01 for one percent): nothing below it is called faster or slower, however narrow the interval.
    pub fn decide(&self, noise_floor: f64) -> Decision {
        let floor = 1.0 + noise_floor.max(0.0);
        if self.low > floor {
            Decision::Faster
        } else if self.high * floor < 1.0 {
            Decision::Slower
        } else {
            Decision::Tie
        }
    }
}

#[cfg(test)]
mod tests;
