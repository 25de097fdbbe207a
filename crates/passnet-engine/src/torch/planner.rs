//! Answers the worker's questions for plans: arguments in, a launch plan and its kernels out.

use super::bounds::Bounds;
use super::compat::{Compat, Failed, MACHINE, SandboxedPass};
use super::compile::{Compiler, Cubin};
use super::frames::Frame;
use crate::engine::{EngineError, ErrorKind, Tier};
use crate::native::Wrappers;
use crate::native::wrapper::{Planned, Wrapper};
use crate::tuning::{Timing, TunedKernel, Tuning, Untimed};
use passnet_graph::DType;
use passnet_graph::graph::Replacement;
use passnet_kernel::Const;
use passnet_kernel::exec::PreparedPlan;
use passnet_kernel::plan::{Choices, HostArg, Init, TensorSpec};
use rayon::prelude::*;
use serde_json::{Map, Value as Json, json};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long all candidates of a pass are compiled and timed. After that, kernels run with their first configuration.
const TUNING_BUDGET: Duration = Duration::from_secs(120);
/// How long the candidates of one key are timed, all together.
const TUNING_TIME: Duration = Duration::from_secs(20);

/// Deeper nesting than this in an argument is refused.
const MAX_DEPTH: usize = 8;

/// Makes the plans of one graph's replaced nodes.
#[derive(Debug)]
pub struct PlanMaker {
    wrappers: Vec<Wrapper>,
    kernels: Kernels,
    /// Runs wrappers that cannot become plans, where that was asked for.
    compat: Option<Arc<Compat>>,
    /// Those that run so, by node.
    sandboxed: BTreeMap<usize, SandboxedPass>,
    /// The keys of tuned kernels in plans that were made, and where what was chosen for them stands.
    tuned: Vec<(Arc<Tuning>, String)>,
    /// When the candidates were asked for that the worker is timing.
    tuning_since: Option<Instant>,
    tier: Tier,
}

/// What becomes of the kernels of a plan.
#[derive(Debug)]
struct Kernels {
    /// Compiles them for the worker's GPU; `None` where it computes on the CPU.
    compiler: Option<Arc<Compiler>>,
    /// Looks whether they stay inside their buffers before a GPU runs them, where that GPU's memory is not ours.
    bounds: Option<Bounds>,
}

impl PlanMaker {
    pub(super) fn new(
        replaced: &[Replacement],
        wrappers: &Wrappers,
        compiler: Option<Arc<Compiler>>,
        compat: Option<Arc<Compat>>,
    ) -> Result<PlanMaker, EngineError> {
        let find = |replacement: &Replacement| {
            wrappers.wrapper(replacement).ok_or_else(|| {
                let text = format!("the files of pass `{}` are not there", replacement.pass);
                EngineError::graph(ErrorKind::Plan, text)
            })
        };
        Ok(PlanMaker {
            wrappers: replaced.iter().map(find).collect::<Result<_, _>>()?,
            kernels: Kernels { compiler, bounds: None },
            compat,
            sandboxed: BTreeMap::new(),
            tuned: Vec::new(),
            tuning_since: None,
            tier: Tier::Plan,
        })
    }

    /// Plans for a process that is not ours to start: nothing runs in a sandbox, and no kernel leaves its buffers.
    pub fn of_plans(
        replaced: &[Replacement],
        wrappers: &Wrappers,
        compiler: Option<Arc<Compiler>>,
    ) -> Result<PlanMaker, EngineError> {
        let mut maker = PlanMaker::new(replaced, wrappers, compiler, None)?;
        maker.kernels.bounds = Some(Bounds::default());
        Ok(maker)
    }

    /// How the replaced nodes have run so far.
    pub(super) fn tier(&self) -> Tier {
        self.tier
    }

    pub(super) fn count(&self) -> usize {
        self.wrappers.len()
    }

    /// The message and the raw bytes that answer a question.
    pub fn answer(&mut self, question: &Frame) -> (Json, Vec<Vec<u8>>) {
        let object = |key: &str| question.message.get(key).and_then(Json::as_object);
        let answer = match (object("plan"), object("remote")) {
            (Some(wanted), _) => self.plan(wanted).or_else(|failed| {
                // A machine that could not make the plan says nothing about whether there is one.
                let is_plans = failed.kind != MACHINE && self.compat.is_some();
                if is_plans { self.sandbox(wanted, failed) } else { Err(failed) }
            }),
            (None, Some(wanted)) => self.remote(wanted, &question.bytes),
            (None, None) => {
                Err(Failed { kind: "error", message: "the worker asks for nothing".into() })
            }
        };
        answer.unwrap_or_else(|failed| {
            (json!({ "error": failed.message, "kind": failed.kind }), Vec::new())
        })
    }

    /// A wrapper that cannot become a plan runs in the sandbox from here on.
    fn sandbox(
        &mut self,
        wanted: &Map<String, Json>,
        why: Failed,
    ) -> Result<(Json, Vec<Vec<u8>>), Failed> {
        let (Some(compat), Some(node)) = (&self.compat, node_of(wanted)) else { return Err(why) };
        let Some(wrapper) = self.wrappers.get(node) else { return Err(why) };
        self.tier = Tier::Compat;
        if let Entry::Vacant(place) = self.sandboxed.entry(node) {
            place.insert(SandboxedPass::start(compat, wrapper)?);
        }
        Ok((json!({ "remote": true }), Vec::new()))
    }

    /// One call of such a wrapper.
    fn remote(
        &mut self,
        wanted: &Map<String, Json>,
        bytes: &[u8],
    ) -> Result<(Json, Vec<Vec<u8>>), Failed> {
        let missing = || Failed {
            kind: "error",
            message: "the worker calls a pass that is not in the sandbox".into(),
        };
        let node = node_of(wanted).ok_or_else(missing)?;
        let wrapper = self.wrappers.get(node).ok_or_else(missing)?;
        let compat = self.compat.as_ref().ok_or_else(missing)?;
        let mut pass = match self.sandboxed.remove(&node) {
            Some(pass) => pass,
            None => SandboxedPass::start(compat, wrapper)?,
        };
        let arguments = wanted.get("arguments").ok_or_else(missing)?;
        // One that fails is not asked again: the next call finds a new process.
        let Replacement { outputs, gives_tuple, .. } = wrapper.replacement;
        let answer = pass.call(arguments, bytes, (!gives_tuple).then_some(outputs))?;
        self.sandboxed.insert(node, pass);
        Ok(answer)
    }

    fn plan(&mut self, wanted: &Map<String, Json>) -> Result<(Json, Vec<Vec<u8>>), Failed> {
        let wrapper = node_of(wanted).and_then(|node| self.wrappers.get(node)).cloned();
        let arguments = wanted.get("arguments").and_then(Json::as_array);
        let (Some(wrapper), Some(arguments)) = (wrapper, arguments) else {
            return Err(refused("the worker asks for a plan that no node needs".into()));
        };
        let signature = arguments
            .iter()
            .enumerate()
            .map(|(index, argument)| {
                host_argument(argument).ok_or_else(|| {
                    refused(format!("argument {index} of the wrapper is {argument}"))
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let plan_with = |choices: &Choices| {
            wrapper.plan(&signature, choices).map_err(|error| refused(error.to_string()))
        };
        let mut choices = wrapper.tuning.choices();
        let mut plan = plan_with(&choices)?;
        let tuning = &wrapper.tuning;
        if let Some(since) = self.tuning_since.take() {
            tuning.spend(since.elapsed());
        }
        let mut told = timings(wanted);
        while let Some(launch) = plan.open(&choices) {
            let until = Instant::now() + tuning.left(TUNING_BUDGET);
            match told.take() {
                Some(timings) => tuning.choose(launch, &timings),
                None if tuning.left(TUNING_BUDGET).is_zero() => tuning.choose(launch, &[]),
                None => {
                    self.tuning_since = Some(Instant::now());
                    let candidates = wrapper
                        .candidates_until(&signature, &choices, launch, Some(until))
                        .map_err(|error| refused(error.to_string()))?;
                    return self.candidates(&wrapper, candidates, arguments, until);
                }
            }
            choices = tuning.choices();
            plan = plan_with(&choices)?;
        }
        self.tuned.extend(plan.tuned().map(|launch| (wrapper.tuning.clone(), launch.key.clone())));
        let (prepared, _) = wrapper.prepare(plan).map_err(|error| refused(error.to_string()))?;
        let (ready, code) = self.kernels.ready(&wrapper, &prepared, arguments)?;
        Ok((ready, code.into_iter().collect()))
    }

    /// What was chosen for the tuned kernels of the plans that were made.
    pub(super) fn tuned(&self) -> Vec<TunedKernel> {
        let all = self.tuned.iter().flat_map(|(tuning, key)| tuning.of(std::slice::from_ref(key)));
        let mut all: Vec<TunedKernel> = all.collect();
        all.sort_by(|a, b| a.key.cmp(&b.key));
        all.dedup_by(|a, b| a.key == b.key);
        all
    }

    /// A plan for each configuration of a kernel; the worker is to say how long they take.
    fn candidates(
        &self,
        wrapper: &Wrapper,
        candidates: Vec<Result<Planned, String>>,
        arguments: &[Json],
        until: Instant,
    ) -> Result<(Json, Vec<Vec<u8>>), Failed> {
        let kernels = &self.kernels;
        let made: Vec<_> = candidates
            .par_iter()
            .map(|candidate| match candidate {
                Ok(_) if Instant::now() >= until => Ok(None),
                Ok((prepared, _)) => kernels.ready(wrapper, prepared, arguments).map(Some),
                Err(skipped) => Err(refused(skipped.clone())),
            })
            .collect();
        let (mut code, mut entries) = (Vec::new(), Vec::new());
        for made in made {
            entries.push(match made {
                // Time was up before it was compiled.
                Ok(None) => Json::Null,
                Ok(Some((mut ready, part))) => {
                    let part = part.unwrap_or_default();
                    ready["code"] = json!([code.len(), part.len()]);
                    code.extend(part);
                    ready
                }
                Err(failed) if failed.kind == MACHINE => return Err(failed),
                // What does not fit into the device is passed over, as Triton does.
                Err(failed) => json!({ "skipped": failed.message }),
            });
        }
        if !entries.is_empty() && entries.iter().all(|entry| entry.get("skipped").is_some()) {
            let why = entries[0]["skipped"].as_str().unwrap_or_default();
            return Err(refused(format!("no configuration compiles; the first: {why}")));
        }
        let planned = candidates.iter().flatten();
        let written: BTreeSet<usize> = planned
            .flat_map(|(prepared, written)| prepared.plan().buffers.iter().zip(written))
            .filter_map(|(buffer, written)| match buffer.init {
                Init::Input(index) if *written => Some(index),
                _ => None,
            })
            .collect();
        let seconds = until.saturating_duration_since(Instant::now()).min(TUNING_TIME);
        let answer = json!({
            "candidates": entries, "written": written, "seconds": seconds.as_secs_f64()
        });
        Ok((answer, vec![code]))
    }
}

impl Kernels {
    /// A plan as the worker loads it, and the machine code of its kernels where it computes on a GPU.
    fn ready(
        &self,
        wrapper: &Wrapper,
        prepared: &PreparedPlan,
        arguments: &[Json],
    ) -> Result<(Json, Option<Vec<u8>>), Failed> {
        let plan = prepared.plan();
        let gives_tuple = wrapper.replacement.gives_tuple;
        let reads = prepared.reads_uninitialized();
        let answer = |text: String| json!({ "plan": plan, "text": text, "gives_tuple": gives_tuple, "reads": reads });
        let Some(compiler) = &self.compiler else {
            // Kernels as tile IR, which the runner reads.
            let kernels: Vec<String> = prepared.functions().map(ToString::to_string).collect();
            let text = json!({ "plan": plan, "kernels": kernels }).to_string();
            return Ok((answer(text), None));
        };
        if let Some(bounds) = &self.bounds {
            bounds.check(&wrapper.replacement.pass, prepared).map_err(refused)?;
        }
        let is_aligned = |init: &Init| match init {
            Init::Input(index) => arguments.get(*index).is_some_and(is_aligned),
            // Fresh memory comes from PyTorch's allocator, which rounds to 512 bytes.
            _ => true,
        };
        let alignment: Vec<bool> =
            plan.buffers.iter().map(|buffer| is_aligned(&buffer.init)).collect();
        let cubins =
            compiler.compile_plan(&wrapper.files, plan, &alignment).map_err(|error| match error
                .kind
            {
                ErrorKind::Machine => Failed { kind: MACHINE, message: error.to_string() },
                _ => refused(error.to_string()),
            })?;
        let (kernels, code) = Cubin::pack(&cubins);
        let text = json!({ "plan": plan, "kernels": kernels }).to_string();
        Ok((answer(text), Some(code)))
    }
}

fn refused(message: String) -> Failed {
    Failed { kind: "plan", message }
}

/// What the worker measured for the candidates that it was sent: milliseconds, why one cannot run, or null where there
/// was no time for it.
fn timings(wanted: &Map<String, Json>) -> Option<Vec<Timing>> {
    let timing = |entry: &Json| match entry {
        Json::String(why) => Err(Untimed::Fails(why.clone())),
        other => other.as_f64().ok_or(Untimed::NoTime),
    };
    Some(wanted.get("timings")?.as_array()?.iter().map(timing).collect())
}

fn node_of(wanted: &Map<String, Json>) -> Option<usize> {
    wanted.get("node").and_then(Json::as_u64).and_then(|node| usize::try_from(node).ok())
}

/// Whether a tensor begins at an address divisible by 16.
fn is_aligned(argument: &Json) -> bool {
    argument.get("tensor").and_then(|tensor| tensor.get("aligned")) == Some(&Json::Bool(true))
}

/// An argument as the worker describes it.
fn host_argument(argument: &Json) -> Option<HostArg> {
    let Some(tensor) = argument.get("tensor") else {
        return constant(argument, 0).map(HostArg::Const);
    };
    let signed = |key: &str| -> Option<Vec<i64>> {
        tensor.get(key)?.as_array()?.iter().map(Json::as_i64).collect()
    };
    Some(HostArg::Tensor(TensorSpec {
        shape: signed("shape")?,
        stride: signed("stride")?,
        dtype: DType::from_name(tensor.get("dtype")?.as_str()?)?,
        device: TensorSpec::DEVICE,
        aligned: is_aligned(argument),
    }))
}

fn constant(argument: &Json, depth: usize) -> Option<Const> {
    if depth > MAX_DEPTH {
        return None;
    }
    if let Some(items) = argument.get("items") {
        let items = items.as_array()?.iter().map(|item| constant(item, depth + 1));
        return Some(Const::Tuple(items.collect::<Option<_>>()?));
    }
    Some(match argument.get("value")? {
        Json::Null => Const::None,
        Json::Bool(value) => Const::Bool(*value),
        Json::String(text) => Const::Str(text.clone()),
        Json::Number(number) => match number.as_i64() {
            Some(value) => Const::Int(value),
            None => Const::Float(number.as_f64()?),
        },
        _ => return None,
    })
}
