//! The loops of a kernel: rows and columns of a tile, and the slabs that rows belong to.

use super::shape::Shape;
use super::statement::{Term, program, word};
use super::writer::{Loops, Writer};
use crate::analysis::body::{Code, Guard, Store};
use crate::analysis::index::AxisId;
use crate::analysis::space::Space;
use crate::analysis::{Refusal, Size, product};
use crate::expression::{Binary, Expr, Lift};

/// Elements from which on a slab is worked on by programs of its own.
const LEAST_SLAB: i64 = 1024;
/// Lanes of a program, of which a smaller slab leaves some idle.
const LANES: i64 = 128;

impl Writer<'_> {
    /// Writes the loop variables; gives the names of their sizes.
    pub(super) fn loops(&mut self, space: &Space) -> Result<Loops, Refusal> {
        let graphs = self.piece.graphs;
        let axes = &self.body.axes;
        let sizes = |loops: &[AxisId]| -> Result<Size, Refusal> {
            product(loops.iter().map(|axis| &axes[*axis]), graphs)
        };
        if self.shape == Shape::Flat {
            let size = self.names.size(&sizes(&space.kept)?, "count")?;
            self.define("place", program(0) * word("BLOCK") + lanes("BLOCK"));
            self.define("inside", word("place").below(size.clone()));
            self.axis_names.extend(space.kept.iter().map(|axis| (*axis, "place".to_string())));
            return Ok(Loops { slabs: None, rows: Expr::int(1), columns: size });
        }
        if self.one_row {
            let rows = self.names.size(&sizes(&space.kept)?, "rows")?;
            let columns = self.names.size(&sizes(&space.reduced)?, "columns")?;
            return self.loops_of_one_row(space, rows, columns);
        }
        let (outer, inner): (&[AxisId], &[AxisId]) = match self.shape {
            Shape::Tiled | Shape::Product => space.kept.split_at(space.kept.len() - 1),
            _ => (&space.kept, &space.reduced),
        };
        let (slab_axes, outer) = match outer {
            [slabs @ .., last] if self.has_slabs(slabs, *last) => (slabs, &outer[slabs.len()..]),
            _ => (&[][..], outer),
        };
        let rows = self.names.size(&sizes(outer)?, "rows")?;
        let slabs = match slab_axes {
            [] => None,
            several => Some(self.names.size(&sizes(several)?, "slabs")?),
        };
        let columns = self.names.size(&sizes(inner)?, "columns")?;
        let rows_of_tile = lanes("ROWS").lifted(Lift::Rows);
        if slabs.is_some() {
            let number = |how| Expr::binary(how, program(0), word("tiles"));
            self.define("tiles", Expr::call("tl.cdiv", [rows.clone(), word("ROWS")]));
            self.define("slab", number(Binary::FloorOver));
            self.define("row", number(Binary::Modulo) * word("ROWS") + rows_of_tile);
        } else {
            self.define("row", program(0) * word("ROWS") + rows_of_tile);
        }
        let across = lanes("COLUMNS").lifted(Lift::Columns);
        match self.shape {
            Shape::LongRows | Shape::Walked => self.define("lane", across),
            Shape::Tiled | Shape::Product => {
                self.define("column", program(1) * word("COLUMNS") + across)
            }
            _ => self.define("column", across),
        }
        self.define("row_inside", word("row").below(rows.clone()));
        if !self.shape.is_walk() {
            self.define_inside(&columns);
        }
        self.decompose("row", outer, "row")?;
        self.running = vec![("row", outer.to_vec()), ("column", inner.to_vec())];
        if slabs.is_some() {
            self.decompose("slab", slab_axes, "slab")?;
            self.running[0] = ("slab", slab_axes.to_vec());
            self.slab_axes = slab_axes.iter().copied().collect();
        }
        if !self.shape.is_walk() {
            self.decompose("column", inner, "column")?;
        }
        Ok(Loops { slabs, rows, columns })
    }

    /// A program's only row is its number, and tiles have one dimension: with another one, of a single step, Triton would give
    /// what is read once for several columns another layout than the rest, and take everything through shared memory.
    fn loops_of_one_row(
        &mut self,
        space: &Space,
        rows: Term,
        columns: Term,
    ) -> Result<Loops, Refusal> {
        self.define("row", program(0));
        self.loop_names.insert("row".into());
        self.running = vec![("row", space.kept.clone()), ("column", space.reduced.clone())];
        if self.shape == Shape::LongRows {
            self.define("lane", lanes("COLUMNS"));
            self.decompose("row", &space.kept, "row")?;
        } else {
            self.define("column", lanes("COLUMNS"));
            self.define_inside(&columns);
            self.decompose("row", &space.kept, "row")?;
            self.decompose("column", &space.reduced, "column")?;
        }
        Ok(Loops { slabs: None, rows, columns })
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
            && (self.shape == Shape::Product || !self.is_small(rows))
    }

    /// Whether a slab of these rows is not worth a program of its own: it has fewer elements than a program has lanes, or few
    /// elements, and only addresses depend on the row, no conditions.
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
        elements < LANES || (simple && elements < LEAST_SLAB)
    }

    /// Which lanes lie inside the row, and which elements inside the tile.
    pub(super) fn define_inside(&mut self, columns: &Term) {
        self.define("column_inside", word("column").below(columns.clone()));
        if !self.one_row {
            self.define("inside", word("row_inside").and(word("column_inside")));
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
            self.axis_names.insert(*only, running.to_string());
            return Ok(());
        }
        let mut stride = Size::fixed(1, self.piece.graphs);
        for (place, axis) in loops.iter().enumerate().rev() {
            let size = self.body.axes[*axis].clone();
            let name = format!("{hint}_{place}");
            let mut number = word(running);
            if stride.constant() != Some(1) {
                let by = self.names.size(&stride, &format!("stride_{place}"))?;
                number = Expr::binary(Binary::FloorOver, number, by);
            }
            if place > 0 {
                let size = self.names.size(&size, &format!("size_{place}"))?;
                number = Expr::binary(Binary::Modulo, number, size);
            }
            self.define(name.clone(), number);
            self.loop_names.insert(name.clone());
            self.axis_names.insert(*axis, name);
            stride = stride.times(&size)?;
        }
        Ok(())
    }
}

/// The lanes of a block.
pub(super) fn lanes(size: &str) -> Term {
    Expr::call("tl.arange", [Expr::int(0), word(size)])
}
