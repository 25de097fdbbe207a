//! Where elements lie, as text.

use super::kernel::Writer;
use crate::analysis::body::Guard;
use crate::analysis::index::{Atom, Index};
use crate::analysis::{Refusal, Size};

impl Writer<'_> {
    /// The stride with which an index follows the running number as a whole, if it does.
    fn running_stride(&self, index: &Index) -> Result<Option<Size>, Refusal> {
        let mut stride: Option<Size> = None;
        for axis in self.outer.iter().rev() {
            let own = index.terms.iter().find_map(|(atom, factor)| match atom {
                Atom::Axis(own) if own == axis => Some(factor),
                _ => None,
            });
            let Some(own) = own else { return Ok(None) };
            let wanted = match &stride {
                None => own.clone(),
                Some(wanted) if wanted.same(own) => own.clone(),
                Some(_) => return Ok(None),
            };
            stride = Some(wanted.times(&self.body.axes[*axis])?);
        }
        let last = self.outer.last().filter(|_| self.outer.len() > 1);
        let first = last.and_then(|last| {
            index.terms.iter().find_map(|(atom, factor)| match atom {
                Atom::Axis(own) if own == last => Some(factor.clone()),
                _ => None,
            })
        });
        Ok(first)
    }

    pub(super) fn index(&mut self, index: &Index) -> Result<String, Refusal> {
        let mut parts = Vec::new();
        let running = self.running_stride(index)?;
        if let Some(stride) = &running {
            parts.push(match stride.is(1) {
                true => self.running.to_string(),
                false => format!("{} * {}", self.running, self.names.text(stride, "stride")?),
            });
        }
        let covered = |atom: &Atom| {
            running.is_some() && matches!(atom, Atom::Axis(axis) if self.outer.contains(axis))
        };
        let mut terms: Vec<&(Atom, Size)> =
            index.terms.iter().filter(|(atom, _)| !covered(atom)).collect();
        terms.sort_by_key(|(_, factor)| std::cmp::Reverse(factor.values().to_vec()));
        for (atom, factor) in terms {
            let text = match atom {
                Atom::Axis(axis) => self.axis_text.get(axis).cloned().unwrap_or_else(|| "0".into()),
                Atom::Window(window) => format!("w{window}"),
                Atom::Value(var) => self.value(*var)?,
                Atom::Div(inner, by) => {
                    let inner = self.index(inner)?;
                    format!("({inner}) // {}", self.names.text(by, "part")?)
                }
                Atom::Mod(inner, by) => {
                    let inner = self.index(inner)?;
                    format!("({inner}) % {}", self.names.text(by, "part")?)
                }
            };
            if factor.is(1) {
                parts.push(text);
            } else {
                let factor = self.names.text(factor, "stride")?;
                parts.push(match text.contains(' ') {
                    true => format!("({text}) * {factor}"),
                    false => format!("{text} * {factor}"),
                });
            }
        }
        if !index.constant.is(0) {
            parts.push(self.names.text(&index.constant, "offset")?);
        }
        if parts.is_empty() {
            parts.push("0".into());
        }
        Ok(parts.join(" + ").replace("+ -", "- "))
    }

    pub(super) fn guards(&mut self, guards: &[Guard]) -> Result<String, Refusal> {
        let mut parts = Vec::new();
        for guard in guards {
            let index = self.index(&guard.index)?;
            let index = if index.contains(' ') { format!("({index})") } else { index };
            if let Some(low) = &guard.low {
                parts.push(format!("({index} >= {})", self.names.text(low, "low")?));
            }
            if let Some(high) = &guard.high {
                parts.push(format!("({index} < {})", self.names.text(high, "high")?));
            }
        }
        Ok(parts.join(" & "))
    }
}
