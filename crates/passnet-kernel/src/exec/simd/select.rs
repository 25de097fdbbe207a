//! From an operation and its types to the chunk kernel that does it.

use super::arith::*;
#[cfg(target_arch = "x86_64")]
use super::avx512::{self, Function};
use super::map::{Kernel, map1, map2, map3};
use crate::ir::{BinaryOp, CmpOp, UnaryOp};
use crate::lane::Lane;
use crate::types::Elem;
use passnet_cpu::Isa;

/// Which operands of a two- or three-operand kernel are scalars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    VV,
    VS,
    SV,
    SS,
}

pub(crate) fn unary(isa: Isa, op: UnaryOp, lane: Lane) -> Option<Kernel> {
    #[cfg(target_arch = "x86_64")]
    if isa == Isa::Avx512 && lane == Lane::F32 {
        let function = match op {
            UnaryOp::Exp => Some(Function::Exp),
            UnaryOp::Exp2 => Some(Function::Exp2),
            UnaryOp::Tanh => Some(Function::Tanh),
            UnaryOp::Erf => Some(Function::Erf),
            _ => None,
        };
        if let Some(function) = function {
            return Some(avx512::kernel(function));
        }
    }
    macro_rules! floats {
        ($($op:ident: $f32:ident $f64:ident,)+) => {
            match (op, lane) {
                $((UnaryOp::$op, Lane::F32) => map1::<$f32>(isa),
                  (UnaryOp::$op, Lane::F64) => map1::<$f64>(isa),)+
                (UnaryOp::Neg, Lane::I32) => map1::<NegI32>(isa),
                (UnaryOp::Neg, Lane::I64) => map1::<NegI64>(isa),
                (UnaryOp::Neg, Lane::B8) => map1::<CopyB8>(isa),
                (UnaryOp::Not, Lane::I32) => map1::<NotI32>(isa),
                (UnaryOp::Not, Lane::I64) => map1::<NotI64>(isa),
                (UnaryOp::Not, Lane::B8) => map1::<NotB8>(isa),
                (UnaryOp::Abs, Lane::I32) => map1::<AbsI32>(isa),
                (UnaryOp::Abs, Lane::I64) => map1::<AbsI64>(isa),
                (UnaryOp::Popc, Lane::I32) => map1::<PopcI32>(isa),
                (UnaryOp::Popc, Lane::I64) => map1::<PopcI64>(isa),
                (UnaryOp::Clz, Lane::I32) => map1::<ClzI32>(isa),
                (UnaryOp::Clz, Lane::I64) => map1::<ClzI64>(isa),
                _ => return None,
            }
        };
    }
    Some(floats! {
        Neg: NegF32 NegF64,
        Abs: AbsF32 AbsF64,
        Exp: ExpF32 ExpF64,
        Exp2: Exp2F32 Exp2F64,
        Expm1: Expm1F32 Expm1F64,
        Log: LogF32 LogF64,
        Log2: Log2F32 Log2F64,
        Log10: Log10F32 Log10F64,
        Log1p: Log1pF32 Log1pF64,
        Sqrt: SqrtF32 SqrtF64,
        Rsqrt: RsqrtF32 RsqrtF64,
        Cbrt: CbrtF32 CbrtF64,
        Sin: SinF32 SinF64,
        Cos: CosF32 CosF64,
        Tan: TanF32 TanF64,
        Asin: AsinF32 AsinF64,
        Acos: AcosF32 AcosF64,
        Atan: AtanF32 AtanF64,
        Sinh: SinhF32 SinhF64,
        Cosh: CoshF32 CoshF64,
        Tanh: TanhF32 TanhF64,
        Asinh: AsinhF32 AsinhF64,
        Acosh: AcoshF32 AcoshF64,
        Atanh: AtanhF32 AtanhF64,
        Erf: ErfF32 ErfF64,
        Erfc: ErfcF32 ErfcF64,
        Lgamma: LgammaF32 LgammaF64,
        Floor: FloorF32 FloorF64,
        Ceil: CeilF32 CeilF64,
        Trunc: TruncF32 TruncF64,
        Round: RoundF32 RoundF64,
        Rint: RintF32 RintF64,
        IsNan: IsNanF32 IsNanF64,
        IsInf: IsInfF32 IsInfF64,
        IsFinite: IsFiniteF32 IsFiniteF64,
        SignBit: SignBitF32 SignBitF64,
    })
}

/// `1 / (1 + exp(-x))` on `f32`.
pub(crate) fn sigmoid(isa: Isa) -> Kernel {
    #[cfg(target_arch = "x86_64")]
    if isa == Isa::Avx512 {
        return avx512::kernel(Function::Sigmoid);
    }
    map1::<SigmoidF32>(isa)
}

/// A two-operand kernel in the variant for scalar operands.
macro_rules! two {
    ($isa:expr, $mode:expr, $f:ident) => {
        match $mode {
            Mode::VV => map2::<$f, false, false>($isa),
            Mode::VS => map2::<$f, false, true>($isa),
            Mode::SV => map2::<$f, true, false>($isa),
            Mode::SS => map2::<$f, true, true>($isa),
        }
    };
}

pub(crate) fn binary(isa: Isa, op: BinaryOp, lane: Lane, elem: Elem, mode: Mode) -> Option<Kernel> {
    macro_rules! table {
        ($($op:ident: $($lane:ident $f:ident)+,)+) => {
            match (op, lane) {
                $($((BinaryOp::$op, Lane::$lane) => two!(isa, mode, $f),)+)+
                _ => return None,
            }
        };
    }
    if elem == Elem::U64 {
        let special = match op {
            BinaryOp::Div => Some(two!(isa, mode, DivU64)),
            BinaryOp::Rem => Some(two!(isa, mode, RemU64)),
            BinaryOp::Shr => Some(two!(isa, mode, ShrU64)),
            BinaryOp::Min => Some(two!(isa, mode, MinU64)),
            BinaryOp::Max => Some(two!(isa, mode, MaxU64)),
            _ => None,
        };
        if special.is_some() {
            return special;
        }
    }
    if op == BinaryOp::UMulHi {
        return match elem {
            Elem::I32 if lane == Lane::I32 => Some(two!(isa, mode, MulHi32)),
            Elem::U32 => Some(two!(isa, mode, MulHiU32)),
            Elem::I64 | Elem::U64 => Some(two!(isa, mode, MulHiU64)),
            _ => None,
        };
    }
    Some(table! {
        Add: F32 AddF32 F64 AddF64 I32 AddI32 I64 AddI64 B8 XorB8,
        Sub: F32 SubF32 F64 SubF64 I32 SubI32 I64 SubI64 B8 XorB8,
        Mul: F32 MulF32 F64 MulF64 I32 MulI32 I64 MulI64 B8 AndB8,
        Div: F32 DivF32 F64 DivF64 I32 DivI32 I64 DivI64,
        Rem: F32 RemF32 F64 RemF64 I32 RemI32 I64 RemI64,
        Fmod: F32 RemF32 F64 RemF64,
        Min: F32 MinF32 F64 MinF64 I32 MinI32 I64 MinI64 B8 AndB8,
        Max: F32 MaxF32 F64 MaxF64 I32 MaxI32 I64 MaxI64 B8 OrB8,
        MinNan: F32 MinNanF32 F64 MinNanF64 I32 MinI32 I64 MinI64 B8 AndB8,
        MaxNan: F32 MaxNanF32 F64 MaxNanF64 I32 MaxI32 I64 MaxI64 B8 OrB8,
        And: I32 AndI32 I64 AndI64 B8 AndB8,
        Or: I32 OrI32 I64 OrI64 B8 OrB8,
        Xor: I32 XorI32 I64 XorI64 B8 XorB8,
        Shl: I32 ShlI32 I64 ShlI64 B8 AndNotB8,
        Shr: I32 ShrI32 I64 ShrI64 B8 AndNotB8,
        Pow: F32 PowF32 F64 PowF64,
        Atan2: F32 Atan2F32 F64 Atan2F64,
        CopySign: F32 CopySignF32 F64 CopySignF64,
        Hypot: F32 HypotF32 F64 HypotF64,
    })
}

pub(crate) fn compare(isa: Isa, op: CmpOp, lane: Lane, elem: Elem, mode: Mode) -> Kernel {
    macro_rules! table {
        ($($op:ident: $f32:ident $f64:ident $i32:ident $i64:ident $u64:ident $b8:ident,)+) => {
            match (op, lane) {
                $((CmpOp::$op, Lane::F32) => two!(isa, mode, $f32),
                  (CmpOp::$op, Lane::F64) => two!(isa, mode, $f64),
                  (CmpOp::$op, Lane::I32) => two!(isa, mode, $i32),
                  (CmpOp::$op, Lane::I64) if elem == Elem::U64 => two!(isa, mode, $u64),
                  (CmpOp::$op, Lane::I64) => two!(isa, mode, $i64),
                  (CmpOp::$op, Lane::B8) => two!(isa, mode, $b8),)+
            }
        };
    }
    table! {
        Eq: EqF32 EqF64 EqI32 EqI64 EqU64 EqB8,
        Ne: NeF32 NeF64 NeI32 NeI64 NeU64 NeB8,
        Lt: LtF32 LtF64 LtI32 LtI64 LtU64 LtB8,
        Le: LeF32 LeF64 LeI32 LeI64 LeU64 LeB8,
        Gt: GtF32 GtF64 GtI32 GtI64 GtU64 GtB8,
        Ge: GeF32 GeF64 GeI32 GeI64 GeU64 GeB8,
    }
}

macro_rules! three {
    ($isa:expr, $mode:expr, $f:ident) => {
        match $mode {
            Mode::VV => map3::<$f, false, false>($isa),
            Mode::VS => map3::<$f, false, true>($isa),
            Mode::SV => map3::<$f, true, false>($isa),
            Mode::SS => map3::<$f, true, true>($isa),
        }
    };
}

/// `mode` speaks of the second and third operand; the condition is a vector.
pub(crate) fn select(isa: Isa, lane: Lane, mode: Mode) -> Kernel {
    match lane {
        Lane::F32 => three!(isa, mode, SelectF32),
        Lane::F64 => three!(isa, mode, SelectF64),
        Lane::I32 => three!(isa, mode, SelectI32),
        Lane::I64 => three!(isa, mode, SelectI64),
        Lane::B8 => three!(isa, mode, SelectB8),
    }
}

pub(crate) fn fma(isa: Isa, lane: Lane, mode: Mode) -> Kernel {
    match lane {
        Lane::F32 => three!(isa, mode, FmaF32),
        Lane::F64 => three!(isa, mode, FmaF64),
        Lane::I32 => three!(isa, mode, FmaI32),
        Lane::I64 => three!(isa, mode, FmaI64),
        Lane::B8 => three!(isa, mode, FmaB8),
    }
}

/// Brings the result of an operation back into its type: rounds halves, wraps narrow integers.
/// `None` when the lane type already does.
pub(crate) fn narrow(isa: Isa, elem: Elem, lane: Lane) -> Option<Kernel> {
    Some(match (elem, lane) {
        #[cfg(target_arch = "x86_64")]
        (Elem::F16, _) if isa == Isa::Avx512 => avx512::kernel(Function::RoundF16),
        (Elem::F16, _) => map1::<RoundF16>(isa),
        (Elem::BF16, _) => map1::<RoundBF16>(isa),
        (Elem::I8, Lane::I32) => map1::<NarrowI8I32>(isa),
        (Elem::I16, Lane::I32) => map1::<NarrowI16I32>(isa),
        (Elem::U8, Lane::I32) => map1::<NarrowU8I32>(isa),
        (Elem::U16, Lane::I32) => map1::<NarrowU16I32>(isa),
        (Elem::I8, Lane::I64) => map1::<NarrowI8I64>(isa),
        (Elem::I16, Lane::I64) => map1::<NarrowI16I64>(isa),
        (Elem::I32, Lane::I64) => map1::<NarrowI32I64>(isa),
        (Elem::U8, Lane::I64) => map1::<NarrowU8I64>(isa),
        (Elem::U16, Lane::I64) => map1::<NarrowU16I64>(isa),
        (Elem::U32, Lane::I64) => map1::<NarrowU32I64>(isa),
        _ => return None,
    })
}

/// Conversion between lane types by value; narrowing to the exact type is a second step.
pub(crate) fn cast(isa: Isa, from: (Elem, Lane), to: (Elem, Lane)) -> Option<Kernel> {
    use Lane::{B8, F32, F64, I32, I64};
    Some(match (from.1, to.1) {
        (F32, F32) => map1::<CopyF32>(isa),
        (F64, F64) => map1::<CopyF64>(isa),
        (I32, I32) => map1::<CopyI32>(isa),
        (I64, I64) => map1::<CopyI64>(isa),
        (B8, B8) => map1::<CopyB8>(isa),
        (F32, F64) => map1::<F32ToF64>(isa),
        (F64, F32) => map1::<F64ToF32>(isa),
        (F32, I32) => map1::<F32ToI32>(isa),
        (F32, I64) if to.0 == Elem::U64 => map1::<F32ToU64>(isa),
        (F32, I64) => map1::<F32ToI64>(isa),
        (F64, I32) => map1::<F64ToI32>(isa),
        (F64, I64) if to.0 == Elem::U64 => map1::<F64ToU64>(isa),
        (F64, I64) => map1::<F64ToI64>(isa),
        (I32, F32) => map1::<I32ToF32>(isa),
        (I32, F64) => map1::<I32ToF64>(isa),
        (I64, F32) if from.0 == Elem::U64 => map1::<U64ToF32>(isa),
        (I64, F64) if from.0 == Elem::U64 => map1::<U64ToF64>(isa),
        (I64, F32) => map1::<I64ToF32>(isa),
        (I64, F64) => map1::<I64ToF64>(isa),
        (I32, I64) => map1::<I32ToI64>(isa),
        (I64, I32) => map1::<I64ToI32>(isa),
        (B8, F32) => map1::<B8ToF32>(isa),
        (B8, F64) => map1::<B8ToF64>(isa),
        (B8, I32) => map1::<B8ToI32>(isa),
        (B8, I64) => map1::<B8ToI64>(isa),
        (_, B8) => return None,
    })
}

/// Reinterpretation of bits between types of one width; a copy where the lanes already agree.
pub(crate) fn bitcast(isa: Isa, from: (Elem, Lane), to: (Elem, Lane)) -> Option<Kernel> {
    use Elem::{BF16, F16, U32};
    use Lane::{F32, F64, I32, I64};
    Some(match (from, to) {
        ((F16, F32), (_, I32)) => map1::<BitsF16ToI32>(isa),
        ((BF16, F32), (_, I32)) => map1::<BitsBF16ToI32>(isa),
        ((_, I32), (F16, F32)) => map1::<BitsI32ToF16>(isa),
        ((_, I32), (BF16, F32)) => map1::<BitsI32ToBF16>(isa),
        ((_, F32), (U32, I64)) => map1::<BitsF32ToU32>(isa),
        ((_, F32), (_, I32 | I64)) if to.1 == I64 => map1::<BitsF32ToU32>(isa),
        ((_, F32), (_, I32)) => map1::<BitsF32ToI32>(isa),
        ((_, I32), (_, F32)) => map1::<BitsI32ToF32>(isa),
        ((_, I64), (_, F32)) => map1::<BitsI64ToF32>(isa),
        ((_, F64), (_, I64)) => map1::<BitsF64ToI64>(isa),
        ((_, I64), (_, F64)) => map1::<BitsI64ToF64>(isa),
        ((U32, I64), (_, I32)) => map1::<BitsU32ToI32>(isa),
        ((_, I32), (U32, I64)) => map1::<BitsI32ToU32>(isa),
        ((_, I64), (_, I64)) => map1::<CopyI64>(isa),
        ((_, I32), (_, I32)) => map1::<CopyI32>(isa),
        ((_, F32), (_, F32)) => map1::<CopyF32>(isa),
        ((_, F64), (_, F64)) => map1::<CopyF64>(isa),
        _ => return None,
    })
}
