//! What a wrapper may ask of a tensor: its shape, views of it, copies, new tensors like it.

use super::call_args::CallArgs;
use super::interp::{Interp, Result};
use super::tensor::Tensor;
use super::torch_api::fill_of;
use super::value::Value;
use super::views::permuted;
use super::{Init, Step};
use crate::consts::Const;
use crate::types::Elem;
use passnet_graph::graph::CalleeKind;
use passnet_graph::ops::{Op, spelling};
use passnet_graph::syntax::{Ranged, TextRange};
use passnet_graph::view::shape::turned_matrices;
use passnet_graph::{DType, Device, DeviceKind, Diagnostic};
use std::rc::Rc;

/// What a tensor has by a name; `None` where the name is a method's, or nobody's.
pub(super) fn tensor_attribute<'a>(t: &Rc<Tensor>, name: &str) -> Option<Value<'a>> {
    let rank = t.shape.len();
    Some(match spelling(CalleeKind::Attribute, name).map(|spelled| spelled.op) {
        Some(Op::Shape) => Value::ints(&t.shape),
        Some(Op::DtypeOf) => Value::DType(t.dtype),
        Some(Op::DeviceOf) => Value::Device(t.device),
        Some(Op::Dim) => Value::int(rank as i64),
        Some(Op::Detach) => Value::Tensor(Rc::clone(t)),
        Some(Op::ReverseDims) => permuted(t, &(0..rank).rev().collect::<Vec<_>>()),
        Some(Op::MatrixTranspose) if !t.dtype.is_complex() => {
            permuted(t, &turned_matrices(rank).ok()?)
        }
        _ => match name {
            "is_cuda" => Value::bool(t.device.kind == DeviceKind::Cuda),
            "requires_grad" => Value::bool(false),
            "itemsize" => Value::int(t.dtype.size() as i64),
            _ => return None,
        },
    })
}

impl<'a> Interp<'a> {
    pub(super) fn tensor_method(
        &mut self,
        t: &Rc<Tensor>,
        name: &str,
        args: CallArgs<'a>,
    ) -> Result<Value<'a>> {
        let at = args.range;
        let spelled = spelling(CalleeKind::Method, name);
        // Of the methods that write into their tensor, these alone.
        let may_write = |op| matches!(op, Op::Zero | Op::Fill | Op::Copy | Op::RequiresGrad);
        match spelled.map(|spelled| (spelled.op, spelled.mutates)) {
            Some((op, mutates)) if !mutates || may_write(op) => self.tensor_op(t, op, name, &args),
            Some(_) => Err(self.not_callable(&at, name)),
            None => self.tensor_question(t, name, &args),
        }
    }

    /// An operation of the table on a tensor; `name` is how the call spells it.
    pub(super) fn tensor_op(
        &mut self,
        t: &Rc<Tensor>,
        op: Op,
        name: &str,
        args: &CallArgs<'a>,
    ) -> Result<Value<'a>> {
        let at = args.range;
        let same = || Ok(Value::Tensor(Rc::clone(t)));
        if let Some(dtype) = op.converts_to() {
            return self.converted(&at, t, dtype);
        }
        match op {
            Op::Size | Op::Stride => {
                let values = if op == Op::Size { &t.shape } else { &t.stride };
                match args.get(0, "dim") {
                    None => Ok(Value::ints(values)),
                    Some(d) => Ok(Value::int(values[self.dim(&at, &d, t.shape.len())?])),
                }
            }
            Op::Numel => Ok(Value::int(t.numel())),
            Op::Dim => Ok(Value::int(t.shape.len() as i64)),
            Op::IsContiguous => Ok(Value::bool(t.is_contiguous())),
            Op::StorageOffset => Ok(Value::int(t.offset)),
            Op::Detach | Op::RequiresGrad | Op::Cuda => same(),
            Op::Contiguous if args.named("memory_format").is_some() => Err(self
                .outside(&at, "`contiguous` with a memory format is not supported in a wrapper")),
            Op::Contiguous if t.is_contiguous() => same(),
            Op::Contiguous => self.copied(&at, t, None, t.dtype),
            Op::Clone => {
                let stride = self.layout_like(t, args)?;
                self.copied(&at, t, stride, t.dtype)
            }
            Op::NewEmpty | Op::NewZeros | Op::NewOnes | Op::NewFull => self.new_like(t, op, args),
            Op::To | Op::Type | Op::TypeAs => self.to(t, args),
            Op::Zero => self.filled(&at, t, Const::Int(0)),
            Op::Fill => match args.get(0, "value") {
                Some(Value::Const(value)) if value.as_float().is_some() => {
                    self.filled(&at, t, value)
                }
                _ => Err(self.outside(&at, "`fill_` takes a number in a wrapper")),
            },
            Op::Copy => match args.positional.first() {
                Some(Value::Tensor(from)) if from.shape == t.shape => {
                    let line = self.line(&at);
                    self.push_step(&at, Step::Copy { from: from.view(), to: t.view(), line })?;
                    same()
                }
                _ => Err(self.outside(&at, "`copy_` between tensors of one shape only")),
            },
            Op::Item | Op::ToList | Op::Cpu => Err(self.reads_data(&at, name)),
            _ => self.view_op(t, op, name, args),
        }
    }

    /// What is asked of a tensor by names that are no operations of graphs.
    fn tensor_question(
        &mut self,
        t: &Rc<Tensor>,
        name: &str,
        args: &CallArgs<'a>,
    ) -> Result<Value<'a>> {
        let at = args.range;
        match name {
            "element_size" => Ok(Value::int(t.dtype.size() as i64)),
            "is_floating_point" => Ok(Value::bool(t.dtype.is_float())),
            "is_complex" => Ok(Value::bool(t.dtype.is_complex())),
            "get_device" => Ok(Value::int(t.device.index.map_or(-1, i64::from))),
            "new_empty_strided" => {
                let shape = self.shape(&at, &args.get(0, "size").unwrap_or(Value::NONE))?;
                let stride = self.shape(&at, &args.get(1, "stride").unwrap_or(Value::NONE))?;
                let (dtype, device) = self.like(t, args)?;
                let init = Init::Uninitialized;
                self.allocate(&at, "buffer", &shape, Some(stride), dtype, device, init)
            }
            "data_ptr" => Err(self.address_error(&at)),
            "numpy" => Err(self.reads_data(&at, name)),
            _ => Err(self.not_callable(&at, name)),
        }
    }

    pub(super) fn not_callable(&self, at: &TextRange, name: &str) -> Diagnostic {
        self.outside(at, format!("`.{name}()` cannot be called on a tensor in a wrapper"))
    }

    fn reads_data(&self, at: &TextRange, name: &str) -> Diagnostic {
        self.outside(at, format!("`.{name}()` reads tensor data: a wrapper sees shapes only"))
    }

    /// The same elements in a buffer of their own, contiguous where no strides are given.
    pub(super) fn copied(
        &mut self,
        at: &impl Ranged,
        t: &Rc<Tensor>,
        stride: Option<Vec<i64>>,
        dtype: DType,
    ) -> Result<Value<'a>> {
        let name = if dtype == t.dtype { "copy" } else { "converted" };
        let init = Init::Uninitialized;
        let copy = self.allocate(at, name, &t.shape, stride, dtype, t.device, init)?;
        if let Value::Tensor(to) = &copy
            && t.numel() > 0
        {
            let line = self.line(at);
            self.push_step(at, Step::Copy { from: t.view(), to: to.view(), line })?;
        }
        Ok(copy)
    }

    /// A tensor with one number in all places. Where nothing has touched the buffer yet, it is made so.
    fn filled(&mut self, at: &impl Ranged, t: &Rc<Tensor>, value: Const) -> Result<Value<'a>> {
        if let Some((low, high)) = Elem::from_dtype(t.dtype).and_then(int_range) {
            let number = value.as_float().map_or(f64::NAN, f64::trunc);
            // Every bound but that of int64 is a float, too.
            if number.is_nan() || number < low as f64 || number > high as f64 {
                return Err(self.error(at, format!("{value} does not fit into {}", t.dtype)));
            }
        }
        let spec = &self.buffers[t.buffer];
        let whole = t.offset == 0 && u64::try_from(t.numel()) == Ok(spec.elements);
        let own = !matches!(spec.init, Init::Input(_));
        if whole && own && !self.plan_steps.iter().any(|step| step.touches(t.buffer)) {
            self.buffers[t.buffer].init = Init::Fill(value);
        } else if t.numel() > 0 {
            let line = self.line(at);
            self.push_step(at, Step::Fill { view: t.view(), value, line })?;
        }
        Ok(Value::Tensor(Rc::clone(t)))
    }

    /// The dtype and device of a new tensor: those that are asked for, or this one's.
    pub(super) fn like(&self, t: &Tensor, args: &CallArgs<'a>) -> Result<(DType, Device)> {
        let dtype = self.dtype(args)?.unwrap_or(t.dtype);
        let device = match args.named("device") {
            None => t.device,
            some => self.device(&args.range, some)?,
        };
        Ok((dtype, device))
    }

    fn new_like(&mut self, t: &Rc<Tensor>, op: Op, args: &CallArgs<'a>) -> Result<Value<'a>> {
        let at = args.range;
        let (dtype, device) = self.like(t, args)?;
        let (shape, init) = match op {
            Op::NewFull => {
                let shape = self.shape(&at, &args.get(0, "size").unwrap_or(Value::NONE))?;
                match args.get(1, "fill_value") {
                    Some(Value::Const(c)) => (shape, Init::Fill(c)),
                    _ => return Err(self.error(&at, "`new_full` takes a number")),
                }
            }
            _ => (self.sizes(args)?, fill_of(op)),
        };
        self.allocate(&at, "buffer", &shape, None, dtype, device, init)
    }

    /// `to`, `type`, `type_as`: another dtype is a copy, another device is none of a wrapper's business.
    pub(super) fn to(&mut self, t: &Rc<Tensor>, args: &CallArgs<'a>) -> Result<Value<'a>> {
        let at = args.range;
        let mut dtype = t.dtype;
        let all = args.positional.iter().cloned().chain(args.named.iter().map(|(_, v)| v.clone()));
        for value in all {
            let device = match &value {
                Value::DType(wanted) => {
                    dtype = *wanted;
                    continue;
                }
                Value::Tensor(other) => {
                    dtype = other.dtype;
                    other.device
                }
                Value::Device(device) => *device,
                Value::Const(Const::Str(_)) => self.device(&at, Some(value.clone()))?,
                _ => continue,
            };
            if device.kind != t.device.kind {
                return Err(self.outside(&at, "a wrapper cannot move tensors between devices"));
            }
        }
        self.converted(&at, t, dtype)
    }

    /// The same elements as another type, in a buffer of their own.
    pub(super) fn converted(
        &mut self,
        at: &impl Ranged,
        t: &Rc<Tensor>,
        dtype: DType,
    ) -> Result<Value<'a>> {
        if dtype == t.dtype {
            return Ok(Value::Tensor(Rc::clone(t)));
        }
        let is_known = |dtype: DType| Elem::from_dtype(dtype).is_some();
        if !is_known(dtype) || !is_known(t.dtype) {
            return Err(
                self.outside(at, format!("a wrapper cannot convert {} to {dtype}", t.dtype))
            );
        }
        self.copied(at, t, Some(t.like_strides()), dtype)
    }
}

fn int_range(elem: Elem) -> Option<(i128, i128)> {
    (elem.is_int() && elem != Elem::I1).then(|| elem.int_range())
}
