//! Index arithmetic as linear forms over symbols with known ranges.
//!
//! A value is `constant + sum(coefficient * symbol) + sum(stride * lane index)`. Symbols are program ids, loop
//! indices, quotients and remainders of those by constants, and opaque values.

use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Sym(pub(crate) u32);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SymKind {
    /// A program id.
    Program,
    /// Quotient or remainder of a program-dependent form.
    Part { of: Linear, divisor: i64, quotient: bool },
    /// A loop index: takes all values of its range within one program.
    Loop,
    /// Nothing is known but its type.
    Opaque,
}

#[derive(Debug, Clone)]
pub(crate) struct Symbol {
    pub(crate) kind: SymKind,
    pub(crate) low: i64,
    pub(crate) high: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Linear {
    pub(crate) constant: i64,
    pub(crate) terms: BTreeMap<Sym, i64>,
    /// Per dimension; empty for scalars.
    pub(crate) lanes: Vec<i64>,
}

impl Linear {
    pub(super) fn constant(value: i64) -> Linear {
        Linear { constant: value, ..Linear::default() }
    }

    pub(super) fn symbol(sym: Sym) -> Linear {
        Linear { terms: BTreeMap::from([(sym, 1)]), ..Linear::default() }
    }

    /// The value if nothing varies.
    pub(super) fn as_constant(&self) -> Option<i64> {
        (self.terms.is_empty() && self.lanes.iter().all(|&s| s == 0)).then_some(self.constant)
    }

    pub(super) fn is_uniform(&self) -> bool {
        self.lanes.iter().all(|&s| s == 0)
    }

    /// `self + k * other`; `None` on overflow.
    pub(super) fn plus(&self, other: &Linear, k: i64) -> Option<Linear> {
        let mut sum = self.clone();
        sum.constant = sum.constant.checked_add(other.constant.checked_mul(k)?)?;
        for (&sym, &coefficient) in &other.terms {
            let slot = sum.terms.entry(sym).or_insert(0);
            *slot = slot.checked_add(coefficient.checked_mul(k)?)?;
        }
        sum.terms.retain(|_, c| *c != 0);
        if sum.lanes.len() < other.lanes.len() {
            sum.lanes.resize(other.lanes.len(), 0);
        }
        for (slot, &stride) in sum.lanes.iter_mut().zip(&other.lanes) {
            *slot = slot.checked_add(stride.checked_mul(k)?)?;
        }
        Some(sum)
    }

    pub(super) fn times(&self, k: i64) -> Option<Linear> {
        let mut zero = Linear::default();
        zero.lanes.resize(self.lanes.len(), 0);
        zero.plus(self, k)
    }

    /// Smallest and largest value over all symbols and lanes of a block.
    pub(crate) fn range(&self, symbols: &[Symbol], shape: &[u32]) -> (i128, i128) {
        let (mut low, mut high) = (i128::from(self.constant), i128::from(self.constant));
        let mut add = |c: i64, from: i64, to: i64| {
            let (a, b) = (i128::from(c) * i128::from(from), i128::from(c) * i128::from(to));
            low += a.min(b);
            high += a.max(b);
        };
        for (sym, &c) in &self.terms {
            let s = &symbols[sym.0 as usize];
            add(c, s.low, s.high);
        }
        for (&stride, &size) in self.lanes.iter().zip(shape) {
            add(stride, 0, i64::from(size) - 1);
        }
        (low, high)
    }
}
