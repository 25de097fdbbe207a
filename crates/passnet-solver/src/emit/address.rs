//! Where elements lie, as text.

use super::writer::Writer;
use crate::analysis::body::Guard;
use crate::analysis::index::{Atom, AxisId, Index};
use crate::analysis::{Refusal, Size};

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

    pub(super) fn index(&mut self, index: &Index) -> Result<String, Refusal> {
        let mut parts = Vec::new();
        let mut columns = None;
        let mut followed: Vec<AxisId> = Vec::new();
        for (name, loops) in self.running.clone() {
            let Some(stride) = self.running_stride(index, &loops)? else { continue };
            let text = match stride.is(1) {
                true => name.to_string(),
                false => format!("{name} * {}", self.names.text(&stride, "stride")?),
            };
            // Columns come last: rows have an address, and columns lie behind it.
            match name {
                "column" => columns = Some(text),
                _ => parts.push(text),
            }
            followed.extend(loops);
        }
        let covered = |atom: &Atom| matches!(atom, Atom::Axis(axis) if followed.contains(axis));
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
        parts.extend(columns);
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
