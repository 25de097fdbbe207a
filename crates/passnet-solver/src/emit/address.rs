//! Where elements lie, as expressions.

use super::statement::{Term, word};
use super::writer::Writer;
use crate::analysis::body::Guard;
use crate::analysis::index::{Atom, AxisId, Index};
use crate::analysis::{Refusal, Size};
use crate::expression::{Binary, Expr};

impl Writer<'_> {
    /// The stride with which an index follows the running number of several loops as a whole, if it does.
    fn running_stride(&self, index: &Index, loops: &[AxisId]) -> Result<Option<Size>, Refusal> {
        let factor = |axis: &AxisId| {
            index.terms.iter().find_map(|(atom, factor)| match atom {
                Atom::Axis(own) if own == axis => Some(factor),
                _ => None,
            })
        };
        let [_, .., last] = loops else { return Ok(None) };
        let mut stride: Option<Size> = None;
        for axis in loops.iter().rev() {
            let Some(own) = factor(axis) else { return Ok(None) };
            if stride.is_some_and(|wanted| !wanted.same(own)) {
                return Ok(None);
            }
            stride = Some(own.times(&self.body.axes[*axis])?);
        }
        Ok(factor(last).cloned())
    }

    /// What is added up to an index; nothing where that is zero.
    fn summands(&mut self, index: &Index) -> Result<Vec<Term>, Refusal> {
        let mut parts = Vec::new();
        let mut columns = None;
        let mut followed: Vec<AxisId> = Vec::new();
        for (name, loops) in self.running.clone() {
            let Some(stride) = self.running_stride(index, &loops)? else { continue };
            let part = match stride.is(1) {
                true => word(name),
                false => word(name) * self.names.size(&stride, "stride")?,
            };
            // Columns come last: rows have an address, and columns lie behind it.
            match name {
                "column" => columns = Some(part),
                _ => parts.push(part),
            }
            followed.extend(loops);
        }
        let covered = |atom: &Atom| matches!(atom, Atom::Axis(axis) if followed.contains(axis));
        let mut terms: Vec<&(Atom, Size)> =
            index.terms.iter().filter(|(atom, _)| !covered(atom)).collect();
        terms.sort_by_key(|(_, factor)| std::cmp::Reverse(factor.values().to_vec()));
        for (atom, factor) in terms {
            let part = match atom {
                Atom::Axis(axis) => match self.axis_names.get(axis) {
                    Some(name) => word(name),
                    // A loop of one step.
                    None => continue,
                },
                Atom::Window(window) => word(format!("w{window}")),
                Atom::Value(var) => self.value(*var)?,
                Atom::Div(inner, by) => self.divided(Binary::FloorOver, inner, by)?,
                Atom::Mod(inner, by) => self.divided(Binary::Modulo, inner, by)?,
            };
            parts.push(match factor.is(1) {
                true => part,
                false => part * self.names.size(factor, "stride")?,
            });
        }
        parts.extend(columns);
        if !index.constant.is(0) {
            parts.push(self.names.size(&index.constant, "offset")?);
        }
        Ok(parts)
    }

    fn divided(&mut self, how: Binary, inner: &Index, by: &Size) -> Result<Term, Refusal> {
        let inner = self.index(inner)?;
        Ok(Expr::binary(how, inner, self.names.size(by, "part")?))
    }

    pub(super) fn index(&mut self, index: &Index) -> Result<Term, Refusal> {
        let parts = self.summands(index)?.into_iter();
        Ok(parts.reduce(plus).unwrap_or_else(|| Expr::int(0)))
    }

    /// The address of an element behind a pointer.
    pub(super) fn address(&mut self, pointer: String, index: &Index) -> Result<Term, Refusal> {
        Ok(self.summands(index)?.into_iter().fold(word(pointer), plus))
    }

    /// A condition that all guards hold; there is at least one side of one.
    pub(super) fn guards(&mut self, guards: &[Guard]) -> Result<Term, Refusal> {
        let mut parts: Vec<Term> = Vec::new();
        for guard in guards {
            let index = self.index(&guard.index)?;
            if let Some(low) = &guard.low {
                let low = self.names.size(low, "low")?;
                parts.push(Expr::binary(Binary::AtLeast, index.clone(), low));
            }
            if let Some(high) = &guard.high {
                parts.push(index.below(self.names.size(high, "high")?));
            }
        }
        Ok(parts.into_iter().reduce(Expr::and).unwrap_or_else(|| Expr::bool(true)))
    }
}

/// A sum; what is negative is taken away.
fn plus(sum: Term, part: Term) -> Term {
    match part.as_literal().and_then(crate::expression::Literal::negated) {
        Some(positive) => sum - Expr::int(positive),
        None => sum + part,
    }
}
