//! Mean, spread and bounds of a tensor's elements, and how arithmetic changes them.
//!
//! Operands count as independent and, where a shape matters, as normal. That is wrong in detail and right in
//! size, which is what drawing a plausible input needs. Bounds are kept exactly where they are known.

use crate::dtype::{DType, Kind};
use crate::read::{Number, TensorMeta};

/// What is known of the elements of a tensor. Unknown bounds are infinite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stat {
    /// The mean over elements.
    pub mean: f64,
    /// The standard deviation over elements.
    pub std: f64,
    /// No element is smaller.
    pub min: f64,
    /// No element is larger.
    pub max: f64,
}

/// Points of the quadrature over a normal distribution, in standard deviations.
const POINTS: i32 = 20;
const STEP: f64 = 0.2;

impl Stat {
    /// All elements are alike.
    pub const fn constant(value: f64) -> Self {
        Stat { mean: value, std: 0.0, min: value, max: value }
    }

    /// Gaussian, without bounds.
    pub const fn normal(mean: f64, std: f64) -> Self {
        Stat { mean, std, min: f64::NEG_INFINITY, max: f64::INFINITY }
    }

    /// Every value between the bounds equally likely.
    pub fn uniform(min: f64, max: f64) -> Self {
        Stat { mean: f64::midpoint(min, max), std: (max - min) / 12f64.sqrt(), min, max }
    }

    /// True with this probability.
    pub fn chance(probability: f64) -> Self {
        let p = if probability.is_finite() { probability.clamp(0.0, 1.0) } else { 0.5 };
        Stat { mean: p, std: (p * (1.0 - p)).sqrt(), min: 0.0, max: 1.0 }
    }

    /// Of elements that are there; nothing where one of them is no number.
    pub fn of_elements(elements: impl Iterator<Item = f64> + Clone) -> Option<Self> {
        let count = elements.clone().count() as f64;
        let mean = elements.clone().sum::<f64>() / count;
        let variance = elements.clone().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        let min = elements.clone().fold(f64::INFINITY, f64::min);
        let max = elements.fold(f64::NEG_INFINITY, f64::max);
        Stat { mean, std: variance.sqrt(), min, max }.checked()
    }

    /// The square of the deviation.
    pub fn variance(self) -> f64 {
        self.std * self.std
    }

    /// The standard deviation of a sum or a difference.
    fn spread_with(self, other: Self) -> f64 {
        (self.variance() + other.variance()).sqrt()
    }

    /// Itself, if the numbers are usable: finite, the mean within the bounds.
    pub fn checked(self) -> Option<Self> {
        let usable = self.mean.is_finite() && self.std.is_finite() && self.min <= self.max;
        usable.then(|| Stat { mean: self.mean.clamp(self.min, self.max), ..self })
    }

    /// What a run showed, with the bounds that were derived; its own where an integer has none.
    pub(super) fn within_bounds_of(self, derived: Option<Self>, dtype: DType) -> Option<Self> {
        let unknown = Stat::normal(0.0, 0.0);
        let Stat { min, max, .. } = derived.unwrap_or(unknown);
        let (min, max) = match dtype.kind() {
            Kind::Integer if !min.is_finite() || !max.is_finite() => (self.min, self.max),
            _ => (min, max),
        };
        Stat { mean: self.mean, std: self.std, min, max }.checked()
    }

    /// The same elements, clamped.
    #[must_use]
    pub fn within(self, min: f64, max: f64) -> Self {
        Stat { min: self.min.max(min), max: self.max.min(max), ..self }
    }

    /// The same values stored with another type: integers have whole bounds.
    #[must_use]
    pub fn stored_as(self, dtype: DType) -> Self {
        match dtype.kind() {
            Kind::Bool if self.min < 0.0 || self.max > 1.0 => {
                let zero = self.min <= 0.0 && self.max >= 0.0 && self.std == 0.0;
                Self::chance(if zero { 0.0 } else { 1.0 })
            }
            Kind::Integer => {
                let whole = |bound: f64| if bound.is_finite() { bound.trunc() } else { bound };
                Stat { min: whole(self.min), max: whole(self.max), ..self }
            }
            _ => self,
        }
    }

    /// A function of one value, by quadrature.
    pub fn map(self, f: impl Fn(f64) -> f64) -> Self {
        let (mut total, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for point in -POINTS..=POINTS {
            let z = f64::from(point) * STEP;
            let value = f((self.mean + z * self.std).clamp(self.min, self.max));
            if value.is_finite() {
                let weight = (-0.5 * z * z).exp();
                total += weight;
                sum += weight * value;
                squares += weight * value * value;
            }
        }
        let mean = sum / total;
        Stat::normal(mean, (squares / total - mean * mean).max(0.0).sqrt())
    }

    /// A function that never falls, so that bounds map to bounds.
    pub fn map_rising(self, f: impl Fn(f64) -> f64) -> Self {
        let bound = |x: f64, unknown: f64| {
            let y = f(x);
            if y.is_nan() { unknown } else { y }
        };
        let (min, max) = (bound(self.min, f64::NEG_INFINITY), bound(self.max, f64::INFINITY));
        Stat { min, max, ..self.map(&f) }
    }

    /// The sum of two that know nothing of each other.
    pub fn plus(self, other: Self) -> Self {
        Stat {
            mean: self.mean + other.mean,
            std: self.spread_with(other),
            min: self.min + other.min,
            max: self.max + other.max,
        }
    }

    /// The elements with the other sign.
    pub fn negate(self) -> Self {
        Stat { mean: -self.mean, std: self.std, min: -self.max, max: -self.min }
    }

    /// Every element times a number.
    pub fn scale(self, by: f64) -> Self {
        self.multiply(Stat::constant(by))
    }

    /// The product of two that know nothing of each other.
    pub fn multiply(self, other: Self) -> Self {
        let (a, b) = (self, other);
        let variance = a.variance() * b.variance()
            + a.variance() * b.mean * b.mean
            + b.variance() * a.mean * a.mean;
        let corners = [a.min * b.min, a.min * b.max, a.max * b.min, a.max * b.max];
        // Zero times an unknown bound is zero: the bound is a finite number.
        let corners = corners.map(|corner| if corner.is_nan() { 0.0 } else { corner });
        Stat {
            mean: a.mean * b.mean,
            std: variance.sqrt(),
            min: corners.into_iter().fold(f64::INFINITY, f64::min),
            max: corners.into_iter().fold(f64::NEG_INFINITY, f64::max),
        }
    }

    /// The product of a value with itself, which is not independent of it.
    pub fn square(self) -> Self {
        let mean = self.mean * self.mean + self.variance();
        let variance = 2.0 * self.variance() * (self.variance() + 2.0 * self.mean * self.mean);
        Stat { min: 0.0, ..Stat::normal(mean, variance.sqrt()) }
    }

    /// The quotient of two that know nothing of each other.
    pub fn divide(self, other: Self) -> Self {
        if other.std == 0.0 && other.mean != 0.0 {
            return self.scale(1.0 / other.mean);
        }
        // Values near zero would dominate; a denominator is taken to stay away from it.
        let size = other.mean.abs().max(other.std).max(1e-12);
        let ratio = self.mean / size;
        let std = (self.variance() + ratio * ratio * other.variance()).sqrt() / size;
        let sign = if other.mean < 0.0 { -1.0 } else { 1.0 };
        let positive = self.min >= 0.0 && other.min >= 0.0;
        let min = if positive { 0.0 } else { f64::NEG_INFINITY };
        Stat { min, ..Stat::normal(sign * ratio, std) }
    }

    /// The sum of `count` independent values.
    pub fn sum(self, count: f64) -> Self {
        Stat {
            mean: self.mean * count,
            std: self.std * count.sqrt(),
            min: self.min * count,
            max: self.max * count,
        }
    }

    /// The mean of so many elements that know nothing of each other.
    pub fn average(self, count: f64) -> Self {
        Stat { std: self.std / count.max(1.0).sqrt(), ..self }
    }

    /// The largest of `count` independent values.
    pub fn largest(self, count: f64) -> Self {
        let reach = (2.0 * count.max(1.0).ln()).sqrt();
        let mean = (self.mean + self.std * reach).clamp(self.min, self.max);
        Stat { mean, std: self.std / (1.0 + reach), ..self }
    }

    /// The larger of two values.
    pub fn larger(self, other: Self) -> Self {
        // Clark's formulas for two independent normal values.
        let spread = self.spread_with(other);
        let bounds = (self.min.max(other.min), self.max.max(other.max));
        let (mean, std) = if spread == 0.0 {
            (self.mean.max(other.mean), 0.0)
        } else {
            let z = (self.mean - other.mean) / spread;
            let (upper, density) = (normal_below(z), normal_density(z));
            let mean = self.mean * upper + other.mean * (1.0 - upper) + spread * density;
            let square = (self.mean.powi(2) + self.variance()) * upper
                + (other.mean.powi(2) + other.variance()) * (1.0 - upper)
                + (self.mean + other.mean) * spread * density;
            (mean, (square - mean * mean).max(0.0).sqrt())
        };
        Stat { mean, std, min: bounds.0, max: bounds.1 }
    }

    /// Values of which a share comes from `self` and the rest from `other`.
    pub fn mix(self, share: f64, other: Self) -> Self {
        let rest = 1.0 - share;
        let mean = share * self.mean + rest * other.mean;
        let square = share * (self.variance() + self.mean * self.mean)
            + rest * (other.variance() + other.mean * other.mean);
        Stat {
            mean,
            std: (square - mean * mean).max(0.0).sqrt(),
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }

    /// How often a value of `self` lies below one of `other`.
    pub fn chance_below(self, other: Self) -> f64 {
        if self.max < other.min {
            return 1.0;
        }
        if self.min > other.max {
            return 0.0;
        }
        let spread = self.spread_with(other);
        if spread == 0.0 {
            return f64::from(u8::from(self.mean < other.mean));
        }
        normal_below((other.mean - self.mean) / spread)
    }

    /// Writes what is known into the description of a tensor, as graph folders record it.
    pub fn describe(&self, meta: &mut TensorMeta) {
        match meta.dtype.kind() {
            Kind::Integer => {
                if self.min.is_finite() && self.max.is_finite() {
                    meta.min_val = Some(Number::Int(self.min as i64));
                    meta.max_val = Some(Number::Int(self.max as i64));
                }
            }
            Kind::Float => {
                meta.mean = Some(round(self.mean));
                meta.std = Some(round(self.std));
                // A bound at zero keeps square roots and logarithms legal; others rarely matter.
                if self.min.is_finite() {
                    meta.min_val = Some(Number::Float(round(self.min)));
                }
                if self.max.is_finite() {
                    meta.max_val = Some(Number::Float(round(self.max)));
                }
            }
            Kind::Bool | Kind::Complex => {}
        }
    }
}

/// Six digits after the point; of what is too small for that, six digits: an epsilon must not become zero.
fn round(value: f64) -> f64 {
    let magnitude = value.abs().log10().floor();
    let digits = if magnitude < -3.0 { 5.0 - magnitude } else { 6.0 };
    let scale = 10f64.powi(digits.min(300.0) as i32);
    let rounded = (value * scale).round() / scale;
    if rounded.is_finite() { rounded } else { value }
}

fn normal_density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

/// The share of a standard normal distribution below `z`.
pub(super) fn normal_below(z: f64) -> f64 {
    0.5 * (1.0 + erf(z / std::f64::consts::SQRT_2))
}

/// The error function, by Abramowitz and Stegun's formula 7.1.26 (error below 2e-7).
pub(super) fn erf(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.327_591_1 * x.abs());
    let series = t
        * (0.254_829_592
            + t * (-0.284_496_736
                + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    x.signum() * (1.0 - series * (-x * x).exp())
}
