//! What each operation does to one lane.

use super::map::{maps1, maps2};
use passnet_cpu::halves;
use passnet_cpu::math::{double, fast};

// Floats.
maps1! {
    NegF32: f32 => f32 = |x| -x;
    NegF64: f64 => f64 = |x| -x;
    AbsF32: f32 => f32 = |x| x.abs();
    AbsF64: f64 => f64 = |x| x.abs();
    ExpF32: f32 => f32 = |x| fast::exp(x);
    ExpF64: f64 => f64 = |x| x.exp();
    Exp2F32: f32 => f32 = |x| fast::exp2(x);
    Exp2F64: f64 => f64 = |x| x.exp2();
    Expm1F32: f32 => f32 = |x| f64::from(x).exp_m1() as f32;
    Expm1F64: f64 => f64 = |x| x.exp_m1();
    LogF32: f32 => f32 = |x| fast::log(x);
    LogF64: f64 => f64 = |x| x.ln();
    Log2F32: f32 => f32 = |x| fast::log2(x);
    Log2F64: f64 => f64 = |x| x.log2();
    Log10F32: f32 => f32 = |x| fast::log10(x);
    Log10F64: f64 => f64 = |x| x.log10();
    Log1pF32: f32 => f32 = |x| f64::from(x).ln_1p() as f32;
    Log1pF64: f64 => f64 = |x| x.ln_1p();
    SqrtF32: f32 => f32 = |x| x.sqrt();
    SqrtF64: f64 => f64 = |x| x.sqrt();
    RsqrtF32: f32 => f32 = |x| 1.0 / x.sqrt();
    RsqrtF64: f64 => f64 = |x| 1.0 / x.sqrt();
    CbrtF32: f32 => f32 = |x| x.cbrt();
    CbrtF64: f64 => f64 = |x| x.cbrt();
    SinF32: f32 => f32 = |x| fast::sin(x);
    SinF64: f64 => f64 = |x| x.sin();
    CosF32: f32 => f32 = |x| fast::cos(x);
    CosF64: f64 => f64 = |x| x.cos();
    TanF32: f32 => f32 = |x| f64::from(x).tan() as f32;
    TanF64: f64 => f64 = |x| x.tan();
    AsinF32: f32 => f32 = |x| f64::from(x).asin() as f32;
    AsinF64: f64 => f64 = |x| x.asin();
    AcosF32: f32 => f32 = |x| f64::from(x).acos() as f32;
    AcosF64: f64 => f64 = |x| x.acos();
    AtanF32: f32 => f32 = |x| f64::from(x).atan() as f32;
    AtanF64: f64 => f64 = |x| x.atan();
    SinhF32: f32 => f32 = |x| f64::from(x).sinh() as f32;
    SinhF64: f64 => f64 = |x| x.sinh();
    CoshF32: f32 => f32 = |x| f64::from(x).cosh() as f32;
    CoshF64: f64 => f64 = |x| x.cosh();
    SigmoidF32: f32 => f32 = |x| fast::sigmoid(x);
    TanhF32: f32 => f32 = |x| fast::tanh(x);
    TanhF64: f64 => f64 = |x| x.tanh();
    AsinhF32: f32 => f32 = |x| f64::from(x).asinh() as f32;
    AsinhF64: f64 => f64 = |x| x.asinh();
    AcoshF32: f32 => f32 = |x| f64::from(x).acosh() as f32;
    AcoshF64: f64 => f64 = |x| x.acosh();
    AtanhF32: f32 => f32 = |x| f64::from(x).atanh() as f32;
    AtanhF64: f64 => f64 = |x| x.atanh();
    ErfF32: f32 => f32 = |x| fast::erf(x);
    ErfF64: f64 => f64 = |x| double::erf_by_series(x);
    ErfcF32: f32 => f32 = |x| double::erfc_by_fraction(f64::from(x)) as f32;
    ErfcF64: f64 => f64 = |x| double::erfc_by_fraction(x);
    LgammaF32: f32 => f32 = |x| double::lgamma(f64::from(x)) as f32;
    LgammaF64: f64 => f64 = |x| double::lgamma(x);
    FloorF32: f32 => f32 = |x| x.floor();
    FloorF64: f64 => f64 = |x| x.floor();
    CeilF32: f32 => f32 = |x| x.ceil();
    CeilF64: f64 => f64 = |x| x.ceil();
    TruncF32: f32 => f32 = |x| x.trunc();
    TruncF64: f64 => f64 = |x| x.trunc();
    RoundF32: f32 => f32 = |x| x.round();
    RoundF64: f64 => f64 = |x| x.round();
    RintF32: f32 => f32 = |x| x.round_ties_even();
    RintF64: f64 => f64 = |x| x.round_ties_even();
    IsNanF32: f32 => u8 = |x| u8::from(x.is_nan());
    IsNanF64: f64 => u8 = |x| u8::from(x.is_nan());
    IsInfF32: f32 => u8 = |x| u8::from(x.is_infinite());
    IsInfF64: f64 => u8 = |x| u8::from(x.is_infinite());
    IsFiniteF32: f32 => u8 = |x| u8::from(x.is_finite());
    IsFiniteF64: f64 => u8 = |x| u8::from(x.is_finite());
    SignBitF32: f32 => u8 = |x| u8::from(x.is_sign_negative());
    SignBitF64: f64 => u8 = |x| u8::from(x.is_sign_negative());
    RoundF16: f32 => f32 = |x| halves::round_to_f16(x);
    RoundBF16: f32 => f32 = |x| halves::round_to_bf16(x);
}

// Integers and booleans.
maps1! {
    CopyF32: f32 => f32 = |x| x;
    CopyF64: f64 => f64 = |x| x;
    CopyI32: i32 => i32 = |x| x;
    CopyI64: i64 => i64 = |x| x;
    CopyB8: u8 => u8 = |x| x;
    NegI32: i32 => i32 = |x| x.wrapping_neg();
    NegI64: i64 => i64 = |x| x.wrapping_neg();
    NotI32: i32 => i32 = |x| !x;
    NotI64: i64 => i64 = |x| !x;
    NotB8: u8 => u8 = |x| x ^ 1;
    AbsI32: i32 => i32 = |x| x.wrapping_abs();
    AbsI64: i64 => i64 = |x| x.wrapping_abs();
    PopcI32: i32 => i32 = |x| x.count_ones() as i32;
    PopcI64: i64 => i32 = |x| x.count_ones() as i32;
    ClzI32: i32 => i32 = |x| x.leading_zeros() as i32;
    ClzI64: i64 => i32 = |x| x.leading_zeros() as i32;
    NarrowI8I32: i32 => i32 = |x| i32::from(x as i8);
    NarrowI16I32: i32 => i32 = |x| i32::from(x as i16);
    NarrowU8I32: i32 => i32 = |x| i32::from(x as u8);
    NarrowU16I32: i32 => i32 = |x| i32::from(x as u16);
    NarrowI8I64: i64 => i64 = |x| i64::from(x as i8);
    NarrowI16I64: i64 => i64 = |x| i64::from(x as i16);
    NarrowI32I64: i64 => i64 = |x| i64::from(x as i32);
    NarrowU8I64: i64 => i64 = |x| i64::from(x as u8);
    NarrowU16I64: i64 => i64 = |x| i64::from(x as u16);
    NarrowU32I64: i64 => i64 = |x| i64::from(x as u32);
}

// Conversions by value.
maps1! {
    F32ToF64: f32 => f64 = |x| f64::from(x);
    F64ToF32: f64 => f32 = |x| x as f32;
    F32ToI32: f32 => i32 = |x| x as i32;
    F32ToI64: f32 => i64 = |x| x as i64;
    F32ToU64: f32 => i64 = |x| x as u64 as i64;
    F64ToI32: f64 => i32 = |x| x as i32;
    F64ToI64: f64 => i64 = |x| x as i64;
    F64ToU64: f64 => i64 = |x| x as u64 as i64;
    I32ToF32: i32 => f32 = |x| x as f32;
    I32ToF64: i32 => f64 = |x| f64::from(x);
    I64ToF32: i64 => f32 = |x| x as f32;
    I64ToF64: i64 => f64 = |x| x as f64;
    U64ToF32: i64 => f32 = |x| x as u64 as f32;
    U64ToF64: i64 => f64 = |x| x as u64 as f64;
    I32ToI64: i32 => i64 = |x| i64::from(x);
    I64ToI32: i64 => i32 = |x| x as i32;
    B8ToF32: u8 => f32 = |x| f32::from(x);
    B8ToF64: u8 => f64 = |x| f64::from(x);
    B8ToI32: u8 => i32 = |x| i32::from(x);
    B8ToI64: u8 => i64 = |x| i64::from(x);
}

// Same bits.
maps1! {
    BitsF32ToI32: f32 => i32 = |x| x.to_bits() as i32;
    BitsF32ToU32: f32 => i64 = |x| i64::from(x.to_bits());
    BitsI32ToF32: i32 => f32 = |x| f32::from_bits(x as u32);
    BitsI64ToF32: i64 => f32 = |x| f32::from_bits(x as u32);
    BitsF64ToI64: f64 => i64 = |x| x.to_bits() as i64;
    BitsI64ToF64: i64 => f64 = |x| f64::from_bits(x as u64);
    BitsF16ToI32: f32 => i32 = |x| i32::from(halves::f32_to_f16(x));
    BitsBF16ToI32: f32 => i32 = |x| i32::from(halves::f32_to_bf16(x));
    BitsI32ToF16: i32 => f32 = |x| halves::f16_to_f32(x as u16);
    BitsI32ToBF16: i32 => f32 = |x| halves::bf16_to_f32(x as u16);
    BitsU32ToI32: i64 => i32 = |x| x as i32;
    BitsI32ToU32: i32 => i64 = |x| i64::from(x as u32);
}

macro_rules! float_ops {
    ($t:ty, $add:ident $sub:ident $mul:ident $div:ident $rem:ident $min:ident $max:ident $minn:ident $maxn:ident
     $pow:ident $atan2:ident $copysign:ident $hypot:ident) => {
        maps2! {
            $add: $t, $t => $t = |x, y| x + y;
            $sub: $t, $t => $t = |x, y| x - y;
            $mul: $t, $t => $t = |x, y| x * y;
            $div: $t, $t => $t = |x, y| x / y;
            $rem: $t, $t => $t = |x, y| x % y;
            $min: $t, $t => $t = |x, y| if x.is_nan() || y < x { y } else { x };
            $max: $t, $t => $t = |x, y| if x.is_nan() || y > x { y } else { x };
            $minn: $t, $t => $t = |x, y| if x.is_nan() || x < y { x } else { y };
            $maxn: $t, $t => $t = |x, y| if x.is_nan() || x > y { x } else { y };
            $pow: $t, $t => $t = |x, y| f64::from(x).powf(f64::from(y)) as $t;
            $atan2: $t, $t => $t = |x, y| f64::from(x).atan2(f64::from(y)) as $t;
            $copysign: $t, $t => $t = |x, y| x.copysign(y);
            $hypot: $t, $t => $t = |x, y| f64::from(x).hypot(f64::from(y)) as $t;
        }
    };
}
float_ops!(f32, AddF32 SubF32 MulF32 DivF32 RemF32 MinF32 MaxF32 MinNanF32 MaxNanF32 PowF32 Atan2F32 CopySignF32 HypotF32);
float_ops!(f64, AddF64 SubF64 MulF64 DivF64 RemF64 MinF64 MaxF64 MinNanF64 MaxNanF64 PowF64 Atan2F64 CopySignF64 HypotF64);

macro_rules! int_ops {
    ($t:ty, $u:ty, $add:ident $sub:ident $mul:ident $div:ident $rem:ident $and:ident $or:ident $xor:ident
     $shl:ident $shr:ident $min:ident $max:ident) => {
        maps2! {
            $add: $t, $t => $t = |x, y| x.wrapping_add(y);
            $sub: $t, $t => $t = |x, y| x.wrapping_sub(y);
            $mul: $t, $t => $t = |x, y| x.wrapping_mul(y);
            $div: $t, $t => $t = |x, y| if y == 0 { 0 } else { x.wrapping_div(y) };
            $rem: $t, $t => $t = |x, y| if y == 0 { 0 } else { x.wrapping_rem(y) };
            $and: $t, $t => $t = |x, y| x & y;
            $or: $t, $t => $t = |x, y| x | y;
            $xor: $t, $t => $t = |x, y| x ^ y;
            $shl: $t, $t => $t = |x, y| if (y as $u) < <$t>::BITS as $u { x << (y as $u) } else { 0 };
            $shr: $t, $t => $t = |x, y| x >> (y as $u).min(<$t>::BITS as $u - 1);
            $min: $t, $t => $t = |x, y| x.min(y);
            $max: $t, $t => $t = |x, y| x.max(y);
        }
    };
}
int_ops!(i32, u32, AddI32 SubI32 MulI32 DivI32 RemI32 AndI32 OrI32 XorI32 ShlI32 ShrI32 MinI32 MaxI32);
int_ops!(i64, u64, AddI64 SubI64 MulI64 DivI64 RemI64 AndI64 OrI64 XorI64 ShlI64 ShrI64 MinI64 MaxI64);

maps2! {
    DivU64: i64, i64 => i64 = |x, y| if y == 0 { 0 } else { (x as u64 / y as u64) as i64 };
    RemU64: i64, i64 => i64 = |x, y| if y == 0 { 0 } else { (x as u64 % y as u64) as i64 };
    ShrU64: i64, i64 => i64 = |x, y| if (y as u64) < 64 { (x as u64 >> y) as i64 } else { 0 };
    MinU64: i64, i64 => i64 = |x, y| (x as u64).min(y as u64) as i64;
    MaxU64: i64, i64 => i64 = |x, y| (x as u64).max(y as u64) as i64;
    MulHi32: i32, i32 => i32 = |x, y| ((u64::from(x as u32) * u64::from(y as u32)) >> 32) as i32;
    MulHiU32: i64, i64 => i64 = |x, y| ((x as u64).wrapping_mul(y as u64) >> 32) as i64;
    MulHiU64: i64, i64 => i64 = |x, y| ((u128::from(x as u64) * u128::from(y as u64)) >> 64) as i64;
    AndB8: u8, u8 => u8 = |x, y| x & y;
    OrB8: u8, u8 => u8 = |x, y| x | y;
    XorB8: u8, u8 => u8 = |x, y| x ^ y;
    AndNotB8: u8, u8 => u8 = |x, y| x & (y ^ 1);
}

macro_rules! compares {
    ($t:ty, $eq:ident $ne:ident $lt:ident $le:ident $gt:ident $ge:ident) => {
        maps2! {
            $eq: $t, $t => u8 = |x, y| u8::from(x == y);
            $ne: $t, $t => u8 = |x, y| u8::from(x != y);
            $lt: $t, $t => u8 = |x, y| u8::from(x < y);
            $le: $t, $t => u8 = |x, y| u8::from(x <= y);
            $gt: $t, $t => u8 = |x, y| u8::from(x > y);
            $ge: $t, $t => u8 = |x, y| u8::from(x >= y);
        }
    };
}
compares!(f32, EqF32 NeF32 LtF32 LeF32 GtF32 GeF32);
compares!(f64, EqF64 NeF64 LtF64 LeF64 GtF64 GeF64);
compares!(i32, EqI32 NeI32 LtI32 LeI32 GtI32 GeI32);
compares!(i64, EqI64 NeI64 LtI64 LeI64 GtI64 GeI64);
compares!(u64, EqU64 NeU64 LtU64 LeU64 GtU64 GeU64);
compares!(u8, EqB8 NeB8 LtB8 LeB8 GtB8 GeB8);

macro_rules! ternaries {
    ($($t:ty, $select:ident $fma:ident = |$a:ident, $b:ident, $c:ident| $e:expr;)+) => {$(
        pub(super) struct $select;
        impl super::map::Map3 for $select {
            type A = u8;
            type B = $t;
            type R = $t;
            #[inline(always)]
            fn f(a: u8, b: $t, c: $t) -> $t { if a != 0 { b } else { c } }
        }
        pub(super) struct $fma;
        impl super::map::Map3 for $fma {
            type A = $t;
            type B = $t;
            type R = $t;
            #[inline(always)]
            fn f($a: $t, $b: $t, $c: $t) -> $t { $e }
        }
    )+};
}
ternaries! {
    f32, SelectF32 FmaF32 = |a, b, c| a.mul_add(b, c);
    f64, SelectF64 FmaF64 = |a, b, c| a.mul_add(b, c);
    i32, SelectI32 FmaI32 = |a, b, c| a.wrapping_mul(b).wrapping_add(c);
    i64, SelectI64 FmaI64 = |a, b, c| a.wrapping_mul(b).wrapping_add(c);
    u8, SelectB8 FmaB8 = |a, b, c| (a & b) ^ c;
}
