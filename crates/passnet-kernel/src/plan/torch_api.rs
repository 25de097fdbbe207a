//! The few functions of torch a wrapper may call: those that make buffers or talk about types and sizes.

use super::call_args::CallArgs;
use super::interp::{Interp, Result};
use super::tensor::{Tensor, extent};
use super::value::Value;
use super::{BufferSpec, Init};
use crate::consts::Const;
use passnet_graph::graph::CalleeKind;
use passnet_graph::ops::{Op, spelling};
use passnet_graph::syntax::Ranged;
use passnet_graph::view::layout;
use passnet_graph::{DType, Device};
use std::rc::Rc;

impl<'a> Interp<'a> {
    pub(super) fn torch_function(&mut self, path: &str, args: CallArgs<'a>) -> Result<Value<'a>> {
        let at = args.range;
        let first = || args.positional.first().cloned().unwrap_or(Value::NONE);
        let Some(op) = spelling(CalleeKind::Function, path).map(|spelled| spelled.op) else {
            return self.torch_question(path, args);
        };
        match op {
            Op::Empty | Op::Zeros | Op::Ones => self.create(&args, fill_of(op)),
            Op::Full => self.create_full(&args),
            Op::EmptyLike | Op::ZerosLike | Op::OnesLike | Op::FullLike => {
                self.create_like(op, path, &args)
            }
            Op::AsTensor | Op::Tensor | Op::ScalarTensor => self.as_tensor(&args),
            Op::MakeDevice => self.device(&at, Some(first())).map(Value::Device),
            Op::MakeSize => Ok(Value::tuple(self.iterate(&at, &first())?)),
            Op::Numel
            | Op::Clone
            | Op::Reshape
            | Op::Permute
            | Op::Transpose
            | Op::Flatten
            | Op::Unflatten
            | Op::Unsqueeze
            | Op::Squeeze
            | Op::TransposeMatrix
            | Op::Narrow
            | Op::Select
            | Op::Unbind
            | Op::Chunk
            | Op::Split
            | Op::Movedim
            | Op::BroadcastTo
            | Op::AsStrided => {
                let (t, args) = self.receiver(path, args)?;
                let name = path.rsplit('.').next().unwrap_or(path);
                self.tensor_op(&t, op, name, &args)
            }
            Op::PromoteTypes => match &args.positional[..] {
                [Value::DType(a), Value::DType(b)] => Ok(Value::DType(a.promote(*b))),
                _ => Err(self.error(&at, "`torch.promote_types` takes two dtypes")),
            },
            _ => Err(self.outside(&at, format!("`{path}` cannot be called in a wrapper"))),
        }
    }

    /// The tensor that a function has as its first argument, and the other arguments.
    fn receiver(&self, path: &str, mut args: CallArgs<'a>) -> Result<(Rc<Tensor>, CallArgs<'a>)> {
        let at = args.range;
        if args.positional.is_empty() {
            return Err(self.error(&at, format!("`{path}` needs a tensor")));
        }
        match args.positional.remove(0) {
            Value::Tensor(t) => Ok((t, args)),
            other => {
                Err(self.error(&at, format!("`{path}` needs a tensor, not {}", other.describe())))
            }
        }
    }

    /// What is asked of torch by names that are no operations of graphs.
    fn torch_question(&mut self, path: &str, args: CallArgs<'a>) -> Result<Value<'a>> {
        let at = args.range;
        match path.strip_prefix("torch.").unwrap_or(path) {
            "empty_strided" => {
                let shape = self.shape(&at, &args.get(0, "size").unwrap_or(Value::NONE))?;
                let stride = self.shape(&at, &args.get(1, "stride").unwrap_or(Value::NONE))?;
                let dtype = self.dtype(&args)?.unwrap_or(DType::Float32);
                let device = self.device(&at, args.named("device"))?;
                let init = Init::Uninitialized;
                self.allocate(&at, "empty_strided", &shape, Some(stride), dtype, device, init)
            }
            "is_tensor" => {
                Ok(Value::bool(matches!(args.positional.first(), Some(Value::Tensor(_)))))
            }
            "is_floating_point" => {
                let (t, _) = self.receiver(path, args)?;
                Ok(Value::bool(t.dtype.is_float()))
            }
            "broadcast_shapes" => self.broadcast_shapes(&args),
            "cuda.is_available" => Ok(Value::bool(true)),
            "cuda.current_device" => Ok(Value::int(0)),
            "cuda.synchronize" | "cuda.set_device" => Ok(Value::NONE),
            "cuda.get_device_properties" => Ok(Value::Path("device_properties".into())),
            "cuda.get_device_capability" => Ok(Value::tuple([Value::int(9), Value::int(0)])),
            "finfo" | "iinfo" => match args.positional.first() {
                Some(Value::DType(d)) => Ok(Value::Path(format!("finfo.{}", d.name()).into())),
                _ => Err(self.error(&at, format!("`{path}` takes a dtype"))),
            },
            _ => Err(self.outside(&at, format!("`{path}` cannot be called in a wrapper"))),
        }
    }

    fn create_full(&mut self, args: &CallArgs<'a>) -> Result<Value<'a>> {
        let at = args.range;
        let Value::Const(value) = args.get(1, "fill_value").unwrap_or(Value::NONE) else {
            return Err(self.outside(&at, "`torch.full` takes a number"));
        };
        let dtype = match args.named("dtype") {
            Some(Value::DType(d)) => d,
            _ => natural_dtype(&value),
        };
        let shape = self.shape(&at, &args.get(0, "size").unwrap_or(Value::NONE))?;
        let device = self.device(&at, args.named("device"))?;
        self.allocate(&at, "full", &shape, None, dtype, device, Init::Fill(value))
    }

    fn broadcast_shapes(&mut self, args: &CallArgs<'a>) -> Result<Value<'a>> {
        let at = args.range;
        let shapes: Vec<_> =
            args.positional.iter().map(|arg| self.shape(&at, arg)).collect::<Result<_>>()?;
        let rank = shapes.iter().map(Vec::len).max().unwrap_or(0);
        let mut out = vec![1i64; rank];
        for shape in &shapes {
            for (slot, &d) in out[rank - shape.len()..].iter_mut().zip(shape) {
                if *slot != d && *slot != 1 && d != 1 {
                    return Err(self.error(&at, "shapes do not broadcast"));
                }
                *slot = if *slot == 1 { d } else { *slot };
            }
        }
        Ok(Value::ints(&out))
    }

    pub(super) fn dtype(&self, args: &CallArgs<'a>) -> Result<Option<DType>> {
        match args.named("dtype") {
            None => Ok(None),
            Some(v) if v.is_none() => Ok(None),
            Some(Value::DType(d)) => Ok(Some(d)),
            Some(other) => Err(self
                .error(&args.range, format!("`dtype` is {}, not a torch dtype", other.describe()))),
        }
    }

    pub(super) fn device(&self, at: &impl Ranged, value: Option<Value<'a>>) -> Result<Device> {
        match value {
            None => Ok(Device::CPU),
            Some(v) if v.is_none() => Ok(Device::CPU),
            Some(Value::Device(d)) => Ok(d),
            Some(Value::Const(Const::Str(s))) => {
                Device::from_name(&s).ok_or_else(|| self.error(at, format!("unknown device `{s}`")))
            }
            Some(Value::Const(Const::Int(i))) => {
                Ok(Device { kind: passnet_graph::DeviceKind::Cuda, index: u8::try_from(i).ok() })
            }
            Some(other) => Err(self.error(at, format!("{} is not a device", other.describe()))),
        }
    }

    /// A tuple of sizes, or several sizes in a row.
    pub(super) fn shape(&mut self, at: &impl Ranged, value: &Value<'a>) -> Result<Vec<i64>> {
        let items = match value {
            Value::Const(Const::Int(_)) => vec![value.clone()],
            other => self.iterate(at, other)?,
        };
        let mut shape = Vec::new();
        for item in items {
            match item.as_int() {
                Some(i) => shape.push(i),
                None => {
                    return Err(
                        self.error(at, format!("a size is an integer, not {}", item.describe()))
                    );
                }
            }
        }
        if shape.len() > 16 {
            return Err(self.error(at, "tensors have at most 16 dimensions"));
        }
        Ok(shape)
    }

    fn create(&mut self, args: &CallArgs<'a>, init: Init) -> Result<Value<'a>> {
        let at = args.range;
        let shape = match (args.positional.len(), args.named("size")) {
            (0, Some(size)) => self.shape(&at, &size)?,
            (1, _) => self.shape(&at, &args.positional[0])?,
            _ => self.shape(&at, &Value::tuple(args.positional.clone()))?,
        };
        let dtype = self.dtype(args)?.unwrap_or(DType::Float32);
        let device = self.device(&at, args.named("device"))?;
        self.allocate(&at, "buffer", &shape, None, dtype, device, init)
    }

    fn create_like(&mut self, op: Op, path: &str, args: &CallArgs<'a>) -> Result<Value<'a>> {
        let at = args.range;
        let Some(Value::Tensor(t)) = args.get(0, "input") else {
            return Err(self.error(&at, format!("`{path}` needs a tensor")));
        };
        let init = if op == Op::FullLike {
            match args.get(1, "fill_value") {
                Some(Value::Const(c)) => Init::Fill(c),
                _ => return Err(self.outside(&at, "`torch.full_like` takes a number")),
            }
        } else {
            fill_of(op)
        };
        let (dtype, device) = self.like(&t, args)?;
        let stride = self.layout_like(&t, args)?;
        self.allocate(&at, "buffer", &t.shape, stride, dtype, device, init)
    }

    /// The strides of a new tensor like another one, by the memory format that the call names; `None`: contiguous.
    pub(super) fn layout_like(&self, t: &Tensor, args: &CallArgs<'a>) -> Result<Option<Vec<i64>>> {
        let format = match args.named("memory_format") {
            None => return Ok(Some(t.like_strides())),
            Some(Value::Path(path)) => path,
            Some(other) => {
                let found = other.describe();
                return Err(self.error(&args.range, format!("{found} is no memory format")));
            }
        };
        match (&*format, t.shape.len()) {
            ("torch.preserve_format", _) => Ok(Some(t.like_strides())),
            ("torch.contiguous_format", _) => Ok(None),
            ("torch.channels_last", 4) | ("torch.channels_last_3d", 5) => {
                Ok(Some(layout::channels_last(&t.shape).into_vec()))
            }
            (format, rank) => {
                Err(self
                    .outside(&args.range, format!("`{format}` is no layout of {rank} dimensions")))
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn allocate(
        &mut self,
        at: &impl Ranged,
        name: &str,
        shape: &[i64],
        stride: Option<Vec<i64>>,
        dtype: DType,
        device: Device,
        init: Init,
    ) -> Result<Value<'a>> {
        if let Some(bad) = shape.iter().find(|&&d| d < 0) {
            return Err(self.error(at, format!("negative size {bad}")));
        }
        let stride = stride.unwrap_or_else(|| layout::contiguous(shape).into_vec());
        let Some(elements) = extent(shape, &stride) else {
            return Err(self.error(at, "this shape does not fit in memory"));
        };
        let name = format!("{name}{}", self.buffers.len());
        let buffer = self.add_buffer(at, BufferSpec { name, dtype, elements, init })?;
        Ok(Value::Tensor(Rc::new(Tensor {
            buffer,
            offset: 0,
            shape: shape.to_vec(),
            stride,
            dtype,
            device,
        })))
    }

    fn as_tensor(&mut self, args: &CallArgs<'a>) -> Result<Value<'a>> {
        let at = args.range;
        let value = args.get(0, "data").unwrap_or(Value::NONE);
        if let Value::Tensor(t) = &value {
            let dtype = self.dtype(args)?.unwrap_or(t.dtype);
            return self.converted(&at, t, dtype);
        }
        let (values, shape) = match &value {
            Value::Const(c) => (vec![c.clone()], Vec::new()),
            other => {
                let mut values = Vec::new();
                for item in self.iterate(&at, other)? {
                    match item {
                        Value::Const(c) => values.push(c),
                        other => {
                            return Err(self.error(
                                &at,
                                format!("cannot make a tensor of {}", other.describe()),
                            ));
                        }
                    }
                }
                let n = values.len() as i64;
                (values, vec![n])
            }
        };
        if values.iter().any(|c| c.as_float().is_none()) {
            return Err(self.error(&at, "tensors are made of numbers"));
        }
        let natural =
            values.iter().map(natural_dtype).reduce(DType::promote).unwrap_or(DType::Float32);
        let dtype = self.dtype(args)?.unwrap_or(natural);
        let device = self.device(&at, args.named("device"))?;
        self.allocate(&at, "constant", &shape, None, dtype, device, Init::Values(values))
    }
}

/// What is in a new tensor.
pub(super) fn fill_of(op: Op) -> Init {
    match op {
        Op::Zeros | Op::ZerosLike | Op::NewZeros => Init::Fill(Const::Int(0)),
        Op::Ones | Op::OnesLike | Op::NewOnes => Init::Fill(Const::Int(1)),
        _ => Init::Uninitialized,
    }
}

fn natural_dtype(c: &Const) -> DType {
    match c {
        Const::Bool(_) => DType::Bool,
        Const::Int(_) => DType::Int64,
        _ => DType::Float32,
    }
}
