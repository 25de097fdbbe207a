//! What one lane holds, and what each operation does to it.

use crate::ir::{BinaryOp, CmpOp, Literal, ReduceOp, UnaryOp};
use crate::types::Elem;

/// One number. Integers and addresses are whole numbers inside the range of their type; floats of every type are held in
/// `f64`, which holds each of them exactly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Lane {
    Int(i128),
    Float(f64),
}

impl Lane {
    pub(super) fn int(self) -> i128 {
        match self {
            Lane::Int(i) => i,
            Lane::Float(x) => x as i128,
        }
    }

    pub(super) fn float(self) -> f64 {
        match self {
            Lane::Int(i) => i as f64,
            Lane::Float(x) => x,
        }
    }

    pub(super) fn is_true(self) -> bool {
        self.int() != 0
    }

    pub(super) fn truth(value: bool) -> Lane {
        Lane::Int(i128::from(value))
    }
}

/// The low bits of a whole number, as a number of this type.
pub(super) fn wrap(value: i128, elem: Elem) -> i128 {
    let modulus = 1i128 << elem.bits();
    let low = value.rem_euclid(modulus);
    let (_, largest) = elem.int_range();
    if low > largest { low - modulus } else { low }
}

/// The nearest number of a float type, ties to even. Halves are rounded from `f32`, as PyTorch does.
pub(super) fn round(x: f64, elem: Elem) -> f64 {
    match elem {
        Elem::F64 => x,
        Elem::F16 => half(x as f32, 10, -14, 65504.0),
        Elem::BF16 => half(x as f32, 7, -126, f64::from(f32::from_bits(0x7f7f_0000))),
        _ => f64::from(x as f32),
    }
}

/// Rounds to a type with so many bits of mantissa, this smallest normal exponent and this largest number.
fn half(x: f32, bits: i32, smallest: i32, largest: f64) -> f64 {
    let x = f64::from(x);
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    // `frexp` by way of the exponent's bits; a `f32` is a normal `f64`.
    let exponent = ((x.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    let quantum = 2f64.powi(exponent.max(smallest) - bits);
    let rounded = (x / quantum).round_ties_even() * quantum;
    if rounded.abs() > largest { f64::INFINITY.copysign(x) } else { rounded.copysign(x) }
}

pub(super) fn literal(literal: Literal, elem: Elem) -> Lane {
    match literal {
        Literal::Int(i) if elem.is_int() => Lane::Int(wrap(i128::from(i), elem)),
        Literal::Int(i) => Lane::Float(round(i as f64, elem)),
        Literal::Float(x) => cast(Lane::Float(x), Elem::F64, elem),
    }
}

/// Conversion by value. A float beyond 32 signed bits becomes the nearest end of them, beyond 64 bits where the type needs
/// more than that; what is left is wrapped.
pub(super) fn cast(x: Lane, from: Elem, to: Elem) -> Lane {
    match (x, to) {
        (x, Elem::I1) => Lane::truth(x != Lane::Int(0) && x.float() != 0.0),
        (Lane::Int(i), to) if to.is_int() => Lane::Int(wrap(i, to)),
        (Lane::Int(i), Elem::F64) => Lane::Float(i as f64),
        (Lane::Int(i), to) => Lane::Float(round(f64::from(i as f32), to)),
        (Lane::Float(x), Elem::U64) => Lane::Int(i128::from(x as u64)),
        (Lane::Float(x), to @ (Elem::I64 | Elem::U32)) => Lane::Int(wrap(i128::from(x as i64), to)),
        (Lane::Float(x), to) if to.is_int() => Lane::Int(wrap(i128::from(x as i32), to)),
        (Lane::Float(x), to) if from == to => Lane::Float(x),
        (Lane::Float(x), to) => Lane::Float(round(x, to)),
    }
}

/// Bytes as they lie in memory.
pub(super) fn to_bytes(x: Lane, elem: Elem) -> Vec<u8> {
    let bits = bits(x, elem);
    bits.to_le_bytes()[..elem.size()].to_vec()
}

pub(super) fn from_bytes(bytes: &[u8], elem: Elem) -> Lane {
    let mut word = [0u8; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(word);
    if elem == Elem::I1 { Lane::truth(bits != 0) } else { from_bits(bits, elem) }
}

/// The bits of a number, the rest zero.
pub(super) fn bits(x: Lane, elem: Elem) -> u64 {
    match (x, elem) {
        (Lane::Float(x), Elem::F64) => x.to_bits(),
        (Lane::Float(x), Elem::F32) => u64::from((x as f32).to_bits()),
        (Lane::Float(x), Elem::BF16) => u64::from((x as f32).to_bits() >> 16),
        (Lane::Float(x), _) => f16_bits(x),
        (Lane::Int(i), elem) => (i.rem_euclid(1 << elem.bits())) as u64,
    }
}

fn f16_bits(x: f64) -> u64 {
    let sign = if x.is_sign_negative() { 0x8000 } else { 0 };
    let magnitude = x.abs();
    sign + if x.is_nan() {
        0x7e00
    } else if magnitude.is_infinite() {
        0x7c00
    } else if magnitude < 2f64.powi(-14) {
        (magnitude * 2f64.powi(24)) as u64
    } else {
        let exponent = ((magnitude.to_bits() >> 52) & 0x7ff) as i32 - 1023;
        let mantissa = (magnitude / 2f64.powi(exponent) * 1024.0) as u64 - 1024;
        ((exponent + 15) as u64) << 10 | mantissa
    }
}

pub(super) fn from_bits(bits: u64, elem: Elem) -> Lane {
    match elem {
        Elem::F64 => Lane::Float(f64::from_bits(bits)),
        Elem::F32 => Lane::Float(f64::from(f32::from_bits(bits as u32))),
        Elem::BF16 => Lane::Float(f64::from(f32::from_bits((bits as u32) << 16))),
        Elem::F16 => {
            let (exponent, mantissa) = ((bits >> 10) & 31, (bits & 1023) as f64);
            let magnitude = match exponent {
                0 => mantissa * 2f64.powi(-24),
                31 if mantissa == 0.0 => f64::INFINITY,
                31 => f64::NAN,
                e => (1024.0 + mantissa) * 2f64.powi(e as i32 - 25),
            };
            Lane::Float(if bits & 0x8000 == 0 { magnitude } else { -magnitude })
        }
        elem => Lane::Int(wrap(i128::from(bits), elem)),
    }
}

/// The result of a float operation in the type it is computed in: halves compute in `f32`.
fn float_op(elem: Elem, f64s: impl Fn() -> f64, f32s: impl Fn() -> f32) -> Lane {
    Lane::Float(if elem == Elem::F64 { f64s() } else { round(f64::from(f32s()), elem) })
}

pub(super) fn unary(op: UnaryOp, x: Lane, elem: Elem) -> Result<Lane, String> {
    let x = match x {
        Lane::Int(i) => return int_unary(op, i, elem),
        Lane::Float(x) => x,
    };
    let y = x as f32;
    Ok(match op {
        UnaryOp::Neg => Lane::Float(-x),
        UnaryOp::Abs => Lane::Float(x.abs()),
        UnaryOp::Floor => Lane::Float(x.floor()),
        UnaryOp::Ceil => Lane::Float(x.ceil()),
        UnaryOp::Trunc => Lane::Float(x.trunc()),
        UnaryOp::Round => Lane::Float(x.round()),
        UnaryOp::Rint => Lane::Float(x.round_ties_even()),
        UnaryOp::IsNan => Lane::truth(x.is_nan()),
        UnaryOp::IsInf => Lane::truth(x.is_infinite()),
        UnaryOp::IsFinite => Lane::truth(x.is_finite()),
        UnaryOp::SignBit => Lane::truth(x.is_sign_negative()),
        UnaryOp::Sqrt => float_op(elem, || x.sqrt(), || y.sqrt()),
        UnaryOp::Rsqrt => float_op(elem, || 1.0 / x.sqrt(), || 1.0 / y.sqrt()),
        // Functions that no machine rounds exactly: in double precision, then rounded.
        UnaryOp::Not | UnaryOp::Popc | UnaryOp::Clz => return Err(format!("{op} of a float")),
        function => Lane::Float(round(elementary(function, x)?, elem)),
    })
}

fn elementary(op: UnaryOp, x: f64) -> Result<f64, String> {
    Ok(match op {
        UnaryOp::Exp => x.exp(),
        UnaryOp::Exp2 => x.exp2(),
        UnaryOp::Expm1 => x.exp_m1(),
        UnaryOp::Log => x.ln(),
        UnaryOp::Log2 => x.log2(),
        UnaryOp::Log10 => x.log10(),
        UnaryOp::Log1p => x.ln_1p(),
        UnaryOp::Cbrt => x.cbrt(),
        UnaryOp::Sin => x.sin(),
        UnaryOp::Cos => x.cos(),
        UnaryOp::Tan => x.tan(),
        UnaryOp::Asin => x.asin(),
        UnaryOp::Acos => x.acos(),
        UnaryOp::Atan => x.atan(),
        UnaryOp::Sinh => x.sinh(),
        UnaryOp::Cosh => x.cosh(),
        UnaryOp::Tanh => x.tanh(),
        UnaryOp::Asinh => x.asinh(),
        UnaryOp::Acosh => x.acosh(),
        UnaryOp::Atanh => x.atanh(),
        UnaryOp::Erf => erf(x),
        other => return Err(format!("the reference does not know {other}")),
    })
}

/// The series of the error function: exact enough for `f32` wherever the result is not one.
fn erf(x: f64) -> f64 {
    if x.is_nan() || x.abs() > 4.0 {
        return if x.is_nan() { x } else { 1f64.copysign(x) };
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..120 {
        let n = f64::from(n);
        term *= -x * x / n;
        sum += term / (2.0 * n + 1.0);
    }
    sum * std::f64::consts::FRAC_2_SQRT_PI
}

fn int_unary(op: UnaryOp, x: i128, elem: Elem) -> Result<Lane, String> {
    let bits = x.rem_euclid(1 << elem.bits()) as u64;
    Ok(Lane::Int(match op {
        UnaryOp::Neg => wrap(-x, elem),
        UnaryOp::Not => wrap(!x, elem),
        UnaryOp::Abs => wrap(x.abs(), elem),
        UnaryOp::Popc => i128::from(bits.count_ones()),
        UnaryOp::Clz => i128::from(bits.leading_zeros()) - 64 + i128::from(elem.bits()),
        other => return Err(format!("{other} of an integer")),
    }))
}

pub(super) fn binary(op: BinaryOp, a: Lane, b: Lane, elem: Elem) -> Result<Lane, String> {
    let (x, y) = match (a, b) {
        (Lane::Int(x), Lane::Int(y)) => return int_binary(op, x, y, elem),
        _ => (a.float(), b.float()),
    };
    let (p, q) = (x as f32, y as f32);
    Ok(match op {
        BinaryOp::Add => float_op(elem, || x + y, || p + q),
        BinaryOp::Sub => float_op(elem, || x - y, || p - q),
        BinaryOp::Mul => float_op(elem, || x * y, || p * q),
        BinaryOp::Div => float_op(elem, || x / y, || p / q),
        BinaryOp::Rem | BinaryOp::Fmod => float_op(elem, || x % y, || p % q),
        BinaryOp::Min => Lane::Float(if x.is_nan() || y < x { y } else { x }),
        BinaryOp::Max => Lane::Float(if x.is_nan() || y > x { y } else { x }),
        BinaryOp::MinNan => Lane::Float(if x.is_nan() || x < y { x } else { y }),
        BinaryOp::MaxNan => Lane::Float(if x.is_nan() || x > y { x } else { y }),
        BinaryOp::Pow => Lane::Float(round(x.powf(y), elem)),
        BinaryOp::Atan2 => Lane::Float(round(x.atan2(y), elem)),
        BinaryOp::Hypot => Lane::Float(round(x.hypot(y), elem)),
        BinaryOp::CopySign => Lane::Float(x.copysign(y)),
        other => return Err(format!("{other} of floats")),
    })
}

fn int_binary(op: BinaryOp, x: i128, y: i128, elem: Elem) -> Result<Lane, String> {
    let width = i128::from(elem.bits());
    let value = match op {
        BinaryOp::Add => x + y,
        BinaryOp::Sub => x - y,
        // The low bits of a product come from the low bits of its factors.
        BinaryOp::Mul => x.wrapping_mul(y),
        // Undefined on a GPU; here zero, as long as it is the same everywhere.
        BinaryOp::Div | BinaryOp::Rem if y == 0 => 0,
        BinaryOp::Div => x / y,
        BinaryOp::Rem => x % y,
        BinaryOp::And => x & y,
        BinaryOp::Or => x | y,
        BinaryOp::Xor => x ^ y,
        BinaryOp::Shl if (0..width).contains(&y) => x << y,
        BinaryOp::Shl => 0,
        BinaryOp::Shr if (0..width).contains(&y) => x >> y,
        // Nothing but the sign is left.
        BinaryOp::Shr => x >> (width - 1) >> 1,
        BinaryOp::Min | BinaryOp::MinNan => x.min(y),
        BinaryOp::Max | BinaryOp::MaxNan => x.max(y),
        BinaryOp::UMulHi => {
            let unsigned = |v: i128| v.rem_euclid(1 << elem.bits()) as u128;
            ((unsigned(x) * unsigned(y)) >> elem.bits()) as i128
        }
        other => return Err(format!("{other} of integers")),
    };
    Ok(Lane::Int(wrap(value, elem)))
}

pub(super) fn compare(op: CmpOp, a: Lane, b: Lane) -> bool {
    let order = match (a, b) {
        (Lane::Int(x), Lane::Int(y)) => Some(x.cmp(&y)),
        _ => a.float().partial_cmp(&b.float()),
    };
    match op {
        CmpOp::Eq => order.is_some_and(|o| o.is_eq()),
        CmpOp::Ne => !order.is_some_and(|o| o.is_eq()),
        CmpOp::Lt => order.is_some_and(|o| o.is_lt()),
        CmpOp::Le => order.is_some_and(|o| o.is_le()),
        CmpOp::Gt => order.is_some_and(|o| o.is_gt()),
        CmpOp::Ge => order.is_some_and(|o| o.is_ge()),
    }
}

/// `a * b + c` with one rounding.
pub(super) fn fma(a: Lane, b: Lane, c: Lane, elem: Elem) -> Result<Lane, String> {
    if elem.is_int() {
        let product = binary(BinaryOp::Mul, a, b, elem)?;
        return binary(BinaryOp::Add, product, c, elem);
    }
    let (x, y, z) = (a.float(), b.float(), c.float());
    let (p, q, r) = (x as f32, y as f32, z as f32);
    Ok(float_op(elem, || x.mul_add(y, z), || p.mul_add(q, r)))
}

/// One step of a reduction or scan. Halves are summed in `f32` and integers without end; the caller rounds the result.
pub(super) fn reduce(op: ReduceOp, a: Lane, b: Lane, elem: Elem) -> Result<Lane, String> {
    let wide = match elem {
        Elem::F16 | Elem::BF16 => Elem::F32,
        other => other,
    };
    let op = match (op, elem) {
        // One bit: a sum without carry, a product.
        (ReduceOp::Sum, Elem::I1) => BinaryOp::Xor,
        (ReduceOp::Prod, Elem::I1) => BinaryOp::And,
        (ReduceOp::Sum, _) => BinaryOp::Add,
        (ReduceOp::Prod, _) => BinaryOp::Mul,
        (ReduceOp::Max, _) => BinaryOp::Max,
        (ReduceOp::Min, _) => BinaryOp::Min,
        (ReduceOp::Xor, _) => BinaryOp::Xor,
        (ReduceOp::And, _) => BinaryOp::And,
        (ReduceOp::Or, _) => BinaryOp::Or,
    };
    binary(op, a, b, wide)
}
