//! The loops of a kernel: rows and columns of a tile, and the slabs that rows belong to.

use super::names::mentions;
use super::shape::Shape;
use super::writer::{Loops, Writer};
use crate::analysis::body::{Code, Guard, Store};
use crate::analysis::index::AxisId;
use crate::analysis::space::Space;
use crate::analysis::{Refusal, Size, product};
use std::collections::BTreeSet;

/// Elements from which on a slab is worked on by programs of its own.
const LEAST_SLAB: i64 = 1024;

impl Writer<'_> {
    /// Writes the loop variables; gives the names of their sizes.
    pub(super) fn loops(&mut self, space: &Space) -> Result<Loops, Refusal> {
        let graphs = self.piece.graphs;
        let axes = &self.body.axes;
        let sizes = |loops: &[AxisId]| -> Result<Size, Refusal> {
            product(loops.iter().map(|axis| &axes[*axis]), graphs)
        };
        if self.shape == Shape::Flat {
            let size = self.names.text(&sizes(&space.kept)?, "count")?;
            self.line("place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)");
            self.line(format!("inside = place < {size}"));
            self.axis_text.extend(space.kept.iter().map(|axis| (*axis, "place".to_string())));
            return Ok(Loops { slabs: None, rows: "1".into(), columns: size });
        }
        let (outer, inner): (&[AxisId], &[AxisId]) = match self.shape {
            Shape::Tiled => space.kept.split_at(space.kept.len() - 1),
            _ => (&space.kept, &space.reduced),
        };
        let (slab_axes, outer) = match outer {
            [slabs @ .., last] if self.has_slabs(slabs, *last) => (slabs, &outer[slabs.len()..]),
            _ => (&[][..], outer),
        };
        let rows = self.names.text(&sizes(outer)?, "rows")?;
        let slabs = match slab_axes {
            [] => None,
            several => Some(self.names.text(&sizes(several)?, "slabs")?),
        };
        let columns = self.names.text(&sizes(inner)?, "columns")?;
        if slabs.is_some() {
            self.line(format!("tiles = tl.cdiv({rows}, ROWS)"));
            self.line("slab = tl.program_id(0) // tiles");
            self.line("row = tl.program_id(0) % tiles * ROWS + tl.arange(0, ROWS)[:, None]");
        } else {
            self.line("row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]");
        }
        let start = match self.shape {
            Shape::Tiled => "tl.program_id(1) * COLUMNS + ",
            _ => "",
        };
        if self.shape == Shape::LongRows {
            self.line("lane = tl.arange(0, COLUMNS)[None, :]");
        } else {
            self.line(format!("column = {start}tl.arange(0, COLUMNS)[None, :]"));
        }
        self.line(format!("row_inside = row < {rows}"));
        if self.shape != Shape::LongRows {
            self.line(format!("column_inside = column < {columns}"));
            self.line("inside = row_inside & column_inside");
        }
        self.decompose("row", outer, "row")?;
        self.running = vec![("row", outer.to_vec()), ("column", inner.to_vec())];
        if slabs.is_some() {
            self.decompose("slab", slab_axes, "slab")?;
            self.running[0] = ("slab", slab_axes.to_vec());
            self.slab_axes = slab_axes.iter().copied().collect();
        }
        if self.shape != Shape::LongRows {
            self.decompose("column", inner, "column")?;
        }
        Ok(Loops { slabs, rows, columns })
    }

    /// Whether a program's rows are those of the innermost loop alone, so that addresses step evenly from row to row:
    /// not where something is stored once for all of them.
    fn has_slabs(&self, slabs: &[AxisId], rows: AxisId) -> bool {
        let varies = |store: &Store| {
            let mut varies = false;
            store.address.for_each_axis(&mut |axis| varies |= axis == rows);
            varies
        };
        self.shape != Shape::LongRows
            && !slabs.is_empty()
            && self.body.stores.iter().all(varies)
            && !self.is_small(rows)
    }

    /// Whether a slab of these rows is not worth a program of its own: it has few elements, and only addresses depend on the
    /// row, no conditions.
    fn is_small(&self, rows: AxisId) -> bool {
        let by_row = |guard: &Guard| {
            let mut by_row = false;
            guard.index.for_each_axis(&mut |axis| by_row |= !self.lanes.contains(&axis));
            by_row
        };
        let simple = self.body.vars.iter().all(|var| match &var.code {
            Code::Load { guards, .. } | Code::Inside(guards) => !guards.iter().any(by_row),
            Code::Window { .. } => false,
            _ => true,
        });
        let columns = self.lanes.iter().map(|axis| self.body.axes[*axis].largest());
        let elements = columns.fold(self.body.axes[rows].largest(), i64::saturating_mul);
        simple && elements < LEAST_SLAB
    }

    /// Drops the lines that take a loop out of a running number which nothing needs.
    pub(super) fn drop_unused_loops(&mut self) {
        let names: BTreeSet<String> =
            self.axis_text.values().filter(|text| text.contains('_')).cloned().collect();
        let defines = |line: &str, name: &str| {
            line.trim_start().strip_prefix(name).is_some_and(|rest| rest.starts_with(" = "))
        };
        for name in names {
            let mut used = false;
            for at in (0..self.lines.len()).rev() {
                if defines(&self.lines[at], &name) {
                    if !used {
                        self.lines.remove(at);
                    }
                    used = false;
                } else {
                    used |= mentions(&self.lines[at], &name);
                }
            }
        }
    }

    /// The loops that one running number stands for.
    pub(super) fn decompose(
        &mut self,
        running: &str,
        loops: &[AxisId],
        hint: &str,
    ) -> Result<(), Refusal> {
        if let [only] = loops {
            self.axis_text.insert(*only, running.to_string());
            return Ok(());
        }
        let mut stride = Size::fixed(1, self.piece.graphs);
        for (place, axis) in loops.iter().enumerate().rev() {
            let size = self.body.axes[*axis].clone();
            let name = format!("{hint}_{place}");
            let by = self.names.text(&stride, &format!("stride_{place}"))?;
            let quotient =
                if by == "1" { running.to_string() } else { format!("{running} // {by}") };
            if place == 0 {
                self.line(format!("{name} = {quotient}"));
            } else {
                let size = self.names.text(&size, &format!("size_{place}"))?;
                self.line(format!("{name} = {quotient} % {size}"));
            }
            self.axis_text.insert(*axis, name);
            stride = stride.times(&size)?;
        }
        Ok(())
    }
}
