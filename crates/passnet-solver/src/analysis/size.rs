//! Sizes that hold for every graph of a task: one value per graph, and the formula a wrapper computes it by.

use super::Refusal;
use passnet_graph::infer::Dim;
use std::fmt;

/// A size. Decisions look at the values; generated code shows the formula.
#[derive(Debug, Clone)]
pub struct Size {
    values: Vec<i64>,
    formula: Dim,
    /// Whether the values may be others where the sizes are the same: then it is equal to nothing but itself.
    open: bool,
}

impl Size {
    pub fn fixed(value: i64, graphs: usize) -> Self {
        Size { values: vec![value; graphs], formula: Dim::fixed(value), open: false }
    }

    pub fn new(values: Vec<i64>, formula: Dim) -> Self {
        Size { values, formula, open: false }
    }

    /// A stride that the wrapper asks for: how a tensor lies in memory follows from no size.
    pub fn stride(values: Vec<i64>, formula: Dim) -> Self {
        Size { values, formula, open: true }
    }

    pub fn values(&self) -> &[i64] {
        &self.values
    }

    /// What a wrapper computes it by. It is a tree: what it is made of is asked of it, never of its text.
    pub fn formula(&self) -> &Dim {
        &self.formula
    }

    pub fn largest(&self) -> i64 {
        self.values.iter().copied().max().unwrap_or(0)
    }

    /// Whether it is this number in every graph.
    pub fn is(&self, value: i64) -> bool {
        !self.open && self.values.iter().all(|v| *v == value)
    }

    /// Whether it is the last place below a size in every graph.
    pub fn is_last_below(&self, size: &Size) -> bool {
        let values = || self.values.iter().zip(&size.values);
        !self.open && !size.open && values().all(|(own, size)| own + 1 == *size)
    }

    /// Whether both are the same in every graph.
    pub fn same(&self, other: &Size) -> bool {
        match self.open || other.open {
            true => self.formula == other.formula,
            false => self.values == other.values,
        }
    }

    /// The number that the formula gives whatever the inputs are.
    pub fn constant(&self) -> Option<i64> {
        (!self.formula.is_symbolic()).then(|| self.values.first().copied().unwrap_or(0))
    }

    pub fn plus(&self, other: &Size) -> Result<Size, Refusal> {
        self.combine(other, i64::checked_add, Dim::add)
    }

    pub fn minus(&self, other: &Size) -> Result<Size, Refusal> {
        self.combine(other, i64::checked_sub, Dim::sub)
    }

    pub fn times(&self, other: &Size) -> Result<Size, Refusal> {
        if self.is(0) || other.is(0) {
            return Ok(Size::fixed(0, self.values.len()));
        }
        self.combine(other, i64::checked_mul, Dim::mul)
    }

    /// The quotient, where it is exact in every graph.
    pub fn over(&self, other: &Size) -> Option<Size> {
        if self.open || other.open {
            return None;
        }
        let exact = self.values.iter().zip(&other.values).all(|(a, b)| *b != 0 && a % b == 0);
        if !exact {
            return None;
        }
        let quotient = self.combine(other, i64::checked_div, Dim::floor_div).ok()?;
        if !quotient.formula.has_quotient() {
            return Some(quotient);
        }
        // One factor, so that it is the same inside any other formula.
        Some(Size { formula: self.formula.quotient(&other.formula).ok()?, ..quotient })
    }

    /// The quotient, rounded down.
    pub fn whole_over(&self, other: &Size) -> Result<Size, Refusal> {
        self.combine(other, i64::checked_div, Dim::floor_div)
    }

    fn combine(
        &self,
        other: &Size,
        value: fn(i64, i64) -> Option<i64>,
        formula: fn(&Dim, &Dim) -> Result<Dim, passnet_graph::infer::Problem>,
    ) -> Result<Size, Refusal> {
        let values = self.values.iter().zip(&other.values).map(|(a, b)| value(*a, *b));
        let values = values.collect::<Option<Vec<i64>>>().ok_or_else(Refusal::overflow)?;
        let formula = formula(&self.formula, &other.formula).map_err(|_| Refusal::overflow())?;
        Ok(Size { values, formula, open: self.open || other.open })
    }
}

/// The formula, as Python.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.formula.fmt(f)
    }
}

/// What formulas call a dimension of a parameter.
pub fn dimension(name: &str, dim: usize) -> String {
    format!("{name}.shape[{dim}]")
}

/// The product of sizes.
pub fn product<'s>(
    sizes: impl IntoIterator<Item = &'s Size>,
    graphs: usize,
) -> Result<Size, Refusal> {
    sizes.into_iter().try_fold(Size::fixed(1, graphs), |product, size| product.times(size))
}
