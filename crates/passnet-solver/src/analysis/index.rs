//! Index expressions: where an element lies, as a function of the loops of a kernel.
//!
//! Nearly all of them are sums of loop variables times strides. What is not (a wrapped roll, a reshape that crosses
//! boundaries) keeps its division or remainder and is computed in the kernel.

use super::ids::VarId;
use super::{Refusal, Size};
use std::fmt::Write as _;
use std::rc::Rc;

pub use super::ids::AxisId;

#[derive(Debug, Clone)]
pub enum Atom {
    Axis(AxisId),
    /// The variable of an unrolled window loop.
    Window(usize),
    /// Loaded from memory: gathers.
    Value(VarId),
    Div(Rc<Index>, Size),
    Mod(Rc<Index>, Size),
}

/// A sum of atoms times sizes, and a constant.
#[derive(Debug, Clone)]
pub struct Index {
    pub terms: Vec<(Atom, Size)>,
    pub constant: Size,
}

impl Index {
    pub fn fixed(value: i64, graphs: usize) -> Self {
        Index { terms: Vec::new(), constant: Size::fixed(value, graphs) }
    }

    pub fn constant(size: Size) -> Self {
        Index { terms: Vec::new(), constant: size }
    }

    pub fn atom(atom: Atom, graphs: usize) -> Self {
        Index { terms: vec![(atom, Size::fixed(1, graphs))], constant: Size::fixed(0, graphs) }
    }

    fn graphs(&self) -> usize {
        self.constant.values().len()
    }

    pub fn plus(&self, other: &Index) -> Result<Index, Refusal> {
        let mut sum = self.clone();
        sum.constant = sum.constant.plus(&other.constant)?;
        for (atom, factor) in &other.terms {
            let key = atom_key(atom);
            match sum.terms.iter_mut().find(|(known, _)| atom_key(known) == key) {
                Some((_, known)) => *known = known.plus(factor)?,
                None => sum.terms.push((atom.clone(), factor.clone())),
            }
        }
        sum.terms.retain(|(_, factor)| !factor.is(0));
        sum.joined()
    }

    /// The same with a number in place of its quotient and its remainder, where they are added up to it again: what was taken
    /// apart by one reshape and put together by another.
    fn joined(mut self) -> Result<Index, Refusal> {
        let quotient_of = |inner: &Rc<Index>, by: &Size, factor: &Size| {
            let wanted = factor.times(by).ok()?;
            self.terms.iter().position(|(atom, own)| {
                matches!(atom, Atom::Div(of, size)
                    if size.same(by) && own.same(&wanted) && of.key() == inner.key())
            })
        };
        let found = self.terms.iter().enumerate().find_map(|(rest, (atom, factor))| {
            let Atom::Mod(inner, by) = atom else { return None };
            let quotient = quotient_of(inner, by, factor)?;
            Some((rest, quotient, inner.times(factor)))
        });
        let Some((rest, quotient, whole)) = found else { return Ok(self) };
        let mut at = 0..;
        self.terms.retain(|_| at.next().is_none_or(|at| at != rest && at != quotient));
        self.plus(&whole?)
    }

    pub fn offset(&self, by: &Size) -> Result<Index, Refusal> {
        Ok(Index { terms: self.terms.clone(), constant: self.constant.plus(by)? })
    }

    pub fn times(&self, by: &Size) -> Result<Index, Refusal> {
        let mut terms = Vec::with_capacity(self.terms.len());
        for (atom, factor) in &self.terms {
            let factor = factor.times(by)?;
            if !factor.is(0) {
                terms.push((atom.clone(), factor));
            }
        }
        Ok(Index { terms, constant: self.constant.times(by)? })
    }

    /// The only loop this index is, when it is one unscaled.
    pub fn as_axis(&self) -> Option<AxisId> {
        match self.terms.as_slice() {
            [(Atom::Axis(axis), factor)] if factor.is(1) && self.constant.is(0) => Some(*axis),
            _ => None,
        }
    }

    /// All loops that occur, divisions entered.
    pub fn for_each_axis(&self, visit: &mut impl FnMut(AxisId)) {
        for (atom, _) in &self.terms {
            match atom {
                Atom::Axis(axis) => visit(*axis),
                Atom::Div(inner, _) | Atom::Mod(inner, _) => inner.for_each_axis(visit),
                Atom::Window(_) | Atom::Value(_) => {}
            }
        }
    }

    pub fn for_each_value(&self, visit: &mut impl FnMut(VarId)) {
        for (atom, _) in &self.terms {
            match atom {
                Atom::Value(var) => visit(*var),
                Atom::Div(inner, _) | Atom::Mod(inner, _) => inner.for_each_value(visit),
                Atom::Window(_) | Atom::Axis(_) => {}
            }
        }
    }

    /// The largest value in each graph, given the sizes of the loops; `None` where it is not known.
    fn largest(&self, axes: &[Size]) -> Option<Vec<i64>> {
        let mut total = self.constant.values().to_vec();
        if total.iter().any(|v| *v < 0) {
            return None;
        }
        for (atom, factor) in &self.terms {
            let top: Vec<i64> = match atom {
                Atom::Axis(axis) => {
                    axes.get(axis.index())?.values().iter().map(|v| v - 1).collect()
                }
                Atom::Mod(_, by) => by.values().iter().map(|v| v - 1).collect(),
                _ => return None,
            };
            for ((total, top), factor) in total.iter_mut().zip(top).zip(factor.values()) {
                if *factor < 0 {
                    return None;
                }
                *total = total.checked_add(top.checked_mul(*factor)?)?;
            }
        }
        Some(total)
    }

    /// The quotient and the remainder by a size, simplified where the sum falls apart.
    pub fn divided(&self, by: &Size, axes: &[Size]) -> Result<(Index, Index), Refusal> {
        let graphs = self.graphs();
        if by.is(1) {
            return Ok((self.clone(), Index::fixed(0, graphs)));
        }
        let mut quotient = Index::fixed(0, graphs);
        let mut rest = Index::fixed(0, graphs);
        for (atom, factor) in &self.terms {
            match factor.over(by) {
                Some(factor) => quotient.terms.push((atom.clone(), factor)),
                None => rest.terms.push((atom.clone(), factor.clone())),
            }
        }
        match self.constant.over(by) {
            Some(constant) => quotient.constant = constant,
            None => rest.constant = self.constant.clone(),
        }
        let small = rest.largest(axes).is_some_and(|largest| {
            largest.iter().zip(by.values()).all(|(largest, by)| largest < by)
        });
        if small {
            return Ok((quotient, rest));
        }
        let whole = Rc::new(self.clone());
        Ok((
            Index::atom(Atom::Div(Rc::clone(&whole), by.clone()), graphs),
            Index::atom(Atom::Mod(whole, by.clone()), graphs),
        ))
    }

    /// A text that is the same for the same index.
    pub fn key(&self) -> String {
        let mut parts: Vec<String> = self
            .terms
            .iter()
            .map(|(atom, factor)| format!("{}*{:?}", atom_key(atom), factor.values()))
            .collect();
        parts.sort();
        let mut text = parts.join("+");
        let _ = write!(text, "+{:?}", self.constant.values());
        text
    }
}

fn atom_key(atom: &Atom) -> String {
    match atom {
        Atom::Axis(axis) => format!("a{}", axis.index()),
        Atom::Window(window) => format!("w{window}"),
        Atom::Value(var) => format!("v{}", var.index()),
        Atom::Div(inner, by) => format!("({})/{:?}", inner.key(), by.values()),
        Atom::Mod(inner, by) => format!("({})%{:?}", inner.key(), by.values()),
    }
}
