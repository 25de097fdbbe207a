//! Chains of elementwise work that exist as one kernel. The kernel rounds where the chain did, so results are the same.

use super::Lower;
use crate::exec::group::{Cost, LaneOp, Micro};
use crate::exec::registers::{SReg, Src, VReg};
use crate::exec::simd::{self, Kernel, Mode};
use crate::ir::{BinaryOp, UnaryOp};
use crate::lane::Lane;
use crate::types::Elem;

impl Lower<'_> {
    /// Replaces the last kernel of each known chain; what nobody reads any more is dropped later.
    pub(super) fn fuse(&self, micros: &mut [Micro]) {
        for at in 0..micros.len() {
            if let Some(x) = self.sigmoid_of(micros, at)
                && let Micro::Map { dst, .. } = micros[at]
            {
                let f = simd::sigmoid(self.isa);
                let (a, b, c) = (Src::V(x), Src::None, Src::None);
                let op = Some(LaneOp::Sigmoid);
                micros[at] = Micro::Map { f, op, dst, a, b, c, cost: Cost::Heavy };
            }
        }
    }

    /// `x` if the micro computes `1 / (1 + exp(-x))`.
    fn sigmoid_of(&self, micros: &[Micro], at: usize) -> Option<VReg> {
        let float = |op, mode| simd::binary(self.isa, op, Lane::F32, Elem::F32, mode);
        let is = |f: Kernel, other: Option<Kernel>| other.is_some_and(|g| f as usize == g as usize);
        let map = |reg: VReg, before: usize| {
            (0..before).rev().find_map(|i| match micros[i] {
                Micro::Map { f, dst, a, b, .. } if dst == reg => Some((i, f, a, b)),
                _ => None,
            })
        };
        let Micro::Map { f, a: Src::S(one), b: Src::V(sum), .. } = micros[at] else { return None };
        if !is(f, float(BinaryOp::Div, Mode::SV)) || !self.is_float(one, 1.0) {
            return None;
        }
        let (at, f, a, b) = map(sum, at)?;
        let (one, exp) = match (a, b) {
            (Src::S(one), Src::V(exp)) if is(f, float(BinaryOp::Add, Mode::SV)) => (one, exp),
            (Src::V(exp), Src::S(one)) if is(f, float(BinaryOp::Add, Mode::VS)) => (one, exp),
            _ => return None,
        };
        if !self.is_float(one, 1.0) {
            return None;
        }
        let (at, f, a, _) = map(exp, at)?;
        let Src::V(negative) = a else { return None };
        if !is(f, simd::unary(self.isa, UnaryOp::Exp, Lane::F32)) {
            return None;
        }
        let (_, f, a, b) = map(negative, at)?;
        match (a, b) {
            (Src::V(x), _) if is(f, simd::unary(self.isa, UnaryOp::Neg, Lane::F32)) => Some(x),
            // Zero minus x differs from minus x in the sign of zero alone, which exp does not see.
            (Src::S(zero), Src::V(x))
                if is(f, float(BinaryOp::Sub, Mode::SV)) && self.is_float(zero, 0.0) =>
            {
                Some(x)
            }
            _ => None,
        }
    }

    fn is_float(&self, reg: SReg, value: f32) -> bool {
        self.known_int(reg).is_some_and(|bits| f32::from_bits(bits as u32) == value)
    }
}
