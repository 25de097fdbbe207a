//! The tolerance ladder: how far apart two outputs may be at level t = -10 (strictest) to 5 (loosest).
//!
//! `rtol = 10^(t·k_r)` and `atol = 10^(t·k_a)`, rounded to three significant digits, with one pair of exponents
//! per float type. Every other type has no tolerance: its values are right at all levels or at none.

use passnet_graph::DType;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The strictest level.
pub const LOWEST: i32 = -10;
/// The loosest level.
pub const HIGHEST: i32 = 5;
/// How many levels there are.
pub const LEVELS: usize = (HIGHEST - LOWEST + 1) as usize;
/// The level a graph must reach to be called correct in one word.
pub const BASELINE: i32 = -5;

/// All levels, strictest first.
pub fn levels() -> impl DoubleEndedIterator<Item = i32> + Clone {
    LOWEST..=HIGHEST
}

/// The float types that have a ladder, in the order in which a log lists them.
pub const FLOAT_TYPES: [DType; 4] =
    [DType::Float16, DType::BFloat16, DType::Float32, DType::Float64];

/// `|a - b| <= atol + rtol·|b|`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// Relative to the expected value.
    pub rtol: f64,
    /// Absolute, added to it.
    pub atol: f64,
}

const fn row(pairs: [(f64, f64); 4]) -> [Tolerance; 4] {
    let mut out = [Tolerance { rtol: 0.0, atol: 0.0 }; 4];
    let mut i = 0;
    while i < 4 {
        out[i] = Tolerance { rtol: pairs[i].0, atol: pairs[i].1 };
        i += 1;
    }
    out
}

/// (rtol, atol) for float16, bfloat16, float32, float64.
const TABLE: [[Tolerance; 4]; LEVELS] = [
    row([(1.00e-06, 1e-10), (2.56e-04, 1e-10), (1.69e-12, 1e-10), (1.00e-14, 1.00e-14)]), // -10
    row([(3.98e-06, 1e-09), (5.85e-04, 1e-09), (2.54e-11, 1e-09), (2.51e-13, 2.51e-13)]), // -9
    row([(1.58e-05, 1e-08), (1.34e-03, 1e-08), (3.82e-10, 1e-08), (6.31e-12, 6.31e-12)]), // -8
    row([(6.31e-05, 1e-07), (3.06e-03, 1e-07), (5.75e-09, 1e-07), (1.58e-10, 1.58e-10)]), // -7
    row([(2.51e-04, 1e-06), (7.00e-03, 1e-06), (8.65e-08, 1e-06), (3.98e-09, 3.98e-09)]), // -6
    row([(1.00e-03, 1e-05), (1.60e-02, 1e-05), (1.30e-06, 1e-05), (1.00e-07, 1.00e-07)]), // -5
    row([(3.98e-03, 1e-04), (3.66e-02, 1e-04), (1.96e-05, 1e-04), (2.51e-06, 2.51e-06)]), // -4
    row([(1.58e-02, 1e-03), (8.36e-02, 1e-03), (2.94e-04, 1e-03), (6.31e-05, 6.31e-05)]), // -3
    row([(6.31e-02, 1e-02), (1.91e-01, 1e-02), (4.42e-03, 1e-02), (1.58e-03, 1.58e-03)]), // -2
    row([(2.51e-01, 1e-01), (4.37e-01, 1e-01), (6.65e-02, 1e-01), (3.98e-02, 3.98e-02)]), // -1
    row([(1.00e+00, 1e+00), (1.00e+00, 1e+00), (1.00e+00, 1e+00), (1.00e+00, 1.00e+00)]), // 0
    row([(3.98e+00, 1e+01), (2.29e+00, 1e+01), (1.50e+01, 1e+01), (2.51e+01, 2.51e+01)]), // 1
    row([(1.58e+01, 1e+02), (5.23e+00, 1e+02), (2.26e+02, 1e+02), (6.31e+02, 6.31e+02)]), // 2
    row([(6.31e+01, 1e+03), (1.20e+01, 1e+03), (3.40e+03, 1e+03), (1.58e+04, 1.58e+04)]), // 3
    row([(2.51e+02, 1e+04), (2.73e+01, 1e+04), (5.11e+04, 1e+04), (3.98e+05, 3.98e+05)]), // 4
    row([(1.00e+03, 1e+05), (6.25e+01, 1e+05), (7.69e+05, 1e+05), (1.00e+07, 1.00e+07)]), // 5
];

/// The tolerances of all levels, for an engine that compares outputs where it computes.
pub fn table() -> passnet_engine::Tolerances {
    let levels_of = |dtype: DType| levels().filter_map(move |t| Tolerance::of(dtype, t));
    let pairs = |dtype| levels_of(dtype).map(|one| [one.rtol, one.atol]).collect();
    FLOAT_TYPES.map(|dtype| (dtype, pairs(dtype))).into()
}

impl Tolerance {
    /// The tolerance of a type at a level; `None` where only equal values are right (and outside the ladder).
    pub fn of(dtype: DType, t: i32) -> Option<Self> {
        let column = FLOAT_TYPES.iter().position(|&d| d == dtype)?;
        let level = usize::try_from(t.checked_sub(LOWEST)?).ok()?;
        TABLE.get(level).map(|row| row[column])
    }

    /// The name of this check in a log: `all_close_atol_1.00E-05_rtol_1.30E-06`.
    pub fn log_key(&self) -> String {
        format!("all_close_atol_{}_rtol_{}", scientific(self.atol), scientific(self.rtol))
    }
}

/// Three significant digits with a signed exponent of at least two digits, as C's `%.2E` prints.
fn scientific(value: f64) -> String {
    let text = format!("{value:.2E}");
    match text.split_once('E') {
        Some((digits, exponent)) => {
            let exponent: i32 = exponent.parse().unwrap_or(0);
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}E{sign}{:02}", exponent.abs())
        }
        None => text,
    }
}

/// At which levels outputs are right.
///
/// Tolerances grow with t, so a real comparison is right from some level on; a log may claim anything else, and
/// the reference believes it level by level, so all sixteen answers are kept.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Ladder(u16);

impl Ladder {
    /// Right at no level.
    pub const NONE: Ladder = Ladder(0);
    /// Right at every level.
    pub const ALL: Ladder = Ladder(u16::MAX);

    /// Right from level `t` on; a level above the ladder means never.
    pub fn right_from(t: i32) -> Self {
        Self::from_fn(|level| level >= t)
    }

    pub(crate) fn from_fn(mut right_at: impl FnMut(i32) -> bool) -> Self {
        let mut bits = 0;
        for (i, t) in levels().enumerate() {
            bits |= u16::from(right_at(t)) << i;
        }
        Ladder(bits)
    }

    /// Is the level on the ladder, and right?
    pub fn is_right_at(self, t: i32) -> bool {
        (LOWEST..=HIGHEST).contains(&t) && self.0 & (1 << (t - LOWEST)) != 0
    }

    /// The strictest level that is right.
    pub fn first_right(self) -> Option<i32> {
        levels().find(|&t| self.is_right_at(t))
    }

    /// The level that everything beyond ordinary inputs is asked at: the baseline, or the first level that is right where
    /// the baseline is not; `None` where no level is.
    pub(crate) fn scoring_level(self) -> Option<i32> {
        self.first_right().map(|level| level.max(BASELINE))
    }

    /// Right wherever both are: the ladder of a graph is that of all its outputs.
    #[must_use]
    pub fn and(self, other: Ladder) -> Ladder {
        Ladder(self.0 & other.0)
    }

    /// Once right, right at every looser level. False only for forged or damaged logs.
    pub fn is_monotone(self) -> bool {
        match self.first_right() {
            Some(t) => self == Ladder::right_from(t),
            None => true,
        }
    }

    /// How many levels are right.
    pub fn count(self) -> u32 {
        self.0.count_ones()
    }
}

/// One digit per level, strictest first: `0000011111111111` is right from -5 on.
impl fmt::Display for Ladder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        levels().try_for_each(|t| f.write_str(if self.is_right_at(t) { "1" } else { "0" }))
    }
}

impl fmt::Debug for Ladder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ladder({self})")
    }
}

impl From<Ladder> for String {
    fn from(ladder: Ladder) -> String {
        ladder.to_string()
    }
}

impl TryFrom<String> for Ladder {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let digits = text.as_bytes();
        if digits.len() != LEVELS || digits.iter().any(|d| !b"01".contains(d)) {
            return Err(format!("a ladder is {LEVELS} digits 0 or 1"));
        }
        Ok(Ladder::from_fn(|t| digits[(t - LOWEST) as usize] == b'1'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_follows_the_formula() {
        let exponents = [(0.6, 1.0), (0.3592, 1.0), (1.1772, 1.0), (1.4, 1.4)];
        let rounded = |x: f64| format!("{x:.2e}").parse::<f64>().unwrap();
        for t in levels() {
            for (dtype, (k_r, k_a)) in FLOAT_TYPES.into_iter().zip(exponents) {
                let tolerance = Tolerance::of(dtype, t).unwrap();
                let t = f64::from(t);
                assert_eq!(tolerance.rtol, rounded(10f64.powf(t * k_r)), "{dtype} {t}");
                assert_eq!(tolerance.atol, rounded(10f64.powf(t * k_a)), "{dtype} {t}");
            }
        }
    }

    #[test]
    fn other_types_and_levels_have_no_tolerance() {
        for dtype in DType::ALL {
            assert_eq!(Tolerance::of(dtype, 0).is_some(), dtype.is_float(), "{dtype}");
        }
        for t in [i32::MIN, -11, 6, i32::MAX] {
            assert_eq!(Tolerance::of(DType::Float32, t), None);
        }
    }

    #[test]
    fn log_keys_are_spelt_as_the_reference_spells_them() {
        let key = |dtype, t| Tolerance::of(dtype, t).unwrap().log_key();
        assert_eq!(key(DType::Float32, -5), "all_close_atol_1.00E-05_rtol_1.30E-06");
        assert_eq!(key(DType::Float16, -10), "all_close_atol_1.00E-10_rtol_1.00E-06");
        assert_eq!(key(DType::Float64, 5), "all_close_atol_1.00E+07_rtol_1.00E+07");
        let mut all: Vec<String> = levels().flat_map(|t| FLOAT_TYPES.map(|d| key(d, t))).collect();
        assert_eq!(all.len(), 64);
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 61, "only the four keys of t = 0 coincide");
    }

    #[test]
    fn ladders() {
        let ladder = Ladder::right_from(-5);
        assert_eq!(ladder.to_string(), "0000011111111111");
        assert_eq!(ladder.first_right(), Some(-5));
        assert!(ladder.is_monotone() && Ladder::NONE.is_monotone() && Ladder::ALL.is_monotone());
        assert!(!Ladder::from_fn(|t| t == -3).is_monotone());
        assert!(!Ladder::ALL.is_right_at(6) && !Ladder::ALL.is_right_at(-11));
        assert_eq!(Ladder::right_from(6), Ladder::NONE);
        assert_eq!(ladder.and(Ladder::right_from(-3)), Ladder::right_from(-3));
        let json = serde_json::to_string(&ladder).unwrap();
        assert_eq!(serde_json::from_str::<Ladder>(&json).unwrap(), ladder);
        assert!(serde_json::from_str::<Ladder>("\"0101\"").is_err());
    }
}
