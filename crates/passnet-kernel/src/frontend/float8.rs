//! Floats of eight bits: kernels convert, move and multiply them. The tile IR knows bytes only, so that conversions become
//! integer arithmetic here, and what is left of the types is replaced when a kernel is complete.
//!
//! A conversion to eight bits rounds to nearest even and saturates at the largest finite number, as `cvt.rn.satfinite` of
//! a GPU does.

use super::Compiler;
use crate::ir::{BinaryOp, Block, CmpOp, Function, Inst, Literal, Op, UnaryOp, ValueId};
use crate::types::{Elem, Lane, Type};

/// How the bits of a type are laid out.
struct Layout {
    mantissa: u32,
    bias: i32,
    /// The code of the largest finite number.
    most: i64,
}

fn layout(elem: Elem) -> Layout {
    match elem {
        Elem::F8E5 => Layout { mantissa: 2, bias: 15, most: 0x7b },
        _ => Layout { mantissa: 3, bias: 7, most: 0x7e },
    }
}

/// The code of NaN, without its sign.
const NAN: i64 = 0x7f;
/// The exponent bias and the mantissa's bits of float32, and its infinity.
const BIAS_32: i32 = 127;
const MANTISSA_32: u32 = 23;
const INFINITY_32: i64 = 0x7f80_0000;

impl Compiler<'_> {
    fn whole(&mut self, value: i64, ty: &Type) -> ValueId {
        self.constant_like(ty, Literal::Int(value))
    }

    fn with(&mut self, op: BinaryOp, a: ValueId, value: i64) -> ValueId {
        let ty = self.ty(a);
        let b = self.whole(value, &ty);
        self.b.emit(Op::Binary(op), &[a, b], ty)
    }

    fn bits(&mut self, v: ValueId, elem: Elem) -> ValueId {
        let ty = self.ty(v).with_elem(elem);
        self.b.emit(Op::Bitcast, &[v], ty)
    }

    fn select(&mut self, condition: ValueId, a: ValueId, b: ValueId) -> ValueId {
        let ty = self.ty(a);
        self.b.emit(Op::Select, &[condition, a, b], ty)
    }

    /// `a op value` on whole numbers.
    fn test(&mut self, op: CmpOp, a: ValueId, value: i64) -> ValueId {
        let ty = self.ty(a);
        let b = self.whole(value, &ty);
        self.b.emit(Op::Compare(op), &[a, b], ty.with_elem(Elem::I1))
    }

    /// The value as float16, which holds every number of eight bits.
    pub(super) fn widen_float8(&mut self, v: ValueId) -> ValueId {
        let elem = self.ty(v).elem();
        let byte = self.bits(v, Elem::U8);
        let code = self.cast(byte, Elem::U16);
        if elem == Elem::F8E5 {
            let shifted = self.with(BinaryOp::Shl, code, 8);
            return self.bits(shifted, Elem::F16);
        }
        // With the mantissa in place the exponent is too small by the difference of the biases, eight.
        let sign = self.with(BinaryOp::And, code, 0x80);
        let sign = self.with(BinaryOp::Shl, sign, 8);
        let rest = self.with(BinaryOp::And, code, 0x7f);
        let moved = self.with(BinaryOp::Shl, rest, 7);
        let ty = self.ty(moved);
        let joined = self.b.emit(Op::Binary(BinaryOp::Or), &[sign, moved], ty);
        let small = self.bits(joined, Elem::F16);
        let ty = self.ty(small);
        let scale = self.constant_like(&ty, Literal::Float(256.0));
        let value = self.b.emit(Op::Binary(BinaryOp::Mul), &[small, scale], ty.clone());
        let is_nan = self.test(CmpOp::Eq, rest, NAN);
        let nan = self.constant_like(&ty, Literal::Float(f64::NAN));
        self.select(is_nan, nan, value)
    }

    pub(super) fn narrow_float8(&mut self, v: ValueId, elem: Elem) -> ValueId {
        let Layout { mantissa, bias, most } = layout(elem);
        let value = self.cast(v, Elem::F32);
        let word = self.bits(value, Elem::U32);
        let sign = self.with(BinaryOp::Shr, word, 24);
        let sign = self.with(BinaryOp::And, sign, 0x80);
        let size = self.with(BinaryOp::And, word, 0x7fff_ffff);
        // Rounding the bits carries into the exponent where it must.
        let dropped = MANTISSA_32 - mantissa;
        let odd = self.with(BinaryOp::Shr, size, i64::from(dropped));
        let odd = self.with(BinaryOp::And, odd, 1);
        let half = self.with(BinaryOp::Add, size, (1 << (dropped - 1)) - 1);
        let ty = self.ty(size);
        let rounded = self.b.emit(Op::Binary(BinaryOp::Add), &[half, odd], ty.clone());
        let normal = self.with(BinaryOp::Shr, rounded, i64::from(dropped));
        let normal = self.with(BinaryOp::Sub, normal, i64::from(BIAS_32 - bias) << mantissa);
        let largest = self.whole(most, &ty);
        let normal = self.b.emit(Op::Binary(BinaryOp::Min), &[normal, largest], ty.clone());
        // Below the smallest normal number codes count steps of one size.
        let magnitude = self.bits(size, Elem::F32);
        let float = self.ty(magnitude);
        let steps =
            self.constant_like(&float, Literal::Float(2f64.powi(bias - 1 + mantissa as i32)));
        let counted = self.b.emit(Op::Binary(BinaryOp::Mul), &[magnitude, steps], float.clone());
        let counted = self.b.emit(Op::Unary(UnaryOp::Rint), &[counted], float);
        let small = self.cast(counted, Elem::U32);
        let is_small = self.test(CmpOp::Lt, size, i64::from(BIAS_32 + 1 - bias) << MANTISSA_32);
        let code = self.select(is_small, small, normal);
        let is_nan = self.test(CmpOp::Gt, size, INFINITY_32);
        let nan = self.whole(NAN, &ty);
        let code = self.select(is_nan, nan, code);
        let code = self.b.emit(Op::Binary(BinaryOp::Or), &[code, sign], ty);
        let byte = self.cast(code, Elem::U8);
        self.bits(byte, elem)
    }
}

/// What an instruction would compute with floats of eight bits, where it does more than move them.
pub(super) fn computes(function: &Function) -> Option<&Inst> {
    let mut found = None;
    function.for_each_inst(&mut |inst| {
        let narrow = |v: &ValueId| matches!(function.ty(*v).lane, Lane::Num(e) if e.is_float8());
        let moves = matches!(
            inst.op,
            Op::Const(Literal::Int(_))
                | Op::Splat
                | Op::Broadcast
                | Op::Reshape
                | Op::Permute(_)
                | Op::Join
                | Op::Split
                | Op::Cat
                | Op::Select
                | Op::Bitcast
                | Op::Gather { .. }
                | Op::Load { .. }
                | Op::Store { .. }
                | Op::If
                | Op::For
                | Op::While
        );
        if !moves && inst.args.iter().chain(&inst.results).any(narrow) {
            found.get_or_insert(inst);
        }
    });
    found
}

/// Bytes in place of floats of eight bits.
pub(super) fn to_bytes(function: &mut Function) {
    for ty in &mut function.types {
        match &mut ty.lane {
            Lane::Num(elem) | Lane::Ptr(elem) if elem.is_float8() => *elem = Elem::U8,
            _ => {}
        }
    }
    drop_empty_bitcasts(&mut function.body, &function.types);
}

/// A byte that was a float of eight bits needs no bitcast: its users take the byte itself.
fn drop_empty_bitcasts(block: &mut Block, types: &[Type]) {
    let mut same = rustc_hash::FxHashMap::default();
    replace(block, types, &mut same);
}

fn replace(block: &mut Block, types: &[Type], same: &mut rustc_hash::FxHashMap<ValueId, ValueId>) {
    let mut kept = Vec::with_capacity(block.insts.len());
    for mut inst in block.insts.drain(..) {
        for arg in &mut inst.args {
            *arg = same.get(arg).copied().unwrap_or(*arg);
        }
        if inst.op == Op::Bitcast && types[inst.args[0].index()] == types[inst.results[0].index()] {
            same.insert(inst.results[0], inst.args[0]);
            continue;
        }
        for region in &mut inst.regions {
            replace(region, types, same);
        }
        kept.push(inst);
    }
    block.insts = kept;
    for value in &mut block.yields {
        *value = same.get(value).copied().unwrap_or(*value);
    }
}
