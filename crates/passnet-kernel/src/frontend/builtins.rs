//! Which function of `tl`, `tl.math`, libdevice or Python a call means.

use super::arguments::Args;
use super::value::{RangeKind, Value};
use super::{Compiler, Result};
use crate::consts::{Const, next_power_of_2};
use crate::ir::Op;
use crate::types::{Elem, Lane, Type};
use passnet_graph::Diagnostic;

/// How the message of a failed `tl.static_assert` begins.
const STATIC_ASSERTION: &str = "static assertion failed";

/// Whether a kernel does not compile because it asserts that it must not be compiled so: a configuration that autotune
/// passes over.
pub fn is_static_assertion(error: &Diagnostic) -> bool {
    error.message.starts_with(STATIC_ASSERTION)
}

impl<'a> Compiler<'a> {
    pub(super) fn builtin(&mut self, path: &str, args: Args<'a>) -> Result<Value<'a>> {
        if let Some(name) = path.strip_prefix("builtins.") {
            return self.python_builtin(name, args);
        }
        if let Some(name) = path.strip_prefix("triton.language.") {
            let name = name.strip_prefix("core.").unwrap_or(name);
            let name = name.strip_prefix("standard.").unwrap_or(name);
            let name = name.strip_prefix("random.").unwrap_or(name);
            if let Some(name) = name.strip_prefix("extra.cuda.")
                && matches!(name, "gdc_wait" | "gdc_launch_dependents")
            {
                // They order launches that overlap; here one begins when the other has ended.
                return Ok(Value::NONE);
            }
            let device =
                ["math.", "extra.libdevice.", "extra.cuda.libdevice.", "extra.intel.libdevice."];
            if let Some(function) = device.iter().find_map(|p| name.strip_prefix(p)) {
                return self.device_function(function, args);
            }
            return self.language(name, args);
        }
        match path {
            // A profiler's marks.
            _ if path.starts_with("triton.profiler.language.") => Ok(Value::NONE),
            "triton.cdiv" | "triton.next_power_of_2" => self.host_helper(path, args),
            "math.log2" | "math.sqrt" | "math.log" | "math.exp" | "math.ceil" | "math.floor" => {
                self.host_helper(path, args)
            }
            "torch.finfo" | "torch.iinfo" => {
                let range = args.range;
                let [elem] = self.bind(args, ["type"], 1)?;
                let elem = self.const_elem(&range, &elem.unwrap_or(Value::NONE))?;
                Ok(Value::Path(format!("limits.{}", elem.name())))
            }
            _ if path.contains("libdevice.") => {
                let function = path.rsplit('.').next().unwrap_or(path).to_string();
                self.device_function(&function, args)
            }
            _ => Err(self
                .error(&args, format!("`{path}` cannot be called inside a kernel"))
                .with_hint("kernels may call `tl.*`, `tl.math.*`, libdevice functions and `@triton.jit` helpers")),
        }
    }

    fn python_builtin(&mut self, name: &str, args: Args<'a>) -> Result<Value<'a>> {
        match name {
            "range" => self.range_value(RangeKind::Dynamic, args),
            "print" => Ok(Value::NONE),
            "len" => {
                let range = args.range;
                let [x] = self.bind(args, ["x"], 1)?;
                match x {
                    Some(Value::Tuple(items)) => Ok(Value::int(items.len() as i64)),
                    _ => Err(self.error(&range, "`len` takes a tuple")),
                }
            }
            "float" | "int" | "bool" => {
                let range = args.range;
                let [x] = self.bind(args, ["x"], 1)?;
                let x = x.unwrap_or(Value::NONE);
                self.python_cast(&range, name, &x)
            }
            "abs" => self.device_function("abs", args),
            "isinstance" => {
                let range = args.range;
                let [x, kind] = self.bind(args, ["x", "kind"], 2)?;
                self.is_instance(&range, &x.unwrap_or(Value::NONE), &kind.unwrap_or(Value::NONE))
            }
            "min" | "max" => {
                let known: Option<Vec<Const>> =
                    args.positional.iter().map(Value::to_const).collect();
                if let Some(known) = known
                    && known.len() > 1
                {
                    let mut best = known[0].clone();
                    for c in &known[1..] {
                        let op = if name == "min" {
                            passnet_graph::syntax::ast::CmpOp::Lt
                        } else {
                            passnet_graph::syntax::ast::CmpOp::Gt
                        };
                        if crate::consts::compare(op, c, &best).map_err(|e| self.error(&args, e))? {
                            best = c.clone();
                        }
                    }
                    return Ok(Value::Const(best));
                }
                self.language(if name == "min" { "minimum" } else { "maximum" }, args)
            }
            _ => Err(self.error(&args, format!("`{name}` cannot be called inside a kernel"))),
        }
    }

    /// `isinstance(x, tl.tensor)`: what a value is stands fast while a kernel is compiled.
    fn is_instance(
        &self,
        at: &passnet_graph::syntax::TextRange,
        x: &Value<'a>,
        kind: &Value<'a>,
    ) -> Result<Value<'a>> {
        let kinds = match kind {
            Value::Tuple(kinds) => kinds.as_slice(),
            other => std::slice::from_ref(other),
        };
        let mut is = false;
        for kind in kinds {
            let Value::Path(path) = kind else {
                return Err(self.error(at, format!("`isinstance` with {}", kind.describe())));
            };
            let name = path.rsplit('.').next().unwrap_or(path);
            is |= match name {
                "tensor" => matches!(x, Value::Tensor(_)),
                "constexpr" => matches!(x, Value::Const(_)),
                "tuple" => matches!(x, Value::Tuple(_)),
                "tensor_descriptor" | "tensor_descriptor_base" => {
                    matches!(x, Value::BlockPtr(p) if p.descriptor)
                }
                "dtype" => matches!(x, Value::Const(Const::Elem(_) | Const::Pointer(_))),
                _ => {
                    return Err(self.error(at, format!("`isinstance` with `{name}`")).with_hint(
                        "ask for `tl.tensor`, `tl.constexpr`, `tl.tuple`, `tl.dtype` or `tl.tensor_descriptor`",
                    ));
                }
            };
        }
        Ok(Value::Const(Const::Bool(is)))
    }

    fn python_cast(
        &mut self,
        at: &passnet_graph::syntax::TextRange,
        name: &str,
        x: &Value<'a>,
    ) -> Result<Value<'a>> {
        if let Value::Const(c) = x {
            let text = match c {
                Const::Str(s) => Some(s.trim().to_ascii_lowercase()),
                _ => None,
            };
            return match (name, text) {
                ("float", Some(text)) => text
                    .trim_start_matches('+')
                    .parse()
                    .map(|f| Value::Const(Const::Float(f)))
                    .map_err(|_| self.error(at, format!("`{text}` is not a number"))),
                ("float", None) => c
                    .as_float()
                    .map(|f| Value::Const(Const::Float(f)))
                    .ok_or_else(|| self.error(at, "`float` takes a number or a string")),
                ("int", _) => c
                    .as_float()
                    .map(|f| Value::int(c.as_int().unwrap_or(f as i64)))
                    .ok_or_else(|| self.error(at, "`int` takes a number")),
                _ => Ok(Value::Const(Const::Bool(c.truthy()))),
            };
        }
        let v = self.tensor(at, x)?;
        let elem = match name {
            "float" => Elem::F32,
            "int" => Elem::I32,
            _ => Elem::I1,
        };
        Ok(Value::Tensor(self.cast(v, elem)))
    }

    /// Functions of the host that kernels use on compile-time values.
    fn host_helper(&mut self, path: &str, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        if path == "triton.cdiv" {
            return self.language("cdiv", args);
        }
        let [x] = self.bind(args, ["x"], 1)?;
        let x = self.const_of(&range, &x.unwrap_or(Value::NONE), "this argument")?;
        let float = x.as_float().ok_or_else(|| self.error(&range, "expected a number"))?;
        Ok(Value::Const(match path {
            "triton.next_power_of_2" => Const::Int(next_power_of_2(x.as_int().unwrap_or(1))),
            "math.log2" => Const::Float(float.log2()),
            "math.sqrt" => Const::Float(float.sqrt()),
            "math.log" => Const::Float(float.ln()),
            "math.exp" => Const::Float(float.exp()),
            "math.ceil" => Const::Int(float.ceil() as i64),
            _ => Const::Int(float.floor() as i64),
        }))
    }

    fn language(&mut self, name: &str, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        match name {
            "program_id" | "num_programs" => self.program_axis(name, args),
            "constexpr" => {
                let [x] = self.bind(args, ["value"], 1)?;
                let x = x.unwrap_or(Value::NONE);
                self.const_of(&range, &x, "the argument of `tl.constexpr`").map(Value::from_const)
            }
            "range" => self.range_value(RangeKind::Dynamic, args),
            "static_range" => self.range_value(RangeKind::Static, args),
            "static_assert" => self.static_assert(args),
            "device_assert" => self.device_assert(args),
            "static_print" | "device_print" | "debug_barrier" | "assume" => Ok(Value::NONE),
            "multiple_of" | "max_contiguous" | "max_constancy" => {
                let [x, _] = self.bind(args, ["input", "values"], 1)?;
                Ok(x.unwrap_or(Value::NONE))
            }
            "gather" if matches!(args.positional.first(), Some(Value::BlockPtr(_))) => {
                self.memory("gather", args)
            }
            "load"
            | "store"
            | "make_block_ptr"
            | "advance"
            | "make_tensor_descriptor"
            | "atomic_add"
            | "atomic_max"
            | "atomic_min"
            | "atomic_and"
            | "atomic_or"
            | "atomic_xor"
            | "atomic_xchg"
            | "atomic_cas"
            | "load_tensor_descriptor"
            | "store_tensor_descriptor" => self.memory(name, args),
            "sum" | "max" | "min" | "argmax" | "argmin" | "xor_sum" | "reduce_or" | "reduce"
            | "cumsum" | "cumprod" | "associative_scan" | "sort" | "histogram" => {
                self.reduction(name, args)
            }
            "arange" | "full" | "reshape" | "view" | "permute" | "trans" | "join" | "split"
            | "expand_dims" | "broadcast_to" | "broadcast" | "cat" | "flip" | "gather" | "dot"
            | "interleave" => self.shape_op(name, args),
            "cast" | "to" => self.cast_call(args),
            "logical_and" | "logical_or" => {
                let [x, y] = self.bind(args, ["input", "other"], 2)?;
                let (x, y) = (x.unwrap_or(Value::NONE), y.unwrap_or(Value::NONE));
                self.logical(&range, name == "logical_and", &x, &y)
            }
            "_log2" => {
                let [x] = self.bind(args, ["i"], 1)?;
                let x = self.const_int(&range, &x.unwrap_or(Value::NONE), "this argument")?;
                Ok(Value::int(x.max(1).ilog2().into()))
            }
            "where" => {
                let [c, x, y] = self.bind(args, ["condition", "x", "y"], 3)?;
                let none = Value::NONE;
                self.where_(
                    &range,
                    c.as_ref().unwrap_or(&none),
                    x.as_ref().unwrap_or(&none),
                    y.as_ref().unwrap_or(&none),
                )
            }
            "pointer_type" => {
                let [elem, ..] = self.bind(args, ["element_ty", "address_space", "const"], 1)?;
                Ok(Value::Const(Const::Pointer(
                    self.const_elem(&range, &elem.unwrap_or(Value::NONE))?,
                )))
            }
            "inline_asm_elementwise" => self.assembly(args),
            "map_elementwise" => self.map_elementwise(args),
            "to_tensor" => {
                let [x] = self.bind(args, ["x"], 1)?;
                self.tensor(&range, &x.unwrap_or(Value::NONE)).map(Value::Tensor)
            }
            "target_info.is_cuda" => Ok(Value::Const(Const::Bool(true))),
            "target_info.is_hip" | "target_info.is_hip_cdna3" | "target_info.is_hip_cdna4" => {
                Ok(Value::Const(Const::Bool(false)))
            }
            "scatter" => self.memory(name, args),
            "dot_scaled"
            | "cdiv"
            | "sigmoid"
            | "softmax"
            | "ravel"
            | "swizzle2d"
            | "zeros"
            | "zeros_like"
            | "philox"
            | "philox_impl"
            | "randint"
            | "randint4x"
            | "rand"
            | "rand4x"
            | "randn"
            | "randn4x"
            | "uint_to_uniform_float"
            | "uint32_to_uniform_float"
            | "pair_uniform_to_normal"
            | "topk" => match self.prelude_function(name) {
                Some(func) => self.call_value(Value::Function(func), args),
                None => Err(self.error(&range, format!("`tl.{name}` is not supported"))),
            },
            _ => self.device_function(name, args),
        }
    }

    fn program_axis(&mut self, name: &str, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        let [axis] = self.bind(args, ["axis"], 1)?;
        let axis = self.const_int(&range, &axis.unwrap_or(Value::NONE), "the axis")?;
        if !(0..3).contains(&axis) {
            return Err(self.error(&range, format!("axis {axis}: a grid has axes 0, 1 and 2")));
        }
        let op = if name == "program_id" {
            Op::ProgramId(axis as u8)
        } else {
            Op::NumPrograms(axis as u8)
        };
        Ok(Value::Tensor(self.b.emit(op, &[], Type::scalar(Elem::I32))))
    }

    fn static_assert(&mut self, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        let [condition, message] = self.bind(args, ["cond", "msg"], 1)?;
        let condition =
            self.const_of(&range, &condition.unwrap_or(Value::NONE), "the condition")?;
        if condition.truthy() {
            return Ok(Value::NONE);
        }
        let text = match message.and_then(|m| m.to_const()) {
            Some(Const::Str(text)) if !text.is_empty() => format!(": {text}"),
            _ => String::new(),
        };
        Err(self.error(&range, format!("{STATIC_ASSERTION}{text}")))
    }

    fn device_assert(&mut self, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        let [condition, message, _] = self.bind(args, ["cond", "msg", "mask"], 1)?;
        let condition = self.tensor(&range, &condition.unwrap_or(Value::NONE))?;
        let condition = self.cast(condition, Elem::I1);
        let text = match message.and_then(|m| m.to_const()) {
            Some(Const::Str(text)) => text,
            _ => String::new(),
        };
        self.b.emit_effect(Op::Assert(text), &[condition]);
        Ok(Value::NONE)
    }

    fn cast_call(&mut self, args: Args<'a>) -> Result<Value<'a>> {
        let range = args.range;
        let [x, dtype, rounding, bitcast] =
            self.bind(args, ["input", "dtype", "fp_downcast_rounding", "bitcast"], 2)?;
        let x = x.unwrap_or(Value::NONE);
        let dtype = dtype.unwrap_or(Value::NONE);
        let to_zero = match rounding.and_then(|r| r.to_const()) {
            None | Some(Const::None) => false,
            Some(Const::Str(mode)) if mode == "rtne" => false,
            Some(Const::Str(mode)) if mode == "rtz" => true,
            Some(other) => {
                return Err(self
                    .error(&range, format!("{other} is no rounding mode"))
                    .with_hint("Triton has \"rtne\" and \"rtz\""));
            }
        };
        let bitcast = self.const_bool(&range, bitcast, false)?;
        let v = self.tensor(&range, &x)?;
        let ty = self.ty(v);
        if let Value::Const(Const::Pointer(elem)) = dtype {
            let to = Type { lane: Lane::Ptr(elem), shape: ty.shape.clone() };
            if to == ty {
                return Ok(Value::Tensor(v));
            }
            if ty.is_ptr() || ty.elem() == Elem::I64 || ty.elem() == Elem::U64 {
                return Ok(Value::Tensor(self.b.emit(Op::Bitcast, &[v], to)));
            }
            return Err(self.error(&range, format!("cannot make a pointer of {ty}")));
        }
        let elem = self.const_elem(&range, &dtype)?;
        if ty.is_ptr() {
            if elem != Elem::I64 && elem != Elem::U64 {
                return Err(self.error(&range, "a pointer casts to a 64-bit integer only"));
            }
            let to = ty.with_elem(elem);
            return Ok(Value::Tensor(self.b.emit(Op::Bitcast, &[v], to)));
        }
        if to_zero && !(ty.elem().is_float() && elem.is_float() && elem.bits() < ty.elem().bits()) {
            return Err(self
                .error(
                    &range,
                    format!(
                        "a rounding mode is for a narrower float, not for {} to {elem}",
                        ty.elem()
                    ),
                )
                .with_hint("leave `fp_downcast_rounding` out"));
        }
        if to_zero && elem.is_float8() {
            return Err(self
                .error(&range, format!("{elem} is rounded to nearest only"))
                .with_hint("leave `fp_downcast_rounding` out"));
        }
        if to_zero {
            let name = if elem.bits() == 16 { "round_to_zero_16" } else { "round_to_zero_32" };
            let args = Args {
                positional: vec![x, Value::Const(Const::Elem(elem))],
                named: Vec::new(),
                range,
                callee: "cast".into(),
            };
            return match self.prelude_function(name) {
                Some(func) => self.call_value(Value::Function(func), args),
                None => Err(self.error(&range, "this rounding mode is not supported")),
            };
        }
        if !bitcast {
            return Ok(Value::Tensor(self.cast(v, elem)));
        }
        if ty.elem() == elem {
            return Ok(Value::Tensor(v));
        }
        if ty.elem().bits() != elem.bits() {
            return Err(self
                .error(&range, format!("cannot bitcast {} to {elem}: widths differ", ty.elem())));
        }
        let to = ty.with_elem(elem);
        Ok(Value::Tensor(self.b.emit(Op::Bitcast, &[v], to)))
    }
}
