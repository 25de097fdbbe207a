//! Sizes: a number that is always known, and the expression over symbols it came from, if any.
//!
//! Decisions (does this broadcast, is this a view) look at the number; the expression rides along so that a
//! result can be read as `S0*4` and re-evaluated for other values of `S0`.

mod text;

use super::problem::Problem;
use crate::view::{Number, Size, ViewError};
use std::sync::Arc;

/// One size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dim {
    /// Its value in the example that the graph was recorded with.
    pub size: i64,
    expr: Option<Arc<Expr>>,
}

/// A sum of products of atoms with integer coefficients, sorted, without zero terms.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Expr {
    terms: Vec<(Vec<Atom>, i64)>,
    depth: u16,
    /// Atoms in the whole tree. Shared parts count each time: comparing and evaluating walk through them.
    weight: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Atom {
    /// An expression in parentheses: one factor, whatever stands beside it.
    Group(Arc<Expr>),
    Symbol(Arc<str>),
    Binary(Nonlinear, Arc<Expr>, Arc<Expr>),
    /// An expression that grew too large to keep; its value under other symbols is not known.
    Opaque,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Nonlinear {
    FloorDiv,
    Mod,
    Max,
    Min,
}

/// Beyond these an expression is no longer kept: they bound the work per operation.
const MAX_TERMS: usize = 24;
const MAX_DEPTH: u16 = 24;
const MAX_WEIGHT: u32 = 256;

impl Atom {
    fn weight(&self) -> u32 {
        match self {
            Atom::Symbol(_) | Atom::Opaque => 1,
            Atom::Group(inner) => inner.weight.saturating_add(1),
            Atom::Binary(_, a, b) => a.weight.saturating_add(b.weight).saturating_add(1),
        }
    }
}

impl Dim {
    /// A size that no symbol changes.
    pub const fn fixed(size: i64) -> Self {
        Dim { size, expr: None }
    }

    /// A size named by a symbol, with its example value.
    pub fn symbol(name: &str, size: i64) -> Self {
        let atom = Atom::Symbol(name.into());
        Dim {
            size,
            expr: Some(Arc::new(Expr { terms: vec![(vec![atom], 1)], depth: 1, weight: 1 })),
        }
    }

    /// Whether it changes with an input.
    pub fn is_symbolic(&self) -> bool {
        self.expr.is_some()
    }

    /// Whether the whole expression was kept, so that its value follows from the symbols.
    pub fn is_known(&self) -> bool {
        self.expr.as_ref().is_none_or(|expr| !expr.any(&|atom| *atom == Atom::Opaque))
    }

    /// Whether a quotient is part of it.
    pub fn has_quotient(&self) -> bool {
        let is_quotient = |atom: &Atom| matches!(atom, Atom::Binary(Nonlinear::FloorDiv, ..));
        self.expr.as_ref().is_some_and(|expr| expr.any(&is_quotient))
    }

    /// The symbols of a product of nothing else, and the number that multiplies them.
    pub fn symbols(&self) -> Option<(Vec<&str>, i64)> {
        let Some(expr) = &self.expr else { return Some((Vec::new(), self.size)) };
        let [(atoms, number)] = expr.terms.as_slice() else { return None };
        let symbols = atoms.iter().map(|atom| match atom {
            Atom::Symbol(name) => Some(&**name),
            _ => None,
        });
        Some((symbols.collect::<Option<_>>()?, *number))
    }

    /// Whether both have the same value for every value of the symbols.
    pub fn is_identical(&self, other: &Dim) -> bool {
        self.size == other.size && self.expr == other.expr
    }

    /// The value for other values of the symbols; `None` when it cannot be computed.
    pub fn evaluate(&self, symbols: &impl Fn(&str) -> Option<i64>) -> Option<i64> {
        match &self.expr {
            Some(expr) => expr.evaluate(symbols),
            None => Some(self.size),
        }
    }

    /// Refused where the value leaves 64 bits, as are all of these.
    pub fn add(&self, other: &Dim) -> Result<Dim, Problem> {
        self.combine(other, self.size.checked_add(other.size), |a, b| a.plus(b, 1))
    }

    /// The difference, which may be negative.
    pub fn sub(&self, other: &Dim) -> Result<Dim, Problem> {
        self.combine(other, self.size.checked_sub(other.size), |a, b| a.plus(b, -1))
    }

    /// The product, kept as an expression while it is small.
    pub fn mul(&self, other: &Dim) -> Result<Dim, Problem> {
        self.combine(other, self.size.checked_mul(other.size), Expr::times)
    }

    /// Python's `//`.
    pub fn floor_div(&self, other: &Dim) -> Result<Dim, Problem> {
        if other.size == 0 {
            return Err(Problem::invalid("integer division or modulo by zero"));
        }
        let value = floor_div(self.size, other.size);
        self.combine(other, value, |a, b| a.divided_by(b).unwrap_or_else(|| a.floor_divided_by(b)))
    }

    /// Python's `//` as one factor in parentheses, in which nothing is cancelled.
    pub fn quotient(&self, other: &Dim) -> Result<Dim, Problem> {
        if other.size == 0 {
            return Err(Problem::invalid("integer division or modulo by zero"));
        }
        let value = floor_div(self.size, other.size);
        self.combine(other, value, |a, b| Expr::atom(Nonlinear::FloorDiv, a, b).in_parentheses())
    }

    /// Python's `%`.
    pub fn modulo(&self, other: &Dim) -> Result<Dim, Problem> {
        if other.size == 0 {
            return Err(Problem::invalid("integer division or modulo by zero"));
        }
        let value = floor_div(self.size, other.size)
            .and_then(|quotient| quotient.checked_mul(other.size))
            .and_then(|product| self.size.checked_sub(product));
        self.combine(other, value, |a, b| match a.divided_by(b) {
            Some(_) => Expr::constant(0),
            None => Expr::atom(Nonlinear::Mod, a, b),
        })
    }

    /// The larger one, an expression where one of them is.
    pub fn max(&self, other: &Dim) -> Result<Dim, Problem> {
        let value = Some(self.size.max(other.size));
        self.combine(other, value, |a, b| Expr::atom(Nonlinear::Max, a, b))
    }

    /// The smaller one, an expression where one of them is.
    pub fn min(&self, other: &Dim) -> Result<Dim, Problem> {
        let value = Some(self.size.min(other.size));
        self.combine(other, value, |a, b| Expr::atom(Nonlinear::Min, a, b))
    }

    /// The sum with a number.
    pub fn offset(&self, by: i64) -> Result<Dim, Problem> {
        self.add(&Dim::fixed(by))
    }

    /// The product with a number.
    pub fn scaled(&self, by: i64) -> Result<Dim, Problem> {
        self.mul(&Dim::fixed(by))
    }

    /// Python's `//` by a number.
    pub fn divided(&self, by: i64) -> Result<Dim, Problem> {
        self.floor_div(&Dim::fixed(by))
    }

    fn combine(
        &self,
        other: &Dim,
        value: Option<i64>,
        build: impl FnOnce(&Expr, &Expr) -> Expr,
    ) -> Result<Dim, Problem> {
        let size = value.ok_or_else(|| Problem::invalid("a size overflows 64 bits"))?;
        let expr = match (&self.expr, &other.expr) {
            (None, None) => return Ok(Dim::fixed(size)),
            (Some(a), Some(b)) => build(a, b),
            (Some(a), None) => build(a, &Expr::constant(other.size)),
            (None, Some(b)) => build(&Expr::constant(self.size), b),
        };
        Ok(match expr.as_constant() {
            Some(_) => Dim::fixed(size),
            None => Dim { size, expr: Some(Arc::new(expr.bounded())) },
        })
    }
}

/// A size is a number of the rules of views, its expression carried along.
impl Number for Dim {
    fn fixed(value: i64) -> Self {
        Dim::fixed(value)
    }

    fn value(&self) -> i64 {
        self.size
    }

    fn plus(&self, other: &Self) -> Result<Self, ViewError> {
        self.add(other).map_err(refused)
    }

    fn minus(&self, other: &Self) -> Result<Self, ViewError> {
        self.sub(other).map_err(refused)
    }

    fn times(&self, other: &Self) -> Result<Self, ViewError> {
        self.mul(other).map_err(refused)
    }

    fn over(&self, other: &Self) -> Result<Self, ViewError> {
        self.floor_div(other).map_err(refused)
    }

    fn least(&self, other: &Self) -> Result<Self, ViewError> {
        self.min(other).map_err(refused)
    }

    fn is_symbolic(&self) -> bool {
        self.expr.is_some()
    }
}

impl Size for Dim {
    type Number = Dim;

    fn value(&self) -> i64 {
        self.size
    }

    fn number(&self) -> Dim {
        self.clone()
    }

    fn from_number(number: Dim) -> Self {
        number
    }
}

fn refused(problem: Problem) -> ViewError {
    match problem {
        Problem::Invalid(message) => ViewError::Value(message.into()),
        Problem::Unknown(reason) => ViewError::Value(reason.to_string()),
    }
}

impl From<i64> for Dim {
    fn from(size: i64) -> Self {
        Dim::fixed(size)
    }
}

fn floor_div(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    let inexact = a.checked_rem(b)? != 0;
    Some(if inexact && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
}

fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1)
}

impl Expr {
    fn constant(value: i64) -> Expr {
        let terms = if value == 0 { Vec::new() } else { vec![(Vec::new(), value)] };
        Expr { terms, depth: 0, weight: 0 }
    }

    fn atom(kind: Nonlinear, a: &Expr, b: &Expr) -> Expr {
        let depth = a.depth.max(b.depth) + 1;
        let atom = Atom::Binary(kind, Arc::new(a.copy()), Arc::new(b.copy()));
        let weight = atom.weight();
        Expr { terms: vec![(vec![atom], 1)], depth, weight }
    }

    fn in_parentheses(self) -> Expr {
        let depth = self.depth + 1;
        let atom = Atom::Group(Arc::new(self));
        let weight = atom.weight();
        Expr { terms: vec![(vec![atom], 1)], depth, weight }
    }

    /// Whether some atom of the whole tree is one of those.
    fn any(&self, is_one: &impl Fn(&Atom) -> bool) -> bool {
        self.terms.iter().flat_map(|(atoms, _)| atoms).any(|atom| {
            is_one(atom)
                || match atom {
                    Atom::Symbol(_) | Atom::Opaque => false,
                    Atom::Group(inner) => inner.any(is_one),
                    Atom::Binary(_, a, b) => a.any(is_one) || b.any(is_one),
                }
        })
    }

    fn opaque() -> Expr {
        Expr { terms: vec![(vec![Atom::Opaque], 1)], depth: 1, weight: 1 }
    }

    fn copy(&self) -> Expr {
        Expr { terms: self.terms.clone(), depth: self.depth, weight: self.weight }
    }

    fn as_constant(&self) -> Option<i64> {
        match self.terms.as_slice() {
            [] => Some(0),
            [(atoms, value)] if atoms.is_empty() => Some(*value),
            _ => None,
        }
    }

    fn bounded(self) -> Expr {
        if self.terms.len() > MAX_TERMS || self.depth > MAX_DEPTH || self.weight > MAX_WEIGHT {
            return Expr::opaque();
        }
        self
    }

    fn plus(&self, other: &Expr, sign: i64) -> Expr {
        let added = other.terms.iter().map(|(atoms, c)| (atoms.clone(), c.saturating_mul(sign)));
        Expr::collect(self.terms.iter().cloned().chain(added), self.depth.max(other.depth))
    }

    fn times(&self, other: &Expr) -> Expr {
        let depth = self.depth.max(other.depth);
        if self.terms.len() * other.terms.len() > MAX_TERMS {
            return Expr::opaque();
        }
        let products = self.terms.iter().flat_map(|(left, a)| {
            other.terms.iter().map(move |(right, b)| {
                let mut atoms: Vec<Atom> = left.iter().chain(right).cloned().collect();
                atoms.sort();
                (atoms, a.saturating_mul(*b))
            })
        });
        let product = Expr::collect(products, depth);
        if product.terms.iter().any(|(atoms, _)| atoms.len() > MAX_TERMS) {
            return Expr::opaque();
        }
        product
    }

    fn collect(terms: impl Iterator<Item = (Vec<Atom>, i64)>, depth: u16) -> Expr {
        let mut sum: Vec<(Vec<Atom>, i64)> = Vec::new();
        for (atoms, coefficient) in terms {
            // Two opaque values are not known to be equal, so they never cancel.
            let same = |(seen, _): &&mut (Vec<Atom>, i64)| {
                *seen == atoms && !atoms.contains(&Atom::Opaque)
            };
            match sum.iter_mut().find(same) {
                Some((_, total)) => *total = total.saturating_add(coefficient),
                None => sum.push((atoms, coefficient)),
            }
        }
        sum.retain(|(_, coefficient)| *coefficient != 0);
        sum.sort();
        let atoms = sum.iter().flat_map(|(atoms, _)| atoms);
        let weight = atoms.fold(0_u32, |weight, atom| weight.saturating_add(atom.weight()));
        Expr { terms: sum, depth, weight }
    }

    /// The quotient, when the divisor is one product that divides every term.
    fn divided_by(&self, divisor: &Expr) -> Option<Expr> {
        let [(divisor, by)] = divisor.terms.as_slice() else { return None };
        if divisor.contains(&Atom::Opaque) {
            return None;
        }
        let terms = self.terms.iter().map(|(atoms, coefficient)| {
            let mut rest = atoms.clone();
            for atom in divisor {
                let place = rest.iter().position(|candidate| candidate == atom)?;
                rest.remove(place);
            }
            (coefficient.checked_rem(*by)? == 0).then(|| (rest, coefficient / by))
        });
        let terms: Option<Vec<_>> = terms.collect();
        Some(Expr::collect(terms?.into_iter(), self.depth))
    }

    /// An inexact quotient; factors that all coefficients share with a constant divisor are cancelled.
    fn floor_divided_by(&self, divisor: &Expr) -> Expr {
        let shared = match divisor.as_constant() {
            Some(by) if by > 1 => self.terms.iter().fold(by, |a, (_, c)| gcd(a, *c)),
            _ => 1,
        };
        if shared <= 1 {
            return Expr::atom(Nonlinear::FloorDiv, self, divisor);
        }
        let over = |expr: &Expr| {
            let terms = expr.terms.iter().map(|(atoms, c)| (atoms.clone(), c / shared));
            Expr::collect(terms, expr.depth)
        };
        Expr::atom(Nonlinear::FloorDiv, &over(self), &over(divisor))
    }

    fn evaluate(&self, symbols: &impl Fn(&str) -> Option<i64>) -> Option<i64> {
        let mut total: i64 = 0;
        for (atoms, coefficient) in &self.terms {
            let mut product = *coefficient;
            for atom in atoms {
                let value = match atom {
                    Atom::Symbol(name) => symbols(name)?,
                    Atom::Opaque => return None,
                    Atom::Group(inner) => inner.evaluate(symbols)?,
                    Atom::Binary(kind, a, b) => {
                        let (a, b) = (a.evaluate(symbols)?, b.evaluate(symbols)?);
                        match kind {
                            Nonlinear::FloorDiv => floor_div(a, b)?,
                            Nonlinear::Mod => a.checked_sub(floor_div(a, b)?.checked_mul(b)?)?,
                            Nonlinear::Max => a.max(b),
                            Nonlinear::Min => a.min(b),
                        }
                    }
                };
                product = product.checked_mul(value)?;
            }
            total = total.checked_add(product)?;
        }
        Some(total)
    }
}

#[cfg(test)]
mod tests;
