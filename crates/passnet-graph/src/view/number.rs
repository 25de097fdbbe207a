//! What sizes and strides are made of: plain integers where elements exist, expressions where only types do.

use super::{Result, ViewError};

/// A whole number of a rule: its value is always known, and it may remember the symbols that it came from.
pub trait Number: Clone {
    /// A number that came from no symbol.
    fn fixed(value: i64) -> Self;
    /// What it is in the example.
    fn value(&self) -> i64;
    /// Refused where 64 bits do not hold it, as are all of these.
    fn plus(&self, other: &Self) -> Result<Self>;
    /// The difference.
    fn minus(&self, other: &Self) -> Result<Self>;
    /// The product.
    fn times(&self, other: &Self) -> Result<Self>;
    /// Python's `//`; the divisor is not zero.
    fn over(&self, other: &Self) -> Result<Self>;
    /// The smaller of two.
    fn least(&self, other: &Self) -> Result<Self>;

    /// Whether it is more than its value: such a size is kept where an equal one is not.
    fn is_symbolic(&self) -> bool {
        false
    }
}

/// The size of a dimension as a tensor keeps it.
pub trait Size: Clone {
    /// What rules compute with.
    type Number: Number;

    /// The size in the example.
    fn value(&self) -> i64;
    /// The size as something to compute with.
    fn number(&self) -> Self::Number;
    /// A number that a rule has found to be a size.
    fn from_number(number: Self::Number) -> Self;
}

/// A stride or a start, in elements.
pub trait Step: Copy + Ord {
    /// Nothing repeated: the stride of an expanded dimension.
    const ZERO: Self;
    /// The stride of neighbours.
    const ONE: Self;

    /// Saturating: a layout that leaves the memory is refused by whoever owns the memory. `by` is not negative where
    /// strides are not.
    fn times(self, by: i64) -> Self;
    /// Saturating, as `times` is.
    fn plus(self, other: Self) -> Self;
}

fn overflow() -> ViewError {
    ViewError::Value("a size overflows 64 bits".into())
}

impl Number for i64 {
    fn fixed(value: i64) -> Self {
        value
    }

    fn value(&self) -> i64 {
        *self
    }

    fn plus(&self, other: &Self) -> Result<Self> {
        self.checked_add(*other).ok_or_else(overflow)
    }

    fn minus(&self, other: &Self) -> Result<Self> {
        self.checked_sub(*other).ok_or_else(overflow)
    }

    fn times(&self, other: &Self) -> Result<Self> {
        self.checked_mul(*other).ok_or_else(overflow)
    }

    fn over(&self, other: &Self) -> Result<Self> {
        let (quotient, rest) =
            self.checked_div(*other).zip(self.checked_rem(*other)).ok_or_else(overflow)?;
        Ok(if rest != 0 && (rest < 0) != (*other < 0) { quotient - 1 } else { quotient })
    }

    fn least(&self, other: &Self) -> Result<Self> {
        Ok(*self.min(other))
    }
}

impl Size for i64 {
    type Number = i64;

    fn value(&self) -> i64 {
        *self
    }

    fn number(&self) -> i64 {
        *self
    }

    fn from_number(number: i64) -> Self {
        number
    }
}

impl Size for usize {
    type Number = i64;

    fn value(&self) -> i64 {
        i64::try_from(*self).unwrap_or(i64::MAX)
    }

    fn number(&self) -> i64 {
        Size::value(self)
    }

    fn from_number(number: i64) -> Self {
        usize::try_from(number).unwrap_or(0)
    }
}

impl Step for i64 {
    const ZERO: Self = 0;
    const ONE: Self = 1;

    fn times(self, by: i64) -> Self {
        self.saturating_mul(by)
    }

    fn plus(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}

impl Step for usize {
    const ZERO: Self = 0;
    const ONE: Self = 1;

    fn times(self, by: i64) -> Self {
        self.saturating_mul(usize::try_from(by).unwrap_or(0))
    }

    fn plus(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}
