//! Functions of two numbers, comparisons and logic.

use super::blocks::{self, Block};
use super::unary::{Unary, pick, unary, unary_in_place};
use crate::native::error::{Result, bail, ensure};
use crate::native::tensor::element::Real;
use crate::native::tensor::{Arg, Complex, Scalar, Tensor, promote};
use passnet_cpu::multiversion;
use passnet_graph::DType;

/// Arithmetic of two operands.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "torch's names")]
pub enum Binary {
    /// a + alpha * b.
    Add {
        alpha: f64,
    },
    Mul,
    Div,
    FloorDivide,
    TruncDivide,
    Remainder,
    Fmod,
    Pow,
    Maximum,
    Minimum,
    Atan2,
    Hypot,
    Copysign,
    LogAddExp,
    LogAddExp2,
    /// 0 below zero, 1 above, b at zero.
    Heaviside,
    Xlogy,
    /// a where positive, else a * b.
    Prelu,
}

impl Binary {
    /// The result's type for operands whose promoted type is `common`.
    fn result(self, common: DType) -> DType {
        match self {
            Binary::Div | Binary::Atan2 | Binary::Xlogy | Binary::Copysign => {
                promote::float_type(common)
            }
            Binary::LogAddExp | Binary::LogAddExp2 => promote::float_type(common),
            _ => common,
        }
    }

    /// Products and quotients keep a 0-d second operand in full precision beside a half-precision tensor; everything else
    /// rounds it first. A number before a `*` is the second operand for torch: Python hands the product to the tensor.
    pub(super) fn keeps_number(self, place: usize) -> bool {
        matches!((self, place), (Binary::Mul, _) | (Binary::Div, 1))
    }

    fn divides(self) -> bool {
        matches!(self, Binary::FloorDivide | Binary::TruncDivide | Binary::Remainder | Binary::Fmod)
    }
}

/// Broadcasts, promotes and computes.
pub fn binary(op: Binary, a: &Arg, b: &Arg) -> Result<Tensor> {
    let dtype = op.result(promote::result_type([a, b]));
    check(op, dtype, a, b)?;
    if let (Binary::Pow, Arg::Tensor(base), Arg::Scalar(exponent)) = (op, a, b)
        && dtype.is_float()
    {
        let base = base.to_dtype(dtype)?;
        return unary(power(*exponent, dtype), &base);
    }
    let (a, b) = operands(op, a, b, dtype)?;
    run(op, &[&a, &b], dtype, None)
}

/// `a op= b`: the result must fit a's type and shape.
pub fn binary_in_place(op: Binary, a: &Tensor, b: &Arg) -> Result<()> {
    let dtype = op.result(promote::result_type([&a.into(), b]));
    ensure!(
        dtype.kind() <= a.dtype().kind(),
        DType,
        "result type {dtype} can't be cast to the desired output type {}",
        a.dtype()
    );
    if dtype != a.dtype() {
        return a.copy_from(&binary(op, &a.into(), b)?);
    }
    check(op, dtype, &a.into(), b)?;
    if let (Binary::Pow, Arg::Scalar(exponent)) = (op, b)
        && dtype.is_float()
    {
        return unary_in_place(power(*exponent, dtype), a);
    }
    let (_, b) = operands(op, &a.into(), b, dtype)?;
    run(op, &[&b], dtype, Some(a)).map(drop)
}

/// A power by a number: half-precision types round the exponent, and float16 has no shortcut for square roots.
pub(super) fn power(exponent: Scalar, dtype: DType) -> Unary {
    let exact = exponent.to_f64();
    match dtype {
        DType::Float16 => Unary::Power {
            exponent: f64::from(half::f16::from_f64(exact)),
            shortcuts: exact.fract() == 0.0,
        },
        DType::BFloat16 if exact.abs() != 0.5 => {
            Unary::Power { exponent: f64::from(half::bf16::from_f64(exact)), shortcuts: true }
        }
        _ => Unary::Power { exponent: exact, shortcuts: true },
    }
}

/// Operands as tensors, rounded to the common type where torch rounds them.
fn operands(op: Binary, a: &Arg, b: &Arg, dtype: DType) -> Result<(Tensor, Tensor)> {
    let narrow = matches!(dtype, DType::Float16 | DType::BFloat16);
    let convert = |arg: &Arg, keep: bool| -> Result<Tensor> {
        let tensor = arg.to_tensor()?;
        if narrow && tensor.ndim() == 0 && !keep { tensor.to_dtype(dtype) } else { Ok(tensor) }
    };
    let number_first = matches!(a, Arg::Scalar(_)) && op.keeps_number(0);
    Ok((convert(a, number_first)?, convert(b, op.keeps_number(1))?))
}

fn check(op: Binary, dtype: DType, a: &Arg, b: &Arg) -> Result<()> {
    let integral = !dtype.is_float() && !dtype.is_complex();
    if integral && op.divides() {
        let divisor = b.to_tensor()?;
        ensure!(divisor.values::<i64>()?.iter().all(|v| *v != 0), Arithmetic, "ZeroDivisionError");
    }
    if integral && op == Binary::Pow {
        let negative = match b {
            Arg::Scalar(exponent) => exponent.to_i64() < 0,
            Arg::Tensor(_) => false,
        };
        ensure!(!negative, Arithmetic, "Integers to negative integer powers are not allowed.");
    }
    if dtype == DType::Bool && op == (Binary::Add { alpha: -1.0 }) {
        bail!(
            DType,
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
        );
    }
    if dtype.is_complex() {
        let known = matches!(op, Binary::Add { .. } | Binary::Mul | Binary::Div);
        ensure!(known, Unsupported, "{op:?} of complex tensors is not supported");
    }
    if op == Binary::Hypot || op == Binary::Prelu {
        ensure!(dtype.is_float(), DType, "\"{op:?}\" not implemented for '{dtype}'");
    }
    let _ = a;
    Ok(())
}

fn run(op: Binary, inputs: &[&Tensor], dtype: DType, target: Option<&Tensor>) -> Result<Tensor> {
    macro_rules! apply {
        ($c:ty, $kernel:expr) => {{
            let kernel = $kernel;
            match target {
                None => blocks::map::<$c>(inputs, dtype, &kernel),
                Some(target) => {
                    blocks::map_in_place::<$c>(target, inputs, &kernel)?;
                    Ok(target.clone())
                }
            }
        }};
    }
    match dtype {
        DType::Float64 => apply!(f64, |i: &[Block<'_, f64>], o: &mut [f64]| real(op, i, o)),
        d if d.is_float() => apply!(f32, |i: &[Block<'_, f32>], o: &mut [f32]| real(op, i, o)),
        DType::Complex64 | DType::Complex128 => {
            apply!(Complex<f64>, |i: &[Block<'_, Complex<f64>>], o: &mut [Complex<f64>]| {
                for (at, o) in o.iter_mut().enumerate() {
                    *o = complex(op, pick(&i[0], at), pick(&i[1], at));
                }
            })
        }
        _ => apply!(i64, |i: &[Block<'_, i64>], o: &mut [i64]| integer(op, i, o)),
    }
}

pub(super) fn real<T: Real>(op: Binary, inputs: &[Block<'_, T>], out: &mut [T]) {
    let Some(hot) = Hot::new(op) else {
        for (at, o) in out.iter_mut().enumerate() {
            *o = rare(op, pick(&inputs[0], at), pick(&inputs[1], at));
        }
        return;
    };
    match (inputs[0], inputs[1]) {
        (Block::Run(a), Block::Run(b)) => run_run(hot, a, b, out),
        (Block::Run(a), Block::One(b)) => run_one(hot, a, b, out),
        (Block::One(a), Block::Run(b)) => one_run(hot, a, b, out),
        (Block::One(a), Block::One(b)) => {
            let mut one = [T::ZERO];
            run_one(hot, &[a], b, &mut one);
            out.fill(one[0]);
        }
    }
}

/// Functions worth a vectorised loop for each way their operands come.
#[derive(Clone, Copy)]
enum Hot {
    Add,
    Subtract,
    AddScaled(f64),
    Multiply,
    Divide,
    Maximum,
    Minimum,
}

impl Hot {
    fn new(op: Binary) -> Option<Self> {
        Some(match op {
            Binary::Add { alpha: 1.0 } => Hot::Add,
            Binary::Add { alpha: -1.0 } => Hot::Subtract,
            Binary::Add { alpha } => Hot::AddScaled(alpha),
            Binary::Mul => Hot::Multiply,
            Binary::Div => Hot::Divide,
            Binary::Maximum => Hot::Maximum,
            Binary::Minimum => Hot::Minimum,
            _ => return None,
        })
    }
}

/// One loop per function over operands given as an expression of the loop's position.
macro_rules! functions {
    ($T:ident, $op:expr, $each:ident) => {
        match $op {
            Hot::Add => $each!(a, b => a + b),
            Hot::Subtract => $each!(a, b => a - b),
            Hot::AddScaled(alpha) => {
                let alpha = $T::constant(alpha);
                $each!(a, b => b.fused(alpha, a))
            }
            Hot::Multiply => $each!(a, b => a * b),
            Hot::Divide => $each!(a, b => a / b),
            Hot::Maximum => $each!(a, b => if b.is_nan() { b } else { a.most(b) }),
            Hot::Minimum => $each!(a, b => if b.is_nan() { b } else { a.least(b) }),
        }
    };
}

multiversion! {
    fn run_run[T: Real](op: Hot, a: &[T], b: &[T], out: &mut [T]) {
        macro_rules! each {
            ($x:ident, $y:ident => $e:expr) => {
                for ((o, x), y) in out.iter_mut().zip(a).zip(b) {
                    let ($x, $y) = (*x, *y);
                    *o = $e;
                }
            };
        }
        functions!(T, op, each);
    }
}

multiversion! {
    fn run_one[T: Real](op: Hot, a: &[T], b: T, out: &mut [T]) {
        macro_rules! each {
            ($x:ident, $y:ident => $e:expr) => {
                for (o, x) in out.iter_mut().zip(a) {
                    let ($x, $y) = (*x, b);
                    *o = $e;
                }
            };
        }
        functions!(T, op, each);
    }
}

multiversion! {
    fn one_run[T: Real](op: Hot, a: T, b: &[T], out: &mut [T]) {
        macro_rules! each {
            ($x:ident, $y:ident => $e:expr) => {
                for (o, y) in out.iter_mut().zip(b) {
                    let ($x, $y) = (a, *y);
                    *o = $e;
                }
            };
        }
        functions!(T, op, each);
    }
}

fn rare<T: Real>(op: Binary, a: T, b: T) -> T {
    let zero = T::ZERO;
    match op {
        Binary::FloorDivide => floor_divide(a, b),
        Binary::TruncDivide => (a / b).trunc(),
        Binary::Remainder => {
            let rest = a % b;
            if rest != zero && ((b < zero) != (rest < zero)) { rest + b } else { rest }
        }
        Binary::Fmod => a % b,
        Binary::Pow => a.pow(b),
        Binary::Atan2 => T::constant(a.to_f64().atan2(b.to_f64())),
        Binary::Hypot => T::constant(a.to_f64().hypot(b.to_f64())),
        Binary::Copysign => a.copysign(b),
        Binary::LogAddExp => {
            let same = a == b && a.abs() == T::INFINITY;
            if same { a } else { a.most(b) + (-(a - b).abs()).exp().ln_1p() }
        }
        Binary::LogAddExp2 => {
            let same = a == b && a.abs() == T::INFINITY;
            let (larger, apart) = (a.most(b), (a - b).abs().to_f64());
            if same {
                a
            } else {
                larger + T::constant((-apart).exp2().ln_1p() / std::f64::consts::LN_2)
            }
        }
        Binary::Heaviside => {
            if a == zero {
                b
            } else if a < zero || a.is_nan() {
                zero
            } else {
                T::ONE
            }
        }
        Binary::Xlogy => {
            if b.is_nan() {
                b
            } else if a == zero {
                zero
            } else {
                a * b.ln()
            }
        }
        Binary::Prelu => {
            if a > zero {
                a
            } else {
                a * b
            }
        }
        // The rest are `Hot`.
        _ => a,
    }
}

/// Python's floor division, whose quotient and remainder always agree.
#[inline(always)]
fn floor_divide<T: Real>(a: T, b: T) -> T {
    if b == T::ZERO {
        return a / b;
    }
    let rest = a % b;
    let mut quotient = (a - rest) / b;
    if rest != T::ZERO && ((b < T::ZERO) != (rest < T::ZERO)) {
        quotient = quotient - T::ONE;
    }
    if quotient == T::ZERO {
        return T::ZERO.copysign(a / b);
    }
    let floor = quotient.floor();
    if quotient - floor > T::constant(0.5) { floor + T::ONE } else { floor }
}

fn integer(op: Binary, inputs: &[Block<'_, i64>], out: &mut [i64]) {
    for (i, o) in out.iter_mut().enumerate() {
        let (a, b) = (pick(&inputs[0], i), pick(&inputs[1], i));
        *o = match op {
            Binary::Add { alpha } => a.wrapping_add(b.wrapping_mul(alpha as i64)),
            Binary::Mul => a.wrapping_mul(b),
            Binary::FloorDivide => {
                let quotient = a.wrapping_div(b);
                let inexact = a.wrapping_rem(b) != 0 && ((a < 0) != (b < 0));
                if inexact { quotient - 1 } else { quotient }
            }
            Binary::TruncDivide => a.wrapping_div(b),
            Binary::Remainder => {
                let rest = a.wrapping_rem(b);
                if rest != 0 && ((rest < 0) != (b < 0)) { rest + b } else { rest }
            }
            Binary::Fmod => a.wrapping_rem(b),
            Binary::Pow => integer_power(a, b),
            Binary::Heaviside => {
                if a == 0 {
                    b
                } else {
                    i64::from(a > 0)
                }
            }
            Binary::Maximum => a.max(b),
            Binary::Minimum => a.min(b),
            _ => 0,
        };
    }
}

fn integer_power(base: i64, exponent: i64) -> i64 {
    if exponent < 0 {
        return match base {
            1 => 1,
            -1 if exponent % 2 == 0 => 1,
            -1 => -1,
            _ => 0,
        };
    }
    let (mut result, mut base, mut exponent) = (1i64, base, exponent);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        exponent >>= 1;
    }
    result
}

fn complex(op: Binary, a: Complex<f64>, b: Complex<f64>) -> Complex<f64> {
    match op {
        Binary::Add { alpha } => Complex { re: a.re + alpha * b.re, im: a.im + alpha * b.im },
        Binary::Div => {
            let norm = b.re * b.re + b.im * b.im;
            Complex {
                re: (a.re * b.re + a.im * b.im) / norm,
                im: (a.im * b.re - a.re * b.im) / norm,
            }
        }
        _ => Complex { re: a.re * b.re - a.im * b.im, im: a.re * b.im + a.im * b.re },
    }
}
