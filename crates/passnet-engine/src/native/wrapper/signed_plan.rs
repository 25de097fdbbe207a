//! A plan with the arguments it was made for, replayed on the engine's memory: inputs lent under their locks, outputs
//! fresh.

use super::planning::{Planned, Wrapper};
use super::signature::tensor_argument;
use crate::engine::{RunOptions as GraphOptions, Value};
use crate::native::dispatch::Context;
use crate::native::error::{Result, bail, err};
use crate::native::tensor::{Buffer, Read, Region, Tensor, Write};
use passnet_graph::DType;
use passnet_kernel::exec::{FaultKind, LentBuffer, PreparedPlan, RunOptions};
use passnet_kernel::plan::{HostArg, Init, LaunchPlan, View};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// Buffers of a usual plan; where there are more, lists of them are allocated.
const USUAL_BUFFERS: usize = 8;
/// Loop iterations one program of a kernel may run.
const MAX_ITERATIONS: u64 = 1 << 20;

/// A plan with the arguments it was made for.
#[derive(Debug)]
pub(super) struct SignedPlan {
    pub(super) signature: Vec<HostArg>,
    pub(super) prepared: PreparedPlan,
    /// Whether a kernel may write into the plan's buffer of that index.
    pub(super) written: Vec<bool>,
    returns: Vec<Returned>,
    /// Whether there is nothing to do: all that is returned are arguments and views of them.
    hands_back: bool,
    /// Whether what is returned is a tuple, however many tensors it has.
    gives_tuple: bool,
}

/// A tensor that a plan returns.
#[derive(Debug)]
struct Returned {
    from: Source,
    dtype: DType,
    /// From the first element of its source on.
    region: Region,
}

#[derive(Debug, Clone, Copy)]
enum Source {
    Argument(usize),
    /// A buffer of the plan.
    Own(usize),
}

/// Memory of one of a plan's buffers.
enum Own {
    /// It is an argument's.
    Lent,
    Buffer(Buffer<u8>, DType),
    /// As it is returned, once or several times.
    Tensor(Tensor),
}

type Buffers<T> = SmallVec<[T; USUAL_BUFFERS]>;

impl SignedPlan {
    pub(super) fn new(
        wrapper: &Wrapper,
        signature: Vec<HostArg>,
        (prepared, written): Planned,
    ) -> Result<SignedPlan> {
        let plan = prepared.plan();
        let hands_back = plan.steps.is_empty()
            && plan.buffers.iter().all(|buffer| matches!(buffer.init, Init::Input(_)));
        let returns = plan.returns.iter().map(|view| Returned::of(plan, view));
        let returns = returns.collect::<Result<_>>()?;
        let gives_tuple = wrapper.replacement.gives_tuple;
        Ok(SignedPlan { signature, prepared, written, returns, hands_back, gives_tuple })
    }

    /// Milliseconds of one run within a limit, after which the arguments are as before.
    pub(super) fn timed(
        &self,
        arguments: &[Cow<'_, Value>],
        context: &Context,
        limit: Duration,
    ) -> Result<f64> {
        let mut kept = Vec::new();
        for (spec, written) in self.prepared.plan().buffers.iter().zip(&self.written) {
            if let (Init::Input(index), true) = (&spec.init, *written) {
                let tensor = tensor_argument(arguments, *index)?;
                kept.push((tensor, tensor.copy()?));
            }
        }
        let options = GraphOptions { time_limit: Some(limit), ..GraphOptions::default() };
        let context = Context::new(context.precision, &options);
        let started = Instant::now();
        let run = self.run(arguments, &context);
        let took = started.elapsed().as_secs_f64() * 1e3;
        for (tensor, before) in kept {
            tensor.copy_from(&before)?;
        }
        run.map(|_| took)
    }

    pub(super) fn run(&self, arguments: &[Cow<'_, Value>], context: &Context) -> Result<Value> {
        if self.hands_back {
            return self.results(arguments, &mut []);
        }
        let mut own = self.own_buffers()?;
        {
            let lent = Lent::new(self, arguments)?;
            let options = RunOptions {
                iterations: MAX_ITERATIONS,
                deadline: context.deadline,
                ..RunOptions::default()
            };
            let buffers = self.lay_out(&lent, &mut own);
            // SAFETY: `own` buffers are borrowed here alone; lent ones are locked in `lent`, exclusively where the plan may
            // write, and those overlap no other buffer.
            unsafe { self.prepared.run_lent(&buffers, options) }.map_err(|error| {
                match error.fault.kind {
                    FaultKind::Deadline => err!(Timeout, "{error}"),
                    _ => err!(Kernel, "{error}"),
                }
            })?;
        }
        self.results(arguments, &mut own)
    }

    fn results(&self, arguments: &[Cow<'_, Value>], own: &mut [Own]) -> Result<Value> {
        let is_tuple = self.gives_tuple;
        let mut tensors: SmallVec<[Tensor; 1]> = SmallVec::with_capacity(self.returns.len());
        for returned in &self.returns {
            tensors.push(match returned.from {
                Source::Argument(index) => returned.look(tensor_argument(arguments, index)?)?,
                Source::Own(index) => returned.look(own[index].tensor()?)?,
            });
        }
        Ok(match tensors.into_inner() {
            Ok([only]) if is_tuple => Value::tensors([only]),
            Ok([only]) => Value::Tensor(only),
            Err(several) => Value::tensors(several),
        })
    }

    /// Memory for the buffers that the plan itself brings; none for its inputs. What the plan does not fill is poisoned:
    /// it must not tell what earlier calls left there.
    fn own_buffers(&self) -> Result<Buffers<Own>> {
        let specs = &self.prepared.plan().buffers;
        let mut own = Buffers::with_capacity(specs.len());
        for spec in specs {
            if matches!(spec.init, Init::Input(_)) {
                own.push(Own::Lent);
                continue;
            }
            let bytes = usize::try_from(spec.bytes()).unwrap_or(usize::MAX);
            let buffer = match (&spec.init, spec.dtype) {
                // A bool must stay a bool.
                (Init::Uninitialized, DType::Bool) => {
                    let mut buffer = Buffer::<u8>::new(bytes)?;
                    buffer.fill(1);
                    buffer
                }
                (Init::Uninitialized, _) => Buffer::poisoned(bytes)?,
                _ => Buffer::new(bytes)?,
            };
            own.push(Own::Buffer(buffer, spec.dtype));
        }
        Ok(own)
    }

    fn lay_out(&self, lent: &Lent<'_>, own: &mut [Own]) -> Buffers<LentBuffer> {
        let mut buffers = lent.buffers.clone();
        for (index, (place, own)) in buffers.iter_mut().zip(own).enumerate() {
            if let Own::Buffer(buffer, _) = own {
                self.prepared.initialize_one(index, buffer);
                *place = LentBuffer { start: buffer.as_mut_ptr(), bytes: buffer.len() };
            }
        }
        buffers
    }
}

impl Own {
    /// A tensor of all its elements.
    fn tensor(&mut self) -> Result<&Tensor> {
        *self = match std::mem::replace(self, Own::Lent) {
            Own::Buffer(buffer, dtype) => {
                let elements = buffer.len() / dtype.size();
                Own::Tensor(Tensor::from_memory(buffer.into_memory(), dtype, &[elements])?)
            }
            other => other,
        };
        match self {
            Own::Tensor(tensor) => Ok(tensor),
            _ => Err(err!(Plan, "a returned tensor has no memory")),
        }
    }
}

impl Returned {
    fn of(plan: &LaunchPlan, view: &View) -> Result<Returned> {
        let spec = plan.buffers.get(view.buffer);
        let spec = spec.ok_or_else(|| err!(Plan, "a returned tensor has no memory"))?;
        let from = match spec.init {
            Init::Input(index) => Source::Argument(index),
            _ => Source::Own(view.buffer),
        };
        let size = |value: &i64| usize::try_from(*value).ok();
        let shape = view.shape.iter().map(size).collect::<Option<_>>();
        let strides = view.stride.iter().map(size).collect::<Option<_>>();
        match (shape, strides, size(&view.offset)) {
            (Some(shape), Some(strides), Some(offset)) => {
                Ok(Returned { from, dtype: view.dtype, region: Region { shape, strides, offset } })
            }
            _ => Err(err!(Plan, "a returned tensor has a negative size or stride")),
        }
    }

    /// The part of its source that is returned.
    fn look(&self, source: &Tensor) -> Result<Tensor> {
        if source.dtype() != self.dtype {
            return self.look(&source.view_dtype(self.dtype)?);
        }
        let Region { shape, strides, offset } = self.region.clone();
        let offset = offset
            .checked_add(source.storage_offset())
            .ok_or_else(|| err!(Plan, "a returned tensor begins outside its memory"))?;
        source.as_strided(Region { shape, strides, offset })
    }
}

/// The memory of the tensors among the arguments, locked.
struct Lent<'a> {
    /// By index of the plan's buffers; empty where the plan brings its own.
    buffers: Buffers<LentBuffer>,
    _locks: Buffers<Lock<'a>>,
}

enum Lock<'a> {
    Shared(Read<'a, u8>),
    Exclusive(Write<'a, u8>),
}

impl Lock<'_> {
    fn start(&mut self) -> (*mut u8, usize) {
        match self {
            // A plan never writes through this pointer: the lock is shared only where no kernel can write.
            Lock::Shared(read) => (read.as_ptr().cast_mut(), read.len()),
            Lock::Exclusive(write) => (write.as_mut_ptr(), write.len()),
        }
    }
}

impl<'a> Lent<'a> {
    fn new(plan: &SignedPlan, arguments: &'a [Cow<'a, Value>]) -> Result<Self> {
        let specs = &plan.prepared.plan().buffers;
        let mut tensors: Buffers<(usize, &Tensor)> = Buffers::new();
        for (buffer, spec) in specs.iter().enumerate() {
            if let Init::Input(index) = spec.init {
                tensors.push((buffer, tensor_argument(arguments, index)?));
            }
        }
        let mut lent = Lent {
            buffers: SmallVec::from_elem(LentBuffer::EMPTY, specs.len()),
            _locks: Buffers::new(),
        };
        for (first, &(_, storage)) in tensors.iter().enumerate() {
            let shares = |(_, tensor): &&(usize, &Tensor)| tensor.shares_storage(storage);
            if tensors[..first].iter().any(|other| shares(&other)) {
                continue;
            }
            let group = || tensors[first..].iter().filter(shares);
            let writes = group().any(|&(buffer, _)| plan.written[buffer]);
            if writes && group().count() > 1 {
                // The executor takes buffers for disjoint and may reorder accesses to different ones.
                bail!(
                    Unsupported,
                    "an argument that the wrapper writes shares memory with another one"
                );
            }
            let mut lock = match writes {
                true => Lock::Exclusive(storage.write()?),
                false => Lock::Shared(storage.read()?),
            };
            let (start, length) = lock.start();
            for &(buffer, tensor) in group() {
                let offset = tensor.storage_offset() * tensor.dtype().size();
                let bytes = usize::try_from(specs[buffer].bytes()).unwrap_or(usize::MAX);
                let Some(end) = offset.checked_add(bytes).filter(|end| *end <= length) else {
                    bail!(Plan, "argument `{}` ends outside its memory", specs[buffer].name);
                };
                // SAFETY: `offset` is at most `end`, which lies inside the locked storage.
                let start = unsafe { start.add(offset) };
                lent.buffers[buffer] = LentBuffer { start, bytes: end - offset };
            }
            lent._locks.push(lock);
        }
        Ok(lent)
    }
}
