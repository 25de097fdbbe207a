//! Which kernels multiply tiles of two matrices.

use super::body::{Body, Code, Fold, VarId};
use super::index::AxisId;
use super::space::Space;
use crate::expression::{A, B};

/// The only fold of a kernel, a sum of products; one factor varies with the rows of the result, the other with its columns.
#[derive(Debug, Clone, Copy)]
pub struct Tiles {
    pub total: VarId,
    pub left: VarId,
    pub right: VarId,
    pub row: AxisId,
    pub column: AxisId,
    /// What is added up along.
    pub inner: AxisId,
}

impl Tiles {
    /// The product that a kernel computes, whose two innermost loops are rows and columns of a tile; `None` where it computes
    /// something else, too, that is no arithmetic.
    pub fn of(body: &Body, space: &Space) -> Option<Tiles> {
        let ([.., row, column], [inner]) = (&space.kept[..], &space.reduced[..]) else {
            return None;
        };
        let (row, column, inner) = (*row, *column, *inner);
        let folds = |id: &VarId| {
            matches!(
                body.vars[*id].code,
                Code::Reduce { .. } | Code::Scan { .. } | Code::Sort { .. } | Code::Window { .. }
            )
        };
        let mut folds = body.live().into_iter().filter(folds);
        let (Some(total), None) = (folds.next(), folds.next()) else { return None };
        let Code::Reduce { fold: Fold::Sum, value } = body.vars[total].code else { return None };
        let Code::Compute { formula, operands } = &body.vars[value].code else { return None };
        let [one, other] = operands[..] else { return None };
        let varies = |var: VarId, axis: AxisId| body.vars[var].axes.contains(&axis);
        let is_along =
            |var, own, other| varies(var, own) && varies(var, inner) && !varies(var, other);
        let is_pair = |left, right| is_along(left, row, column) && is_along(right, column, row);
        let [left, right] = [[one, other], [other, one]]
            .into_iter()
            .find(|[left, right]| *formula == A * B && is_pair(*left, *right))?;
        let is_stored_along = body.stores.iter().any(|store| varies(store.value, inner));
        (!is_stored_along).then_some(Tiles { total, left, right, row, column, inner })
    }
}
