//! Elementwise functions: `tl.math`, libdevice, `tl.where`.

use super::arguments::Args;
use super::value::Value;
use super::{Compiler, Result};
use crate::consts::Const;
use crate::ir::{BinaryOp, Literal, Op, UnaryOp};
use crate::types::Elem;
use passnet_graph::syntax::Ranged;

impl<'a> Compiler<'a> {
    pub(super) fn where_(
        &mut self,
        at: &impl Ranged,
        c: &Value<'a>,
        x: &Value<'a>,
        y: &Value<'a>,
    ) -> Result<Value<'a>> {
        let c = self.tensor(at, c)?;
        let c = self.cast(c, Elem::I1);
        let pointers = match (x, y) {
            (Value::Tensor(x), Value::Tensor(y))
                if self.ty(*x).is_ptr() && self.ty(*y).is_ptr() =>
            {
                Some((*x, *y))
            }
            _ => None,
        };
        let (x, y) = match pointers {
            Some((x, y)) => self.broadcast_pair(at, x, y)?,
            None => self.unify(at, x, y, false)?,
        };
        let (c, x) = self.broadcast_pair(at, c, x)?;
        let shape = self.ty(c).shape;
        let y = self.broadcast_to(at, y, &shape)?;
        let ty = self.ty(x);
        if self.ty(y) != ty {
            return Err(self.error(at, format!("`tl.where` between {ty} and {}", self.ty(y))));
        }
        Ok(Value::Tensor(self.b.emit(Op::Select, &[c, x, y], ty)))
    }

    /// A function of `tl.math` or libdevice by its last name.
    pub(super) fn device_function(&mut self, name: &str, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        if let Some(op) = unary_of(name) {
            let [x] = self.bind(args, ["x"], 1)?;
            let x = x.unwrap_or(Value::NONE);
            return self.unary_math(&range, name, op, &x);
        }
        if let Some(op) = binary_of(name) {
            let [x, y, extra] = self.bind(
                args,
                ["x", "y", if name == "fdiv" { "ieee_rounding" } else { "propagate_nan" }],
                2,
            )?;
            let (x, y) = (x.unwrap_or(Value::NONE), y.unwrap_or(Value::NONE));
            return self.binary_math(&range, name, propagating(op, extra), &x, &y);
        }
        match name {
            "fma" => {
                let [x, y, z] = self.bind(args, ["x", "y", "z"], 3)?;
                let (x, y, z) =
                    (x.unwrap_or(Value::NONE), y.unwrap_or(Value::NONE), z.unwrap_or(Value::NONE));
                let (x, y) = self.unify(&range, &x, &y, false)?;
                let (x, z) = self.unify(&range, &Value::Tensor(x), &z, false)?;
                let (x, y) = self.unify(&range, &Value::Tensor(x), &Value::Tensor(y), false)?;
                let (z, y) = self.unify(&range, &Value::Tensor(z), &Value::Tensor(y), false)?;
                let ty = self.ty(x);
                Ok(Value::Tensor(self.b.emit(Op::Fma, &[x, y, z], ty)))
            }
            "clamp" => {
                let [x, low, high, mode] =
                    self.bind(args, ["x", "min", "max", "propagate_nan"], 3)?;
                let (x, low, high) = (
                    x.unwrap_or(Value::NONE),
                    low.unwrap_or(Value::NONE),
                    high.unwrap_or(Value::NONE),
                );
                let most = propagating(BinaryOp::Max, mode.clone());
                let raised = self.binary_math(&range, "clamp", most, &x, &low)?;
                self.binary_math(&range, "clamp", propagating(BinaryOp::Min, mode), &raised, &high)
            }
            "fast_dividef" | "div_rn" | "div_rz" | "fdividef" => {
                let [x, y] = self.bind(args, ["x", "y"], 2)?;
                let (x, y) = (x.unwrap_or(Value::NONE), y.unwrap_or(Value::NONE));
                self.binary_operator(&range, passnet_graph::syntax::ast::Operator::Div, &x, &y)
            }
            "saturatef" => {
                let [x] = self.bind(args, ["x"], 1)?;
                let x = x.unwrap_or(Value::NONE);
                let raised = self.binary_math(
                    &range,
                    name,
                    BinaryOp::Max,
                    &x,
                    &Value::Const(Const::Float(0.0)),
                )?;
                self.binary_math(
                    &range,
                    name,
                    BinaryOp::Min,
                    &raised,
                    &Value::Const(Const::Float(1.0)),
                )
            }
            "sigmoid" | "cdiv" | "softmax" => match self.prelude_function(name) {
                Some(func) => self.call_value(Value::Function(func), args),
                None => Err(self.error(&range, format!("`{name}` is not supported"))),
            },
            "fma_rn" | "fmaf" => self.device_function("fma", args),
            _ => match self.prelude_function(&format!("libdevice_{name}")) {
                Some(func) => self.call_value(Value::Function(func), args),
                None => {
                    let text = format!("`{}` is not supported in kernels", args.callee);
                    Err(self.error(&range, text).with_hint(instead_of(name)))
                }
            },
        }
    }

    fn unary_math(
        &mut self,
        at: &impl Ranged,
        name: &str,
        op: UnaryOp,
        x: &Value<'a>,
    ) -> Result<Value<'a>> {
        let mut v = self.tensor(at, x)?;
        let ty = self.ty(v);
        let Some(elem) = ty.num() else {
            return Err(self.error(at, format!("`{name}` does not take pointers")));
        };
        let any = matches!(op, UnaryOp::Abs);
        let integer = matches!(op, UnaryOp::Popc | UnaryOp::Clz);
        if integer {
            if elem.is_float() {
                return Err(self.error(at, format!("`{name}` takes integers, not {elem}")));
            }
            let ty = ty.with_elem(Elem::I32);
            return Ok(Value::Tensor(self.b.emit(Op::Unary(op), &[v], ty)));
        }
        if !any && !matches!(elem, Elem::F32 | Elem::F64) {
            // Python scalars convert; blocks of other types are the author's mistake, as in Triton.
            if matches!(x, Value::Const(_)) {
                v = self.cast(v, Elem::F32);
            } else {
                return Err(self
                    .error(at, format!("`{name}` takes fp32 or fp64, not {elem}"))
                    .with_hint("convert with `.to(tl.float32)` first"));
            }
        }
        if any && elem.is_unsigned() {
            return Ok(Value::Tensor(v));
        }
        let ty = self.ty(v);
        let tests =
            matches!(op, UnaryOp::IsNan | UnaryOp::IsInf | UnaryOp::IsFinite | UnaryOp::SignBit);
        let ty = if tests { ty.with_elem(Elem::I1) } else { ty };
        let result = self.b.emit(Op::Unary(op), &[v], ty);
        // libdevice tests give integers.
        Ok(Value::Tensor(if tests { self.cast(result, Elem::I32) } else { result }))
    }

    fn binary_math(
        &mut self,
        at: &impl Ranged,
        name: &str,
        op: BinaryOp,
        x: &Value<'a>,
        y: &Value<'a>,
    ) -> Result<Value<'a>> {
        let both_const = matches!((x, y), (Value::Const(_), Value::Const(_)));
        let (a, b) = self.unify(at, x, y, false)?;
        let ty = self.ty(a);
        let elem = ty.elem();
        let float_only = matches!(
            op,
            BinaryOp::Pow | BinaryOp::Atan2 | BinaryOp::Fmod | BinaryOp::CopySign | BinaryOp::Hypot
        );
        if both_const && matches!(op, BinaryOp::Max | BinaryOp::Min) && elem == Elem::I32 {
            let pick = |c: &Value<'a>| c.to_const().and_then(|c| c.as_int()).unwrap_or(0);
            let (x, y) = (pick(x), pick(y));
            return Ok(Value::int(if op == BinaryOp::Max { x.max(y) } else { x.min(y) }));
        }
        if float_only && !elem.is_float() {
            return Err(self.error(at, format!("`{name}` takes floats, not {elem}")));
        }
        if op == BinaryOp::UMulHi && (elem.is_float() || elem.bits() < 32) {
            return Err(
                self.error(at, format!("`{name}` takes 32- or 64-bit integers, not {elem}"))
            );
        }
        Ok(Value::Tensor(self.b.emit(Op::Binary(op), &[a, b], ty)))
    }

    /// A block or scalar of one value.
    pub(super) fn zero_like(&mut self, ty: &crate::types::Type) -> crate::ir::ValueId {
        self.constant_like(ty, Literal::Int(0))
    }
}

/// What to write for a function that is missing.
fn instead_of(name: &str) -> &'static str {
    match name {
        "globaltimer" | "smid" => "a kernel must not ask when or where it runs",
        "float8e4b15" | "float8e4b8" | "float8e5b16" => {
            "the floats of eight bits here are `tl.float8e4nv` and `tl.float8e5`"
        }
        "atomic_poll" => "a kernel must not wait for another program: programs run in any order",
        _ => {
            "write it with the functions of `tl` and `tl.math`: arithmetic, `exp`, `log`, `sqrt`, `sin`, `erf`, `where`, …"
        }
    }
}

/// The operation as `propagate_nan` asks for it: with `ALL`, a NaN on either side gives NaN.
fn propagating(op: BinaryOp, mode: Option<Value<'_>>) -> BinaryOp {
    match (op, mode.and_then(|mode| mode.to_const())) {
        (BinaryOp::Max, Some(Const::Str(mode))) if mode == "all" => BinaryOp::MaxNan,
        (BinaryOp::Min, Some(Const::Str(mode))) if mode == "all" => BinaryOp::MinNan,
        _ => op,
    }
}

fn unary_of(name: &str) -> Option<UnaryOp> {
    Some(match name {
        "exp" | "fast_expf" | "expf" => UnaryOp::Exp,
        "exp2" | "exp2f" | "fast_exp2f" => UnaryOp::Exp2,
        "expm1" => UnaryOp::Expm1,
        "log" | "fast_logf" | "logf" => UnaryOp::Log,
        "log2" | "fast_log2f" => UnaryOp::Log2,
        "log10" | "fast_log10f" => UnaryOp::Log10,
        "log1p" => UnaryOp::Log1p,
        "sqrt" | "sqrt_rn" | "sqrt_rd" => UnaryOp::Sqrt,
        "rsqrt" | "rsqrt_rn" => UnaryOp::Rsqrt,
        "cbrt" => UnaryOp::Cbrt,
        "sin" | "fast_sinf" => UnaryOp::Sin,
        "cos" | "fast_cosf" => UnaryOp::Cos,
        "tan" | "fast_tanf" => UnaryOp::Tan,
        "asin" => UnaryOp::Asin,
        "acos" => UnaryOp::Acos,
        "atan" => UnaryOp::Atan,
        "sinh" => UnaryOp::Sinh,
        "cosh" => UnaryOp::Cosh,
        "tanh" | "fast_tanhf" => UnaryOp::Tanh,
        "asinh" => UnaryOp::Asinh,
        "acosh" => UnaryOp::Acosh,
        "atanh" => UnaryOp::Atanh,
        "erf" => UnaryOp::Erf,
        "erfc" => UnaryOp::Erfc,
        "lgamma" => UnaryOp::Lgamma,
        "abs" | "fabs" => UnaryOp::Abs,
        "floor" => UnaryOp::Floor,
        "ceil" => UnaryOp::Ceil,
        "trunc" => UnaryOp::Trunc,
        "round" => UnaryOp::Round,
        "rint" | "nearbyint" => UnaryOp::Rint,
        "isnan" => UnaryOp::IsNan,
        "isinf" => UnaryOp::IsInf,
        "isfinited" | "finitef" | "isfinite" => UnaryOp::IsFinite,
        "signbit" => UnaryOp::SignBit,
        "popc" => UnaryOp::Popc,
        "clz" => UnaryOp::Clz,
        _ => return None,
    })
}

fn binary_of(name: &str) -> Option<BinaryOp> {
    Some(match name {
        "maximum" | "fmax" | "max" => BinaryOp::Max,
        "minimum" | "fmin" | "min" => BinaryOp::Min,
        "pow" | "fast_powf" => BinaryOp::Pow,
        "atan2" => BinaryOp::Atan2,
        "fmod" => BinaryOp::Fmod,
        "copysign" => BinaryOp::CopySign,
        "hypot" => BinaryOp::Hypot,
        "umulhi" | "mulhi" => BinaryOp::UMulHi,
        "fdiv" => BinaryOp::Div,
        "add_rn" => BinaryOp::Add,
        "mul_rn" => BinaryOp::Mul,
        "sub_rn" => BinaryOp::Sub,
        _ => return None,
    })
}
