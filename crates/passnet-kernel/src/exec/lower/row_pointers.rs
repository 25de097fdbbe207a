//! Pointers that differ from row to row in any way, and step evenly inside a row: of a table whose rows are looked up, or
//! where rows are rolled. The interpreter takes them lane by lane, machine code row by row.

use super::{Lower, Rep, Result};
use crate::exec::group::{MaskForm, Micro, RowForm};
use crate::exec::registers::{Src, VReg};
use crate::exec::simd::{self, Mode};
use crate::exec::views::{Strides, collapse, plain};
use crate::ir::{BinaryOp, Inst, Op};
use crate::lane::Lane;
use crate::types::{Elem, Shape};

/// Rows shorter than this are no matter of rows.
const SHORTEST: u32 = 16;

impl Lower<'_> {
    /// A column of addresses plus an even step inside the row.
    pub(super) fn row_pointers(&mut self, inst: &Inst) -> Result<Option<Rep>> {
        let shape = self.ty(inst.results[0]).shape.clone();
        if inst.op != Op::AddPtr || shape.len() != 2 || shape[1] < SHORTEST {
            return Ok(None);
        }
        let Rep::Dense { buffer, offset, strides } = self.rep(inst.args[0])? else {
            return Ok(None);
        };
        let Some((base, steps)) = self.even_steps(inst.args[1], &shape) else { return Ok(None) };
        let size = self.ty(inst.args[0]).elem().size() as i64;
        let is_row = strides[1] == 0 && strides[0] >= 0 && steps[0] == 0;
        let Some(step) = steps[1].checked_mul(size).filter(|_| is_row) else { return Ok(None) };
        let size = self.int_reg(size);
        let base = self.int_op(BinaryOp::Mul, base, size);
        Ok(Some(Rep::Rows { buffer, offset, lanes: strides[0], base, step }))
    }

    /// The addresses lane by lane.
    pub(super) fn fetch_rows(&mut self, rep: &Rep, shape: &Shape) -> Result<VReg> {
        let Rep::Rows { offset, lanes, base, step, .. } = rep else {
            return Err(self.error("internal error: no rows"));
        };
        let of_row = collapse(shape, &[*lanes, 0]);
        let inside = collapse(shape, &[0, *step]);
        let (from, base) = (*offset, *base);
        let first = self.push(Lane::I64, |dst| Micro::Strided { dst, from, dims: of_row })?;
        let rest = self.push(Lane::I64, |dst| Micro::Iota { dst, base, dims: inside })?;
        let add = simd::binary(self.isa, BinaryOp::Add, Lane::I64, Elem::I64, Mode::VV);
        let add = self.kernel(add, "add")?;
        self.map(add, Lane::I64, [Src::V(first), Src::V(rest), Src::None])
    }

    /// What machine code needs to know of such pointers.
    pub(super) fn row_form(&self, rep: &Rep, shape: &Shape, mask: &MaskForm) -> Option<RowForm> {
        let Rep::Rows { offset, lanes, base, step, .. } = rep else { return None };
        let strides = Strides::from_slice(&[0, *step]);
        let dims = match mask {
            MaskForm::Lanes(_) => return None,
            MaskForm::Box(_) => plain(shape, &strides),
            _ => collapse(shape, &strides),
        };
        let step = usize::try_from(*lanes).ok()? * Lane::I64.size();
        Some(RowForm { at: *offset, step, base: *base, dims, mask: mask.clone() })
    }
}
