//! Arithmetic on lanes, with the interpreter's rounding.

use super::super::assembler::*;
use super::{Emit, Held};
use crate::exec::group::{Home, LaneOp};
use crate::exec::registers::{SReg, Src, VReg};
use crate::ir::{BinaryOp, CmpOp, UnaryOp};

impl Emit<'_> {
    pub(super) fn map(
        &mut self,
        asm: &mut Assembler,
        way: usize,
        op: LaneOp,
        dst: VReg,
        [a, b, c]: [Src; 3],
    ) -> Option<()> {
        if let LaneOp::Compare(op) = op {
            return self.compare(asm, way, op, dst, a, b);
        }
        let to = self.free.pop()?;
        match op {
            LaneOp::Unary(op) => {
                let x = self.register(asm, way, a, 1)?;
                self.unary(asm, op, to, x)?;
            }
            LaneOp::Sigmoid => {
                let x = self.register(asm, way, a, 1)?;
                asm.sigmoid(to, x);
            }
            LaneOp::RoundF16 => {
                let x = self.register(asm, way, a, 1)?;
                asm.round_f16(to, x);
            }
            LaneOp::RoundBF16 => {
                let x = self.register(asm, way, a, 1)?;
                asm.round_bf16(to, x);
            }
            LaneOp::Binary(op) => self.binary(asm, way, op, to, a, b)?,
            LaneOp::Fma => {
                let (x, y, z) = (
                    self.operand(asm, way, a)?,
                    self.register(asm, way, b, 1)?,
                    self.operand(asm, way, c)?,
                );
                asm.load(to, x);
                asm.op(FMA, to, y, z);
            }
            LaneOp::Select => {
                let k = match a {
                    Src::V(condition) => match self.ways[way].held[usize::from(condition.0)] {
                        Held::Mask(k) => k,
                        _ => return None,
                    },
                    Src::S(condition) => {
                        self.uniform_mask(asm, way, condition, asm.scratch.mask)?
                    }
                    Src::None => return None,
                };
                let (yes, no) = (self.operand(asm, way, b)?, self.register(asm, way, c, 1)?);
                asm.masked(BLEND, to, no, yes, k);
            }
            LaneOp::Compare(_) => return None,
        }
        self.define(asm, way, dst, to)
    }

    /// All lanes or none, as a register of truth values says.
    pub(super) fn uniform_mask(
        &mut self,
        asm: &mut Assembler,
        way: usize,
        condition: SReg,
        k: K,
    ) -> Option<K> {
        let [x, ..] = asm.scratch.lanes;
        let condition = self.operand(asm, way, Src::S(condition))?;
        asm.load(x, condition);
        let one = asm.bits(1);
        asm.op(INT_AND, x, x, one);
        let zero = asm.bits(0);
        asm.int_compare(k, x, zero, INT_NE, K0);
        Some(k)
    }

    fn compare(
        &mut self,
        asm: &mut Assembler,
        way: usize,
        op: CmpOp,
        dst: VReg,
        a: Src,
        b: Src,
    ) -> Option<()> {
        if let (Home::Full(_), _) = self.group.homes[usize::from(dst.0)] {
            return None;
        }
        let (x, y) = (self.register(asm, way, a, 1)?, self.operand(asm, way, b)?);
        let how = match op {
            CmpOp::Eq => EQ,
            CmpOp::Ne => NE,
            CmpOp::Lt => LT,
            CmpOp::Le => LE,
            CmpOp::Gt => GT,
            CmpOp::Ge => GE,
        };
        let k = self.free_masks.pop()?;
        asm.compare(k, x, y, how, K0);
        self.ways[way].held[usize::from(dst.0)] = Held::Mask(k);
        Some(())
    }

    fn binary(
        &mut self,
        asm: &mut Assembler,
        way: usize,
        op: BinaryOp,
        to: Zmm,
        a: Src,
        b: Src,
    ) -> Option<()> {
        let x = self.register(asm, way, a, 1)?;
        let simple = match op {
            BinaryOp::Add => Some(ADD),
            BinaryOp::Sub => Some(SUB),
            BinaryOp::Mul => Some(MUL),
            BinaryOp::Div => Some(DIV),
            _ => None,
        };
        if let Some(code) = simple {
            let y = self.operand(asm, way, b)?;
            asm.op(code, to, x, y);
            return Some(());
        }
        let y = self.register(asm, way, b, 0)?;
        match op {
            BinaryOp::Max => extreme(asm, MAX, (to, x, y), false),
            BinaryOp::Min => extreme(asm, MIN, (to, x, y), false),
            BinaryOp::MaxNan => extreme(asm, MAX, (to, x, y), true),
            BinaryOp::MinNan => extreme(asm, MIN, (to, x, y), true),
            _ => return None,
        }
        Some(())
    }

    fn unary(&mut self, asm: &mut Assembler, op: UnaryOp, to: Zmm, x: Zmm) -> Option<()> {
        match op {
            UnaryOp::Neg => {
                let sign = asm.number(-0.0);
                asm.op(XOR, to, x, sign);
            }
            UnaryOp::Abs => {
                let rest = asm.bits(0x7fff_ffff);
                asm.op(AND, to, x, rest);
            }
            UnaryOp::Exp => asm.exp(to, x),
            UnaryOp::Exp2 => asm.exp2(to, x),
            UnaryOp::Log => asm.log(to, x),
            UnaryOp::Tanh => asm.tanh(to, x),
            UnaryOp::Erf => asm.erf(to, x),
            UnaryOp::Sqrt => asm.unary(SQRT, to, x),
            UnaryOp::Rsqrt => {
                let [a, b, ..] = asm.scratch.lanes;
                asm.unary(SQRT, a, x);
                let one = asm.number(1.0);
                asm.load(b, one);
                asm.op(DIV, to, b, a);
            }
            UnaryOp::Floor => asm.round(to, x, DOWN),
            UnaryOp::Ceil => asm.round(to, x, UP),
            UnaryOp::Trunc => asm.round(to, x, TO_ZERO),
            UnaryOp::Rint => asm.round(to, x, NEAREST),
            _ => return None,
        }
        Some(())
    }
}

/// The smaller or larger of two; where the first is NaN the second, or NaN if that is to `spread`.
pub(super) fn extreme(asm: &mut Assembler, code: Code, (to, x, y): (Zmm, Zmm, Zmm), spread: bool) {
    let k = asm.scratch.mask;
    asm.compare(k, x, x, UNORDERED, K0);
    if spread {
        asm.op(code, to, x, y);
        asm.masked(BLEND, to, to, x, k);
    } else {
        asm.op(code, to, y, x);
        asm.masked(BLEND, to, to, y, k);
    }
}
