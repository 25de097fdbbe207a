//! A product in tiles: each program computes one of the result, for which it walks along the rows of one operand and the
//! columns of the other.

use super::loops::lanes;
use super::statement::{Term, word};
use super::writer::Writer;
use crate::analysis::Refusal;
use crate::analysis::body::{Code, Fold, Kind, VarId};
use crate::analysis::index::AxisId;
use crate::analysis::tiles::Tiles;
use crate::expression::{Expr, Lift, Literal};
use std::collections::BTreeSet;

/// Steps of the sum that a tile of an operand holds.
pub(super) const INNER: usize = 32;

/// One operand of a product, while it is written: what its tiles go along, and the masks for its own loop, for the steps of
/// the sum, and for both.
#[derive(Debug, Clone, Copy)]
pub(super) struct Side {
    own: AxisId,
    inner: AxisId,
    masks: [&'static str; 3],
}

impl Side {
    /// The mask for something that varies with these loops.
    pub(super) fn mask(self, axes: &BTreeSet<AxisId>) -> Option<&'static str> {
        let [own, inner, both] = self.masks;
        match (axes.contains(&self.own), axes.contains(&self.inner)) {
            (true, true) => Some(both),
            (true, false) => Some(own),
            (false, true) => Some(inner),
            (false, false) => None,
        }
    }
}

impl Writer<'_> {
    /// Writes the sum of a product, which the results are made of.
    pub(super) fn product(&mut self, tiles: Tiles) -> Result<(), Refusal> {
        let Tiles { total, left, right, row, column, inner } = tiles;
        let size = self.names.size(&self.body.axes[inner], "inner")?;
        let along = BTreeSet::from([inner]);
        let name = self.body.vars[total].name.clone().unwrap_or_else(|| "total".into());
        self.outer_values(left, &along)?;
        self.outer_values(right, &along)?;
        self.define(&*name, self.full(Fold::Sum, Kind::Float));
        self.open();
        let left_masks = ["row_inside", "along_inside", "left_inside"];
        let side = Side { own: row, inner, masks: left_masks };
        let left = self.operand(left, side, ("along", Lift::Columns), &size)?;
        let right_masks = ["column_inside", "down_inside", "right_inside"];
        let side = Side { own: column, inner, masks: right_masks };
        let right = self.operand(right, side, ("down", Lift::Rows), &size)?;
        // Without TF32: what eager multiplies in float32 is judged as float32.
        let precision = Expr::Literal(Literal::Constant("\"ieee\""));
        // Steps are added up by themselves first: a sum of a few sums is rounded less than one of all products.
        let sum = Expr::call("tl.dot", [left, right]).with("input_precision", precision);
        self.add_to(&*name, sum);
        self.close("start", Expr::call("range", [Expr::int(0), size, word("INNER")]));
        self.known.insert(total, word(name));
        Ok(())
    }

    /// A tile of an operand; nothing is added up where it ends.
    fn operand(
        &mut self,
        var: VarId,
        side: Side,
        (step, lift): (&'static str, Lift),
        size: &Term,
    ) -> Result<Term, Refusal> {
        let [own, inside, both] = side.masks;
        self.define(step, word("start") + lanes("INNER").lifted(lift));
        self.define(inside, word(step).below(size.clone()));
        self.define(both, word(own).and(word(inside)));
        self.axis_names.insert(side.inner, step.into());
        self.side = Some(side);
        let value = self.value(var);
        self.side = None;
        // The other operand sees these steps from its own side, and after the sum nobody sees them.
        let body = self.body;
        self.known.retain(|var, _| !body.vars[*var].axes.contains(&side.inner));
        let value = value?;
        Ok(match body.vars[var].code {
            // A masked load has zeros there already.
            Code::Load { .. } => value,
            _ => Expr::select(word(both), value, Expr::float(0.0)),
        })
    }
}
