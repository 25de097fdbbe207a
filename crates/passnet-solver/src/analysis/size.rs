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

    pub fn largest(&self) -> i64 {
        self.values.iter().copied().max().unwrap_or(0)
    }

    /// Whether it is this number in every graph.
    pub fn is(&self, value: i64) -> bool {
        !self.open && self.values.iter().all(|v| *v == value)
    }

    /// Whether both are the same in every graph.
    pub fn same(&self, other: &Size) -> bool {
        match self.open || other.open {
            true => self.to_string() == other.to_string(),
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
        if !quotient.to_string().contains("//") {
            return Some(quotient);
        }
        // One name in parentheses, so that it reads the same inside any other formula.
        let operand = |size: &Size| {
            let text = size.to_string();
            let simple = text.starts_with('(') || !text.contains(['*', '/', '+', '-', '%']);
            if simple { text } else { format!("({text})") }
        };
        let text = format!("({}//{})", operand(self), operand(other));
        let first = quotient.values.first().copied().unwrap_or(0);
        Some(Size { formula: Dim::symbol(&text, first), ..quotient })
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

/// The product of sizes.
pub fn product<'s>(
    sizes: impl IntoIterator<Item = &'s Size>,
    graphs: usize,
) -> Result<Size, Refusal> {
    sizes.into_iter().try_fold(Size::fixed(1, graphs), |product, size| product.times(size))
}
