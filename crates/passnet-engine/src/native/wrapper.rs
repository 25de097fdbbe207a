//! Replaced nodes: the wrapper of a pass, run as a launch plan.
//!
//! The wrapper's text is evaluated once for each signature of arguments (shapes, strides, types, numbers); every later
//! call with that signature replays the plan. Memory is the engine's: outputs are fresh, inputs are lent.

use super::dispatch::Context;
use super::error::{Result, bail, err};
use super::tensor::{Buffer, Read, Region, Scalar, Tensor, Write};
use crate::engine::Value;
use passnet_graph::graph::Replacement;
use passnet_graph::{DType, Device};
use passnet_kernel::check::{self, Finding};
use passnet_kernel::exec::{FaultKind, LentBuffer, PreparedPlan, RunOptions};
use passnet_kernel::plan::{HostArg, Init, PlanLimits, TensorSpec, View, plan};
use passnet_kernel::{Const, ModuleSet};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Plans kept for one replaced node; more signatures than this are planned again.
const KEPT_PLANS: usize = 64;
/// Loop iterations one program of a kernel may run.
const MAX_ITERATIONS: u64 = 1 << 20;

/// The files behind the wrappers that a graph's replaced nodes name, by pass.
#[derive(Debug, Clone, Default)]
pub struct Wrappers {
    passes: BTreeMap<Box<str>, Arc<ModuleSet>>,
}

impl Wrappers {
    /// Adds a pass; the first of its files defines the wrapper.
    pub fn add(&mut self, pass: &str, files: ModuleSet) {
        self.passes.insert(pass.into(), Arc::new(files));
    }

    /// The wrapper that a replaced node names.
    pub(crate) fn wrapper(&self, replacement: &Replacement) -> Option<Wrapper> {
        let files = self.passes.get(&replacement.pass)?.clone();
        Some(Wrapper { files, replacement: replacement.clone() })
    }

    pub(super) fn call(&self, replacement: &Replacement) -> Option<WrapperCall> {
        Some(WrapperCall { wrapper: self.wrapper(replacement)?, plans: Mutex::default() })
    }
}

/// A pass's wrapper in the place of the code it replaces.
#[derive(Debug, Clone)]
pub(crate) struct Wrapper {
    pub(crate) files: Arc<ModuleSet>,
    pub(crate) replacement: Replacement,
}

impl Wrapper {
    /// The plan for arguments of this signature, and for each of its buffers whether a kernel may write into it.
    pub(crate) fn plan(&self, signature: &[HostArg]) -> Result<(PreparedPlan, Vec<bool>)> {
        let replacement = &self.replacement;
        let plan = plan(&self.files, &replacement.wrapper, signature, PlanLimits::default())
            .map_err(|error| err!(Plan, "{error}"))?;
        if plan.returns.len() != replacement.outputs {
            bail!(
                Plan,
                "`{}` returns {} tensors, but the pattern has {} outputs",
                replacement.wrapper,
                plan.returns.len(),
                replacement.outputs
            );
        }
        let prepared =
            PreparedPlan::new(&self.files, plan).map_err(|error| err!(Plan, "{error}"))?;
        let written = prepared.written();
        let specs = prepared.plan().buffers.iter().zip(&written);
        for (spec, written) in specs {
            if let Init::Input(index) = spec.init
                && written.is_certain()
                && !replacement.writes.contains(&index)
            {
                bail!(
                    Plan,
                    "`{}` writes into its argument `{}`, which the replaced code leaves alone",
                    replacement.wrapper,
                    spec.name
                );
            }
        }
        let written = written.iter().map(|written| written.is_possible()).collect();
        Ok((prepared, written))
    }
}

/// A replaced node.
#[derive(Debug)]
pub(super) struct WrapperCall {
    wrapper: Wrapper,
    plans: Mutex<Vec<Arc<SignedPlan>>>,
}

/// A plan with the arguments it was made for.
#[derive(Debug)]
struct SignedPlan {
    signature: Vec<HostArg>,
    prepared: PreparedPlan,
    /// Whether a kernel may write into the plan's buffer of that index.
    written: Vec<bool>,
    /// Whether there is nothing to do: all that is returned are arguments and views of them.
    hands_back: bool,
}

impl WrapperCall {
    /// Runs the wrapper.
    pub(super) fn run(&self, arguments: &[Cow<'_, Value>], context: &Context) -> Result<Value> {
        let plan = self.plan_for(arguments)?;
        if plan.hands_back {
            return self.results(&plan, arguments, Vec::new());
        }
        let mut own = plan.own_buffers(context.poison)?;
        {
            let lent = Lent::new(&plan, arguments)?;
            let options = RunOptions {
                iterations: MAX_ITERATIONS,
                deadline: context.deadline,
                ..RunOptions::default()
            };
            let buffers = plan.lay_out(&lent, &mut own);
            // SAFETY: `own` buffers are borrowed here alone; lent ones are locked in `lent`, exclusively where the plan may
            // write, and those overlap no other buffer.
            unsafe { plan.prepared.run_lent(buffers, options) }.map_err(|error| {
                match error.fault.kind {
                    FaultKind::Deadline => err!(Timeout, "{error}"),
                    _ => err!(Kernel, "{error}"),
                }
            })?;
        }
        self.results(&plan, arguments, own)
    }

    /// Looks for accesses out of bounds, races, unwritten outputs and the like, on copies of these arguments.
    pub(super) fn check(&self, arguments: &[Cow<'_, Value>]) -> Result<Vec<Finding>> {
        let plan = self.plan_for(arguments)?;
        let specs = &plan.prepared.plan().buffers;
        let mut buffers = Vec::with_capacity(specs.len());
        for spec in specs {
            let bytes = usize::try_from(spec.bytes()).unwrap_or(usize::MAX);
            buffers.push(match spec.init {
                Init::Input(index) => {
                    let mut buffer = Buffer::<u8>::new(bytes)?;
                    let tensor = tensor_argument(arguments, index)?;
                    let start = tensor.storage_offset() * tensor.dtype().size();
                    let content = tensor.read::<u8>()?;
                    buffer.copy_from_slice(&content[start..start + bytes]);
                    buffer
                }
                _ => Buffer::<u8>::zeroed(bytes)?,
            });
        }
        let mut lent: Vec<&mut [u8]> = buffers.iter_mut().map(|buffer| &mut buffer[..]).collect();
        plan.prepared.initialize(&mut lent);
        Ok(check::check(
            &self.wrapper.files,
            &self.wrapper.replacement.wrapper,
            &plan.signature,
            &plan.prepared,
            lent,
        ))
    }

    fn plan_for(&self, arguments: &[Cow<'_, Value>]) -> Result<Arc<SignedPlan>> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = plans.iter().find(|plan| fits(&plan.signature, arguments)) {
            return Ok(known.clone());
        }
        let new = Arc::new(self.make_plan(arguments)?);
        if plans.len() >= KEPT_PLANS {
            plans.remove(0);
        }
        plans.push(new.clone());
        Ok(new)
    }

    fn make_plan(&self, arguments: &[Cow<'_, Value>]) -> Result<SignedPlan> {
        let signature = arguments
            .iter()
            .enumerate()
            .map(|(index, value)| {
                host_argument(value).ok_or_else(|| {
                    err!(Plan, "argument {index} of the wrapper is a {}", value.type_name())
                })
            })
            .collect::<Result<Vec<_>>>()?;
        let (prepared, written) = self.wrapper.plan(&signature)?;
        let plan = prepared.plan();
        let hands_back = plan.steps.is_empty()
            && plan.buffers.iter().all(|buffer| matches!(buffer.init, Init::Input(_)));
        Ok(SignedPlan { signature, prepared, written, hands_back })
    }

    fn results(
        &self,
        plan: &SignedPlan,
        arguments: &[Cow<'_, Value>],
        own: Vec<Option<Buffer<u8>>>,
    ) -> Result<Value> {
        let plan = plan.prepared.plan();
        let mut made: Vec<Option<Tensor>> = vec![None; own.len()];
        let mut own = own;
        let mut tensors: SmallVec<[Tensor; 1]> = SmallVec::with_capacity(plan.returns.len());
        for view in &plan.returns {
            let spec = plan
                .buffers
                .get(view.buffer)
                .ok_or_else(|| err!(Plan, "a returned tensor has no memory"))?;
            let base = match (&spec.init, made.get(view.buffer)) {
                (Init::Input(index), _) => tensor_argument(arguments, *index)?.clone(),
                (_, Some(Some(tensor))) => tensor.clone(),
                (_, _) => {
                    let buffer = own
                        .get_mut(view.buffer)
                        .and_then(Option::take)
                        .ok_or_else(|| err!(Plan, "a returned tensor has no memory"))?;
                    let elements = buffer.len() / spec.dtype.size();
                    let tensor =
                        Tensor::from_memory(buffer.into_memory(), spec.dtype, &[elements])?;
                    made[view.buffer] = Some(tensor.clone());
                    tensor
                }
            };
            tensors.push(look(&base, view)?);
        }
        Ok(match tensors.into_inner() {
            Ok([only]) => Value::Tensor(only),
            Err(several) => Value::tensors(several),
        })
    }
}

impl SignedPlan {
    /// Memory for the buffers that the plan itself brings; none for its inputs.
    fn own_buffers(&self, poison: bool) -> Result<Vec<Option<Buffer<u8>>>> {
        let specs = &self.prepared.plan().buffers;
        let mut own = Vec::with_capacity(specs.len());
        for spec in specs {
            if matches!(spec.init, Init::Input(_)) {
                own.push(None);
                continue;
            }
            let bytes = usize::try_from(spec.bytes()).unwrap_or(usize::MAX);
            let mut buffer = Buffer::<u8>::new(bytes)?;
            if poison && spec.init == Init::Uninitialized {
                // All ones is NaN in every float type; a bool must stay a bool.
                buffer.fill(if spec.dtype == DType::Bool { 1 } else { 0xff });
            }
            own.push(Some(buffer));
        }
        Ok(own)
    }

    fn lay_out(&self, lent: &Lent<'_>, own: &mut [Option<Buffer<u8>>]) -> Vec<LentBuffer> {
        let mut buffers = Vec::with_capacity(own.len());
        for (index, buffer) in own.iter_mut().enumerate() {
            buffers.push(match buffer {
                Some(buffer) => {
                    self.prepared.initialize_one(index, buffer);
                    LentBuffer { start: buffer.as_mut_ptr(), bytes: buffer.len() }
                }
                None => lent.buffers[index],
            });
        }
        buffers
    }
}

/// The memory of the tensors among the arguments, locked.
struct Lent<'a> {
    /// By index of the plan's buffers; empty where the plan brings its own.
    buffers: Vec<LentBuffer>,
    _locks: Vec<Lock<'a>>,
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
        let mut tensors: Vec<(usize, &Tensor)> = Vec::new();
        for (buffer, spec) in specs.iter().enumerate() {
            if let Init::Input(index) = spec.init {
                tensors.push((buffer, tensor_argument(arguments, index)?));
            }
        }
        let mut lent = Lent { buffers: vec![LentBuffer::EMPTY; specs.len()], _locks: Vec::new() };
        let mut done: Vec<bool> = vec![false; tensors.len()];
        for first in 0..tensors.len() {
            if done[first] {
                continue;
            }
            let storage = tensors[first].1;
            let group: Vec<usize> = (first..tensors.len())
                .filter(|&other| tensors[other].1.shares_storage(storage))
                .collect();
            let writes = group.iter().any(|&member| plan.written[tensors[member].0]);
            if writes && group.len() > 1 {
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
            for member in group {
                done[member] = true;
                let (buffer, tensor) = tensors[member];
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

fn tensor_argument<'a>(arguments: &'a [Cow<'_, Value>], index: usize) -> Result<&'a Tensor> {
    match arguments.get(index).map(Cow::as_ref) {
        Some(Value::Tensor(tensor)) => Ok(tensor),
        _ => Err(err!(Plan, "argument {index} of the wrapper is no tensor")),
    }
}

/// The part of a buffer that a plan returns.
fn look(base: &Tensor, view: &View) -> Result<Tensor> {
    let base = if base.dtype() == view.dtype { base.clone() } else { base.view_dtype(view.dtype)? };
    let size = |value: &i64| usize::try_from(*value).ok();
    let shape = view.shape.iter().map(size).collect::<Option<_>>();
    let strides = view.stride.iter().map(size).collect::<Option<_>>();
    let offset = size(&view.offset).and_then(|offset| offset.checked_add(base.storage_offset()));
    match (shape, strides, offset) {
        (Some(shape), Some(strides), Some(offset)) => {
            base.as_strided(Region { shape, strides, offset })
        }
        _ => Err(err!(Plan, "a returned tensor has a negative size or stride")),
    }
}

/// Passes are written for a GPU: that is where their arguments appear to be.
fn device() -> Device {
    Device::from_name("cuda:0").unwrap_or(Device::CPU)
}

fn host_argument(value: &Value) -> Option<HostArg> {
    if let Value::Tensor(tensor) = value {
        let signed = |sizes: &[usize]| sizes.iter().map(|size| *size as i64).collect();
        return Some(HostArg::Tensor(TensorSpec {
            shape: signed(tensor.shape()),
            stride: signed(tensor.strides()),
            dtype: tensor.dtype(),
            device: device(),
        }));
    }
    constant(value).map(HostArg::Const)
}

fn constant(value: &Value) -> Option<Const> {
    Some(match value {
        Value::None => Const::None,
        Value::Number(Scalar::Bool(value)) => Const::Bool(*value),
        Value::Number(Scalar::Int(value)) => Const::Int(*value),
        Value::Number(Scalar::Float(value)) => Const::Float(*value),
        Value::Text(text) => Const::Str(text.to_string()),
        Value::Sequence(items) => Const::Tuple(items.iter().map(constant).collect::<Option<_>>()?),
        _ => return None,
    })
}

/// Whether a plan made for `signature` serves these arguments.
fn fits(signature: &[HostArg], arguments: &[Cow<'_, Value>]) -> bool {
    let equal = |sizes: &[usize], known: &[i64]| {
        sizes.len() == known.len()
            && sizes.iter().zip(known).all(|(size, known)| *size as i64 == *known)
    };
    signature.len() == arguments.len()
        && signature.iter().zip(arguments).all(|(known, value)| match (known, value.as_ref()) {
            (HostArg::Tensor(spec), Value::Tensor(tensor)) => {
                spec.dtype == tensor.dtype()
                    && equal(tensor.shape(), &spec.shape)
                    && equal(tensor.strides(), &spec.stride)
            }
            (HostArg::Const(Const::Str(known)), Value::Text(text)) => **text == **known,
            (HostArg::Const(known), value) => constant(value).as_ref() == Some(known),
            _ => false,
        })
}
