//! Functions of one number.

use super::blocks::{self, Block};
use crate::native::error::{Result, bail, ensure};
use crate::native::tensor::element::Real;
use crate::native::tensor::{Complex, Tensor, promote};
use passnet_cpu::math::double;
use passnet_cpu::multiversion;
use passnet_graph::DType;

/// A function of one number, with its parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "torch's names, with torch's arguments")]
pub enum Unary {
    Abs,
    Neg,
    Sign,
    Floor,
    Ceil,
    Trunc,
    Round,
    Frac,
    Square,
    Sqrt,
    Rsqrt,
    Reciprocal,
    Exp,
    Exp2,
    Expm1,
    Log,
    Log2,
    Log10,
    Log1p,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    Asinh,
    Acosh,
    Atanh,
    Sinc,
    Lgamma,
    Digamma,
    BesselI0,
    Sigmoid,
    LogSigmoid,
    Logit {
        eps: Option<f64>,
    },
    Erf,
    Erfc,
    Erfinv,
    Relu,
    Relu6,
    Gelu,
    GeluTanh,
    Silu,
    Mish,
    Softsign,
    Tanhshrink,
    Hardswish,
    Hardsigmoid,
    Hardtanh {
        min: f64,
        max: f64,
    },
    LeakyRelu {
        slope: f64,
    },
    Elu {
        alpha: f64,
        scale: f64,
        input_scale: f64,
    },
    Softplus {
        beta: f64,
        threshold: f64,
    },
    Threshold {
        threshold: f64,
        value: f64,
    },
    Hardshrink {
        lambda: f64,
    },
    Softshrink {
        lambda: f64,
    },
    /// A power with one of the exponents torch has shortcuts for, or any other.
    Power {
        exponent: f64,
        /// Whether torch's shortcuts for common exponents apply.
        shortcuts: bool,
    },
}

impl Unary {
    /// Defined on integers with an integer result; everything else turns integers into floats.
    fn keeps_integers(self) -> bool {
        use Unary::{
            Abs, Ceil, Floor, Hardtanh, LeakyRelu, Neg, Relu, Relu6, Round, Sign, Square,
            Threshold, Trunc,
        };
        matches!(
            self,
            Abs | Neg
                | Sign
                | Floor
                | Ceil
                | Trunc
                | Round
                | Square
                | Relu
                | Relu6
                | Hardtanh { .. }
                | Threshold { .. }
                | LeakyRelu { .. }
        )
    }

    /// Functions PyTorch's CPU kernels define on floating-point types only.
    fn floats_only(self) -> bool {
        use Unary::{
            Elu, Frac, Gelu, GeluTanh, Hardshrink, Hardsigmoid, Hardswish, LeakyRelu, LogSigmoid,
            Mish, Silu, Softplus, Softshrink,
        };
        matches!(
            self,
            Gelu | GeluTanh
                | Silu
                | Mish
                | Hardswish
                | Hardsigmoid
                | LogSigmoid
                | Elu { .. }
                | Softplus { .. }
                | Hardshrink { .. }
                | Softshrink { .. }
                | LeakyRelu { .. }
                | Frac
        )
    }
}

/// Applies a function to every element.
pub fn unary(op: Unary, input: &Tensor) -> Result<Tensor> {
    let dtype = check(op, input)?;
    match dtype {
        DType::Float64 => blocks::map::<f64>(&[input], dtype, &|i, o| real_block(op, i, o)),
        d if d.is_float() => blocks::map::<f32>(&[input], dtype, &|i, o| real_block(op, i, o)),
        d if d.is_complex() => complex_unary(op, input),
        _ => blocks::map::<i64>(&[input], dtype, &|i, o| integer_block(op, i, o)),
    }
}

/// Applies a function to every element of `target` itself.
pub fn unary_in_place(op: Unary, target: &Tensor) -> Result<()> {
    let dtype = check(op, target)?;
    ensure!(
        dtype == target.dtype(),
        DType,
        "result type {dtype} can't be cast to the desired output type {}",
        target.dtype()
    );
    match dtype {
        DType::Float64 => blocks::map_in_place::<f64>(target, &[], &|i, o| real_block(op, i, o)),
        d if d.is_float() => blocks::map_in_place::<f32>(target, &[], &|i, o| real_block(op, i, o)),
        d if d.is_complex() => target.copy_from(&complex_unary(op, target)?),
        _ => blocks::map_in_place::<i64>(target, &[], &|i, o| integer_block(op, i, o)),
    }
}

/// The result's type, or an error where the function is not defined on the input's.
fn check(op: Unary, input: &Tensor) -> Result<DType> {
    let dtype = input.dtype();
    if dtype == DType::Bool {
        ensure!(
            op != Unary::Neg,
            DType,
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
        );
        ensure!(op != Unary::Relu, DType, "Boolean inputs not supported for relu");
    }
    if dtype.is_float() || dtype.is_complex() {
        return Ok(dtype);
    }
    ensure!(!op.floats_only(), DType, "\"{op:?}\" not implemented for '{dtype}'");
    if op == Unary::Square && dtype == DType::Bool {
        return Ok(DType::Int64);
    }
    Ok(if op.keeps_integers() { dtype } else { promote::float_type(dtype) })
}

pub(super) fn real_block<T: Real>(op: Unary, inputs: &[Block<'_, T>], out: &mut [T]) {
    match inputs[0] {
        Block::Run(x) => kernel(op, x, out),
        Block::One(value) => {
            let mut one = [T::ZERO];
            kernel(op, &[value], &mut one);
            out.fill(one[0]);
        }
    }
}

multiversion! {
    pub(crate) fn kernel[T: Real](op: Unary, x: &[T], out: &mut [T]) {
        // A loop per function, so that each is vectorised by itself.
        macro_rules! each {
            ($v:ident => $e:expr) => {
                for (o, v) in out.iter_mut().zip(x) {
                    let $v = *v;
                    *o = $e;
                }
            };
        }
        let c = T::constant;
        let (zero, one, half) = (T::ZERO, T::ONE, c(0.5));
        match op {
            Unary::Abs => each!(v => v.abs()),
            Unary::Neg => each!(v => -v),
            Unary::Sign => each!(v => if v > zero { one } else if v < zero { -one } else { zero }),
            Unary::Floor => each!(v => v.floor()),
            Unary::Ceil => each!(v => v.ceil()),
            Unary::Trunc => each!(v => v.trunc()),
            Unary::Round => each!(v => v.round_even()),
            Unary::Frac => each!(v => v - v.trunc()),
            Unary::Square => each!(v => v * v),
            Unary::Sqrt => each!(v => v.sqrt()),
            Unary::Rsqrt => each!(v => one / v.sqrt()),
            Unary::Reciprocal => each!(v => one / v),
            Unary::Exp => each!(v => v.exp()),
            Unary::Expm1 => each!(v => v.expm1()),
            Unary::Log => each!(v => v.ln()),
            Unary::Log1p => each!(v => v.ln_1p()),
            Unary::Sin => each!(v => v.sin()),
            Unary::Cos => each!(v => v.cos()),
            Unary::Tanh => each!(v => v.tanh()),
            Unary::Sigmoid => each!(v => v.sigmoid()),
            Unary::LogSigmoid => each!(v => v.least(zero) - (-v.abs()).exp().ln_1p()),
            Unary::Logit { eps: None } => each!(v => (v / (one - v)).ln()),
            Unary::Logit { eps: Some(eps) } => {
                let (low, high) = (c(eps), one - c(eps));
                each!(v => {
                    let v = v.most(low).least(high);
                    (v / (one - v)).ln()
                });
            }
            Unary::Erf => each!(v => v.erf()),
            Unary::Relu => each!(v => v.most(zero)),
            Unary::Relu6 => each!(v => v.most(zero).least(c(6.0))),
            Unary::Gelu => {
                let scale = c(std::f64::consts::FRAC_1_SQRT_2);
                each!(v => v * half * (one + (v * scale).erf()));
            }
            Unary::GeluTanh => {
                let beta = c(std::f64::consts::SQRT_2 * std::f64::consts::FRAC_2_SQRT_PI * 0.5);
                each!(v => {
                    let inner = beta * (v * v * v).fused(c(0.044715), v);
                    half * v * (one + inner.tanh())
                });
            }
            Unary::Silu => each!(v => v / (one + (-v).exp())),
            Unary::Mish => each!(v => v * v.exp().ln_1p().tanh()),
            Unary::Softsign => each!(v => v / (one + v.abs())),
            Unary::Tanhshrink => each!(v => v - v.tanh()),
            Unary::Hardswish => each!(v => v * (v + c(3.0)).most(zero).least(c(6.0)) / c(6.0)),
            Unary::Hardsigmoid => each!(v => (v + c(3.0)).most(zero).least(c(6.0)) / c(6.0)),
            Unary::Hardtanh { min, max } => {
                let (min, max) = (c(min), c(max));
                each!(v => v.most(min).least(max));
            }
            Unary::LeakyRelu { slope } => {
                let slope = c(slope);
                each!(v => if v > zero { v } else { v * slope });
            }
            Unary::Elu { alpha, scale, input_scale } => {
                let (negative, positive, inner) = (c(alpha * scale), c(scale), c(input_scale));
                each!(v => if v <= zero { (v * inner).expm1() * negative } else { v * positive });
            }
            Unary::Softplus { beta, threshold } => {
                let (beta, threshold) = (c(beta), c(threshold));
                each!(v => if v * beta > threshold { v } else { (v * beta).exp().ln_1p() / beta });
            }
            Unary::Threshold { threshold, value } => {
                let (threshold, value) = (c(threshold), c(value));
                each!(v => if v <= threshold { value } else { v });
            }
            Unary::Hardshrink { lambda } => {
                let lambda = c(lambda);
                each!(v => if v >= -lambda && v <= lambda { zero } else { v });
            }
            Unary::Softshrink { lambda } => {
                let lambda = c(lambda);
                each!(v => if v > lambda { v - lambda } else if v < -lambda { v + lambda } else { v * zero });
            }
            Unary::Power { exponent, shortcuts } => power(exponent, shortcuts, x, out),
            Unary::Exp2 => one_by_one(f64::exp2, x, out),
            Unary::Log2 => one_by_one(f64::log2, x, out),
            Unary::Log10 => one_by_one(f64::log10, x, out),
            Unary::Tan => one_by_one(f64::tan, x, out),
            Unary::Asin => one_by_one(f64::asin, x, out),
            Unary::Acos => one_by_one(f64::acos, x, out),
            Unary::Atan => one_by_one(f64::atan, x, out),
            Unary::Sinh => one_by_one(f64::sinh, x, out),
            Unary::Cosh => one_by_one(f64::cosh, x, out),
            Unary::Asinh => one_by_one(f64::asinh, x, out),
            Unary::Acosh => one_by_one(f64::acosh, x, out),
            Unary::Atanh => one_by_one(f64::atanh, x, out),
            Unary::Erfc => one_by_one(double::erfc, x, out),
            Unary::Erfinv => one_by_one(double::erfinv, x, out),
            Unary::Sinc => one_by_one(sinc, x, out),
            Unary::Lgamma => one_by_one(double::lgamma, x, out),
            Unary::Digamma => one_by_one(double::digamma, x, out),
            Unary::BesselI0 => one_by_one(double::bessel_i0, x, out),
        }
    }
}

/// Functions too rare for a kernel of their own, in double precision.
#[inline(never)]
fn one_by_one<T: Real>(function: fn(f64) -> f64, x: &[T], out: &mut [T]) {
    for (o, v) in out.iter_mut().zip(x) {
        *o = T::from_f64(function(v.to_f64()));
    }
}

/// sin(πx) / πx.
fn sinc(x: f64) -> f64 {
    let x = x * std::f64::consts::PI;
    if x == 0.0 { 1.0 } else { x.sin() / x }
}

/// Powers by a constant, with torch's shortcuts.
#[inline(always)]
fn power<T: Real>(exponent: f64, shortcuts: bool, x: &[T], out: &mut [T]) {
    macro_rules! each {
        ($v:ident => $e:expr) => {
            for (o, v) in out.iter_mut().zip(x) {
                let $v = *v;
                *o = $e;
            }
        };
    }
    let one = T::ONE;
    if !shortcuts {
        let exponent = T::constant(exponent);
        each!(v => v.pow(exponent));
    } else if exponent == 0.5 {
        each!(v => v.sqrt());
    } else if exponent == 2.0 {
        each!(v => v * v);
    } else if exponent == 3.0 {
        each!(v => v * v * v);
    } else if exponent == -0.5 {
        each!(v => one / v.sqrt());
    } else if exponent == -1.0 {
        each!(v => one / v);
    } else if exponent == -2.0 {
        each!(v => one / (v * v));
    } else if exponent == 1.0 {
        out.copy_from_slice(x);
    } else if exponent == 0.0 {
        out.fill(one);
    } else {
        let exponent = T::constant(exponent);
        each!(v => v.pow(exponent));
    }
}

fn integer_block(op: Unary, inputs: &[Block<'_, i64>], out: &mut [i64]) {
    let apply = |v: i64| match op {
        Unary::Abs => v.wrapping_abs(),
        Unary::Neg => v.wrapping_neg(),
        Unary::Sign => v.signum(),
        Unary::Square => v.wrapping_mul(v),
        Unary::Relu => v.max(0),
        Unary::Relu6 => v.clamp(0, 6),
        Unary::Hardtanh { min, max } => v.max(min as i64).min(max as i64),
        Unary::Threshold { threshold, value } => {
            if v as f64 <= threshold {
                value as i64
            } else {
                v
            }
        }
        _ => v,
    };
    match inputs[0] {
        Block::Run(x) => x.iter().zip(out).for_each(|(v, o)| *o = apply(*v)),
        Block::One(v) => out.fill(apply(v)),
    }
}

fn complex_unary(op: Unary, input: &Tensor) -> Result<Tensor> {
    if op == Unary::Abs {
        let real = input.dtype().real();
        let (re, im) = (input.complex_part(0)?, input.complex_part(1)?);
        return blocks::map::<f64>(&[&re, &im], real, &|inputs, out| {
            for (i, o) in out.iter_mut().enumerate() {
                *o = pick(&inputs[0], i).hypot(pick(&inputs[1], i));
            }
        });
    }
    let function: fn(Complex<f64>) -> Complex<f64> = match op {
        Unary::Neg => |v| Complex { re: -v.re, im: -v.im },
        Unary::Square => |v| Complex { re: v.re * v.re - v.im * v.im, im: 2.0 * v.re * v.im },
        Unary::Exp => |v| {
            let size = v.re.exp();
            Complex { re: size * v.im.cos(), im: size * v.im.sin() }
        },
        Unary::Reciprocal => |v| {
            let norm = v.re * v.re + v.im * v.im;
            Complex { re: v.re / norm, im: -v.im / norm }
        },
        _ => bail!(Unsupported, "{op:?} of a complex tensor is not supported"),
    };
    blocks::map::<Complex<f64>>(&[input], input.dtype(), &|inputs, out| {
        for (i, o) in out.iter_mut().enumerate() {
            *o = function(pick(&inputs[0], i));
        }
    })
}

/// One element of a block.
#[inline(always)]
pub(crate) fn pick<C: Copy>(block: &Block<'_, C>, index: usize) -> C {
    match block {
        Block::Run(run) => run[index],
        Block::One(value) => *value,
    }
}
