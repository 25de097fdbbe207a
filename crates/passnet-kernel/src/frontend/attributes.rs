//! Attributes of values and types, and the questions a type answers.

use super::arguments::Args;
use super::binary::natural_elem;
use super::names::external;
use super::value::{Func, Value};
use super::{Compiler, Result};
use crate::consts::Const;
use crate::modules::Binding;
use crate::types::{Elem, Type};
use passnet_graph::syntax::ast::ExprAttribute;

impl<'a> Compiler<'a> {
    pub(super) fn attribute(&mut self, a: &'a ExprAttribute) -> Result<Value<'a>> {
        let value = self.expr(&a.value)?;
        let name = a.attr.as_str();
        match &value {
            Value::Path(path) => match path.strip_prefix("limits.").and_then(Elem::from_name) {
                Some(elem) => self.limit(a, elem, name),
                None => Ok(external(format!("{path}.{name}"))),
            },
            Value::Module(index) => match self.modules.lookup(*index, name) {
                Some(Binding::Function(function)) => {
                    Ok(Value::Function(Func { function, prelude: false }))
                }
                Some(Binding::Assigned(module, value)) => self.global(&a.value, module, value),
                Some(Binding::External(path)) => Ok(external(path)),
                Some(Binding::Module(index)) => Ok(Value::Module(index)),
                None => Err(self.error(a, format!("the module has no `{name}`"))),
            },
            Value::Tensor(v) => {
                let ty = self.ty(*v);
                match name {
                    "shape" => Ok(shape_value(&ty.shape)),
                    "dtype" if ty.is_ptr() => Ok(Value::Const(Const::Pointer(ty.elem()))),
                    "dtype" => Ok(Value::Const(Const::Elem(ty.elem()))),
                    "type" => Ok(Value::TypeOf(*v)),
                    "numel" => Ok(Value::int(ty.numel() as i64)),
                    "T" => {
                        let rank = ty.shape.len();
                        self.permute(a, *v, &(0..rank as i64).rev().collect::<Vec<_>>())
                    }
                    _ => Ok(Value::Method(Box::new(value), name.to_string())),
                }
            }
            Value::BlockPtr(p) => match name {
                "dtype" => Ok(Value::Const(Const::Elem(self.ty(p.base).elem()))),
                "shape" | "strides" if p.descriptor => {
                    let (sizes, elem) = match name {
                        "shape" => (&p.shape, Elem::I32),
                        _ => (&p.strides, Elem::I64),
                    };
                    let sizes = sizes.iter().map(|v| Value::Tensor(self.cast(*v, elem)));
                    Ok(Value::Tuple(sizes.collect()))
                }
                "block_shape" | "shape" => Ok(shape_value(&p.block)),
                _ => Ok(Value::Method(Box::new(value), name.to_string())),
            },
            Value::TypeOf(v) => {
                let ty = self.ty(*v);
                match name {
                    "element_ty" if ty.is_ptr() && !ty.is_scalar() => {
                        Ok(Value::Const(Const::Pointer(ty.elem())))
                    }
                    "element_ty" => Ok(Value::Const(Const::Elem(ty.elem()))),
                    "scalar" => Ok(Value::Const(lane_type(&ty))),
                    "shape" => Ok(shape_value(&ty.shape)),
                    "is_block" | "is_ptr" => Ok(Value::Method(Box::new(value), name.to_string())),
                    _ => self.type_attribute(a, lane_type(&ty), name),
                }
            }
            Value::Const(c @ (Const::Elem(_) | Const::Pointer(_))) => {
                let of = c.clone();
                self.type_attribute(a, of, name)
            }
            Value::Const(_) if name == "value" => Ok(value),
            Value::Const(c) if name == "dtype" && natural_elem(c).is_some() => {
                Ok(Value::Const(Const::Elem(natural_elem(c).unwrap_or(Elem::I32))))
            }
            Value::Const(Const::Bool(_) | Const::Int(_) | Const::Float(_)) => {
                let error =
                    self.error(a, format!("a number of Python's has no attribute `{name}`"));
                Err(error.with_hint("`tl.full((1,), value, tl.float32)` is a tensor of it"))
            }
            Value::Const(_) => Ok(Value::Method(Box::new(value), name.to_string())),
            other => Err(self.error(a, format!("{} has no attribute `{name}`", other.describe()))),
        }
    }

    fn type_attribute(&mut self, a: &ExprAttribute, of: Const, name: &str) -> Result<Value<'a>> {
        let int = |value: u32| Ok(Value::int(i64::from(value)));
        match (name, &of) {
            // A type that was given as a `tl.constexpr`.
            ("value" | "scalar", _) => Ok(Value::Const(of)),
            ("element_ty", Const::Pointer(elem) | Const::Elem(elem)) => {
                Ok(Value::Const(Const::Elem(*elem)))
            }
            ("primitive_bitwidth" | "int_bitwidth" | "itemsize", Const::Pointer(_)) => {
                int(if name == "itemsize" { 8 } else { 64 })
            }
            ("primitive_bitwidth", Const::Elem(elem)) => int(elem.bits()),
            ("itemsize", Const::Elem(elem)) => int(elem.size() as u32),
            ("int_bitwidth", Const::Elem(elem)) if !elem.is_float() => int(elem.bits()),
            ("fp_mantissa_width", Const::Elem(elem)) if elem.is_float() => int(match elem {
                Elem::F8E5 => 2,
                Elem::F8E4NV => 3,
                Elem::F16 => 10,
                Elem::BF16 => 7,
                Elem::F32 => 23,
                _ => 52,
            }),
            ("exponent_bias", Const::Elem(elem)) if elem.is_float() => int(match elem {
                Elem::F8E4NV => 7,
                Elem::F16 | Elem::F8E5 => 15,
                Elem::BF16 | Elem::F32 => 127,
                _ => 1023,
            }),
            ("name", Const::Elem(elem)) => Ok(Value::Const(Const::Str(triton_name(*elem)))),
            _ if name.starts_with("is_") => {
                Ok(Value::Method(Box::new(Value::Const(of)), name.to_string()))
            }
            _ => Err(self.error(a, format!("a type has no attribute `{name}`")).with_hint(
                "ask for `primitive_bitwidth`, `itemsize`, `element_ty`, `name`, or call `is_floating()` and the like",
            )),
        }
    }

    /// `x.dtype.is_floating()` and the like.
    pub(super) fn type_test(
        &mut self,
        of: &Const,
        name: &str,
        args: &Args<'a>,
    ) -> Result<Value<'a>> {
        let unknown = || self.error(args, format!("a type has no method `{name}`"));
        let Const::Elem(elem) = of else {
            // Of a pointer all other questions are answered with no.
            let is_question = name.starts_with("is_");
            return match is_question {
                true => Ok(Value::Const(Const::Bool(name == "is_ptr"))),
                false => Err(unknown()),
            };
        };
        let elem = *elem;
        let result = match name {
            "is_floating" => elem.is_float(),
            "is_standard_floating" => elem.is_float() && !elem.is_float8(),
            "is_int" => elem.is_int(),
            "is_int_signed" => elem.is_int() && !elem.is_unsigned() && elem != Elem::I1,
            "is_int_unsigned" => elem.is_unsigned(),
            "is_bool" | "is_int1" => elem == Elem::I1,
            // There are no such types here, and no dtype is one.
            "is_ptr" | "is_block" | "is_void" | "is_const" | "is_cond" => false,
            "is_fp8e4b8" | "is_fp8e4b15" | "is_fp8e5b16" => false,
            "is_fp8" => elem.is_float8(),
            "is_fp8e4nv" => elem == Elem::F8E4NV,
            "is_fp8e5" => elem == Elem::F8E5,
            _ => {
                let named = match name {
                    "is_fp16" => Some(Elem::F16),
                    "is_bf16" => Some(Elem::BF16),
                    "is_fp32" => Some(Elem::F32),
                    "is_fp64" => Some(Elem::F64),
                    _ => name
                        .strip_prefix("is_")
                        .and_then(Elem::from_language_name)
                        .filter(|elem| !elem.is_float()),
                };
                named.ok_or_else(unknown)? == elem
            }
        };
        Ok(Value::Const(Const::Bool(result)))
    }

    /// `x.type.is_block()` and `is_ptr()`.
    pub(super) fn shape_test(&mut self, ty: &Type, name: &str) -> Value<'a> {
        Value::Const(Const::Bool(match name {
            "is_block" => !ty.is_scalar(),
            _ => ty.is_ptr() && ty.is_scalar(),
        }))
    }

    /// `torch.finfo(torch.float32).max` and the like.
    fn limit(&mut self, a: &ExprAttribute, elem: Elem, name: &str) -> Result<Value<'a>> {
        let (digits, most): (i32, f64) = match elem {
            Elem::F8E5 => (2, 57344.0),
            Elem::F8E4NV => (3, 448.0),
            Elem::F16 => (10, 65504.0),
            Elem::BF16 => (7, f64::from(f32::from_bits(0x7f7f_0000))),
            Elem::F32 => (23, f64::from(f32::MAX)),
            Elem::F64 => (52, f64::MAX),
            _ => {
                let bits = elem.bits().min(63);
                let signed = !elem.is_unsigned();
                let high = match (signed, elem.bits()) {
                    (true, 64) => i64::MAX,
                    (true, bits) => (1i64 << (bits - 1)) - 1,
                    (false, _) => (1i64 << bits) - 1,
                };
                return match name {
                    "max" => Ok(Value::int(high)),
                    "min" => Ok(Value::int(if signed { -high - 1 } else { 0 })),
                    "bits" => Ok(Value::int(i64::from(elem.bits()))),
                    _ => Err(self.error(a, format!("`torch.iinfo` has no `{name}`"))),
                };
            }
        };
        let tiny = match elem {
            Elem::F8E4NV => 2f64.powi(-6),
            Elem::F16 | Elem::F8E5 => 2f64.powi(-14),
            Elem::BF16 | Elem::F32 => 2f64.powi(-126),
            _ => f64::MIN_POSITIVE,
        };
        Ok(Value::Const(match name {
            "max" => Const::Float(most),
            "min" => Const::Float(-most),
            "eps" => Const::Float(2f64.powi(-digits)),
            "tiny" | "smallest_normal" => Const::Float(tiny),
            "bits" => Const::Int(i64::from(elem.bits())),
            _ => return Err(self.error(a, format!("`torch.finfo` has no `{name}`"))),
        }))
    }
}

/// The type of one lane.
fn lane_type(ty: &Type) -> Const {
    match ty.is_ptr() {
        true => Const::Pointer(ty.elem()),
        false => Const::Elem(ty.elem()),
    }
}

/// What Triton calls a type: `fp32`, `int32`.
fn triton_name(elem: Elem) -> String {
    match elem.is_float() {
        true => elem.name().into(),
        false => elem.language_name().into(),
    }
}

fn shape_value<'a>(shape: &[u32]) -> Value<'a> {
    Value::Tuple(shape.iter().map(|&d| Value::int(i64::from(d))).collect())
}
