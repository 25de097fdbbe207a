//! Replaced nodes: the wrapper of a pass, run as a launch plan.
//!
//! The wrapper's text is evaluated once for each signature of arguments (shapes, strides, types, numbers); every later
//! call with that signature replays the plan. Memory is the engine's: outputs are fresh, inputs are lent.

mod signature;

use super::dispatch::Context;
use super::error::{Result, TensorError, bail, err};
use super::tensor::{Buffer, Read, Region, Tensor, Write};
use crate::engine::{RunOptions as GraphOptions, Value};
use crate::tuning::{Timing, TunedKernel, Tuning, Untimed};
use passnet_graph::DType;
use passnet_graph::graph::Replacement;
use passnet_kernel::ModuleSet;
use passnet_kernel::check::{self, Finding};
use passnet_kernel::exec::{FaultKind, LentBuffer, PreparedPlan, RunOptions};
use passnet_kernel::frontend::is_static_assertion;
use passnet_kernel::plan::{
    Choices, HostArg, Init, Launch, LaunchPlan, PlanLimits, View, plan_chosen,
};
use signature::{fits, signature_of, tensor_argument};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Plans kept for one replaced node; further signatures are planned at every call.
const KEPT_PLANS: usize = 8;
/// Buffers of a usual plan; where there are more, lists of them are allocated.
const USUAL_BUFFERS: usize = 8;
/// Loop iterations one program of a kernel may run.
const MAX_ITERATIONS: u64 = 1 << 20;
/// How long the candidates of one key are timed, all together.
const TUNING_TIME: Duration = Duration::from_secs(2);
/// How long all candidates of a pass are compiled and timed. After that, kernels run with their first configuration.
const TUNING_BUDGET: Duration = Duration::from_secs(20);
/// How often each of them is called at the most.
const TUNING_CALLS: usize = 7;

/// Candidates of two kernels are not timed at the same time.
static TUNES: Mutex<()> = Mutex::new(());

/// The files behind the wrappers that a graph's replaced nodes name, by pass.
#[derive(Debug, Clone, Default)]
pub struct Wrappers {
    passes: BTreeMap<Box<str>, Pass>,
    /// Whether nothing is timed here: kernels are only watched, with every configuration that they may run with elsewhere.
    untimed: bool,
}

/// The files of a pass, and what was chosen for its tuned kernels.
#[derive(Debug, Clone)]
struct Pass {
    files: Arc<ModuleSet>,
    /// By times of the native engine, and by times of a worker.
    here: Arc<Tuning>,
    elsewhere: Arc<Tuning>,
}

impl Wrappers {
    /// Adds a pass; the first of its files defines the wrapper.
    pub fn add(&mut self, pass: &str, files: ModuleSet) {
        let (here, elsewhere) = Default::default();
        self.passes.insert(pass.into(), Pass { files: Arc::new(files), here, elsewhere });
    }

    /// Whether a kernel may have configurations to choose from.
    pub fn have_tuned_kernels(&self) -> bool {
        self.passes.values().any(|pass| pass.files.mention("autotune"))
    }

    /// The sizes of blocks that the files name, the smallest first.
    pub fn block_sizes(&self) -> Vec<i64> {
        let sizes = self.passes.values().flat_map(|pass| pass.files.block_sizes());
        let sizes: std::collections::BTreeSet<i64> = sizes.collect();
        sizes.into_iter().collect()
    }

    /// The same for watching alone.
    pub(crate) fn untimed(&self) -> Wrappers {
        Wrappers { passes: self.passes.clone(), untimed: true }
    }

    /// The wrapper that a replaced node names, for a worker's kernels.
    pub(crate) fn wrapper(&self, replacement: &Replacement) -> Option<Wrapper> {
        let Pass { files, elsewhere, .. } = self.passes.get(&replacement.pass)?.clone();
        Some(Wrapper { files, replacement: replacement.clone(), tuning: elsewhere })
    }

    pub(super) fn call(&self, replacement: &Replacement) -> Option<WrapperCall> {
        let Pass { files, here, .. } = self.passes.get(&replacement.pass)?.clone();
        let wrapper = Wrapper { files, replacement: replacement.clone(), tuning: here };
        Some(WrapperCall { wrapper, untimed: self.untimed, plans: Default::default() })
    }
}

/// A pass's wrapper in the place of the code it replaces.
#[derive(Debug, Clone)]
pub(crate) struct Wrapper {
    pub(crate) files: Arc<ModuleSet>,
    pub(crate) replacement: Replacement,
    pub(crate) tuning: Arc<Tuning>,
}

/// A plan ready to run, and for each of its buffers whether a kernel may write into it.
pub(crate) type Planned = (PreparedPlan, Vec<bool>);

impl Wrapper {
    /// What the wrapper does with arguments of this signature, with these configurations of tuned kernels.
    pub(crate) fn plan(&self, signature: &[HostArg], choices: &Choices) -> Result<LaunchPlan> {
        let replacement = &self.replacement;
        let limits = PlanLimits::default();
        let plan = plan_chosen(&self.files, &replacement.wrapper, signature, limits, choices)
            .map_err(|error| err!(Plan, "{error}"))?;
        if replacement.gives_tuple && !plan.returns_sequence {
            bail!(
                Plan,
                "`{}` returns one tensor, but the pattern returns a tuple of them",
                replacement.wrapper
            );
        }
        if plan.returns.len() != replacement.outputs && !replacement.gives_tuple {
            bail!(
                Plan,
                "`{}` returns {} tensors, but the pattern has {} outputs",
                replacement.wrapper,
                plan.returns.len(),
                replacement.outputs
            );
        }
        Ok(plan)
    }

    /// The plan with its kernels compiled.
    pub(crate) fn prepare(&self, plan: LaunchPlan) -> Result<Planned> {
        self.prepare_unless_asserted(plan)?.map_err(|error| err!(Plan, "{error}"))
    }

    /// The plan with each configuration of a launch; a text instead where a kernel asserts that it must not be compiled
    /// so.
    pub(crate) fn candidates(
        &self,
        signature: &[HostArg],
        choices: &Choices,
        launch: &Launch,
    ) -> Result<Vec<std::result::Result<Planned, String>>> {
        self.candidates_until(signature, choices, launch, None)
    }

    /// The first of them, as many as can be compiled until then.
    pub(crate) fn candidates_until(
        &self,
        signature: &[HostArg],
        choices: &Choices,
        launch: &Launch,
        until: Option<Instant>,
    ) -> Result<Vec<std::result::Result<Planned, String>>> {
        let of_config = |(index, config)| {
            let plan = self.plan(signature, &choices.with(&launch.key, index));
            let prepared = plan.and_then(|plan| self.prepare_unless_asserted(plan));
            prepared.map_err(|error| match error {
                TensorError::Plan(text) => err!(Plan, "configuration `{config}`: {text}"),
                other => other,
            })
        };
        let in_time = |_: &_| until.is_none_or(|until| Instant::now() < until);
        launch.configs.iter().enumerate().take_while(in_time).map(of_config).collect()
    }

    /// The inner error is a static assertion.
    fn prepare_unless_asserted(
        &self,
        plan: LaunchPlan,
    ) -> Result<std::result::Result<Planned, String>> {
        let prepared = match PreparedPlan::new(&self.files, plan) {
            Ok(prepared) => prepared,
            Err(error) if is_static_assertion(&error) => return Ok(Err(error.to_string())),
            Err(error) => bail!(Plan, "{error}"),
        };
        let replacement = &self.replacement;
        let written = prepared.written();
        let specs = prepared.plan().buffers.iter().zip(&written);
        for (spec, written) in specs {
            if let Init::Input(index) = spec.init
                && written.is_certain()
                && !replacement.writes.contains(&index)
                && !replacement.dead.contains(&index)
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
        Ok(Ok((prepared, written)))
    }
}

/// A replaced node.
#[derive(Debug)]
pub(super) struct WrapperCall {
    wrapper: Wrapper,
    /// Whether the configurations of tuned kernels are all watched instead of timed.
    untimed: bool,
    /// Filled one after the other.
    plans: [OnceLock<SignedPlan>; KEPT_PLANS],
}

/// A plan with the arguments it was made for.
#[derive(Debug)]
struct SignedPlan {
    signature: Vec<HostArg>,
    prepared: PreparedPlan,
    /// Whether a kernel may write into the plan's buffer of that index.
    written: Vec<bool>,
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

impl WrapperCall {
    /// Runs the wrapper.
    pub(super) fn run(&self, arguments: &[Cow<'_, Value>], context: &Context) -> Result<Value> {
        self.with_plan(arguments, context, |plan| plan.run(arguments, context))
    }

    /// Looks for accesses out of bounds, races, unwritten outputs and the like, on copies of these arguments. Where nobody
    /// has chosen yet with which configuration a kernel runs, all of them are looked at.
    pub(super) fn check(&self, arguments: &[Cow<'_, Value>]) -> Result<Vec<Finding>> {
        let signature = signature_of(arguments)?;
        let choices = self.choices();
        let plan = self.wrapper.plan(&signature, &choices)?;
        let open: Vec<Launch> =
            plan.tuned().filter(|launch| choices.get(&launch.key).is_none()).cloned().collect();
        if open.is_empty() {
            let plan = SignedPlan::new(&self.wrapper, signature, self.wrapper.prepare(plan)?)?;
            return self.check_plan(&plan, arguments);
        }
        let mut findings = Vec::new();
        for launch in &open {
            let candidates = self.wrapper.candidates(&signature, &choices, launch)?;
            for (planned, config) in candidates.into_iter().zip(&launch.configs) {
                let Ok(planned) = planned else { continue };
                let plan = SignedPlan::new(&self.wrapper, signature.clone(), planned)?;
                for mut finding in self.check_plan(&plan, arguments)? {
                    finding.message = format!("{} (configuration `{config}`)", finding.message);
                    findings.push(finding);
                }
            }
        }
        Ok(findings)
    }

    fn choices(&self) -> Choices {
        if self.untimed { Choices::default() } else { self.wrapper.tuning.choices() }
    }

    /// What was chosen for the tuned kernels of this node.
    pub(super) fn tuned(&self) -> Vec<TunedKernel> {
        let plans = self.plans.iter().filter_map(OnceLock::get);
        let keys: Vec<String> = plans
            .flat_map(|plan| plan.prepared.plan().tuned())
            .map(|launch| launch.key.clone())
            .collect();
        self.wrapper.tuning.of(&keys)
    }

    fn check_plan(&self, plan: &SignedPlan, arguments: &[Cow<'_, Value>]) -> Result<Vec<Finding>> {
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
        // In an order that nobody knows, as in every other call: a kernel that counts its programs cannot tell this one.
        Ok(check::check_in_order(
            &self.wrapper.files,
            &self.wrapper.replacement.wrapper,
            &plan.signature,
            &plan.prepared,
            lent,
            Some(RandomState::new().build_hasher().finish()),
        ))
    }

    /// Does something with the plan for arguments of this signature.
    fn with_plan<R>(
        &self,
        arguments: &[Cow<'_, Value>],
        context: &Context,
        work: impl FnOnce(&SignedPlan) -> Result<R>,
    ) -> Result<R> {
        let mut known = self.plans.iter().map_while(OnceLock::get);
        if let Some(plan) = known.find(|plan| fits(&plan.signature, arguments)) {
            return work(plan);
        }
        let new = self.make_plan(arguments, context)?;
        let result = work(&new);
        let mut new = Some(new);
        for place in &self.plans {
            new = new.and_then(|new| place.set(new).err());
        }
        result
    }

    fn make_plan(&self, arguments: &[Cow<'_, Value>], context: &Context) -> Result<SignedPlan> {
        let signature = signature_of(arguments)?;
        let mut choices = self.choices();
        loop {
            let plan = self.wrapper.plan(&signature, &choices)?;
            let Some(launch) = plan.open(&choices).cloned() else {
                return SignedPlan::new(&self.wrapper, signature, self.wrapper.prepare(plan)?);
            };
            if self.untimed {
                let candidates = self.wrapper.candidates(&signature, &choices, &launch)?;
                let compiled = candidates.iter().position(|candidate| candidate.is_ok());
                choices.set(&launch.key, compiled.unwrap_or(0));
                continue;
            }
            let timings = self.tune(&signature, &choices, &launch, arguments, context)?;
            self.wrapper.tuning.choose(&launch, &timings);
            choices = self.choices();
        }
    }

    /// Compiles and times the candidates of a launch, as long as the pass has time left for it.
    fn tune(
        &self,
        signature: &[HostArg],
        choices: &Choices,
        launch: &Launch,
        arguments: &[Cow<'_, Value>],
        context: &Context,
    ) -> Result<Vec<Timing>> {
        let _alone = TUNES.lock().unwrap_or_else(PoisonError::into_inner);
        let tuning = &self.wrapper.tuning;
        let begin = Instant::now();
        let until = begin + tuning.left(TUNING_BUDGET);
        let candidates = self.wrapper.candidates_until(signature, choices, launch, Some(until))?;
        let until = until.min(Instant::now() + TUNING_TIME);
        let timings = self.time(signature, candidates, arguments, context, until);
        tuning.spend(begin.elapsed());
        timings
    }

    /// Times candidates in turns, outside every call that counts.
    fn time(
        &self,
        signature: &[HostArg],
        candidates: Vec<std::result::Result<Planned, String>>,
        arguments: &[Cow<'_, Value>],
        context: &Context,
        until: Instant,
    ) -> Result<Vec<Timing>> {
        let mut timings: Vec<Timing> = Vec::new();
        let mut plans = Vec::new();
        for candidate in candidates {
            let plan = match candidate {
                Ok(planned) => Ok(SignedPlan::new(&self.wrapper, signature.to_vec(), planned)?),
                Err(skipped) => Err(Untimed::Fails(skipped)),
            };
            timings.push(plan.as_ref().map(|_| f64::INFINITY).map_err(Clone::clone));
            plans.push(plan.ok());
        }
        for _ in 0..TUNING_CALLS {
            for (plan, timing) in plans.iter_mut().zip(&mut timings) {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                let Some(ready) = plan else { continue };
                match (ready.timed(arguments, context, left), &mut *timing) {
                    (Ok(ms), Ok(best)) => *best = best.min(ms),
                    (Err(TensorError::Timeout(_)), _) => {
                        *timing = Err(Untimed::Fails("did not finish within the limit".into()));
                        *plan = None;
                    }
                    (Err(error), _) => return Err(error),
                    (Ok(_), Err(_)) => {}
                }
            }
        }
        let ran = |ms: f64| if ms.is_finite() { Ok(ms) } else { Err(Untimed::NoTime) };
        Ok(timings.into_iter().map(|timing| timing.and_then(ran)).collect())
    }
}

impl SignedPlan {
    fn new(
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
    fn timed(
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

    fn run(&self, arguments: &[Cow<'_, Value>], context: &Context) -> Result<Value> {
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
