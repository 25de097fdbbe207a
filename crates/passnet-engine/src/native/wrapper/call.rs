//! A replaced node: plans by signature, tuned kernels timed, kernels watched.

use super::planning::{Planned, Wrapper};
use super::signature::{fits, signature_of, tensor_argument};
use super::signed_plan::SignedPlan;
use crate::engine::Value;
use crate::native::dispatch::Context;
use crate::native::error::{Result, TensorError};
use crate::native::tensor::Buffer;
use crate::tuning::{Timing, TunedKernel, Untimed};
use passnet_kernel::check::{self, Finding};
use passnet_kernel::plan::{Choices, HostArg, Init, Launch};
use std::borrow::Cow;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Plans kept for one replaced node; further signatures are planned at every call.
const KEPT_PLANS: usize = 8;
/// How long the candidates of one key are timed, all together.
const TUNING_TIME: Duration = Duration::from_secs(2);
/// How long all candidates of a pass are compiled and timed. After that, kernels run with their first configuration.
const TUNING_BUDGET: Duration = Duration::from_secs(20);
/// How often each of them is called at the most.
const TUNING_CALLS: usize = 7;

/// Candidates of two kernels are not timed at the same time.
static TUNES: Mutex<()> = Mutex::new(());

/// A replaced node.
#[derive(Debug)]
pub(in crate::native) struct WrapperCall {
    pub(super) wrapper: Wrapper,
    /// Whether the configurations of tuned kernels are all watched instead of timed.
    pub(super) untimed: bool,
    /// Filled one after the other.
    pub(super) plans: [OnceLock<SignedPlan>; KEPT_PLANS],
}

impl WrapperCall {
    /// Runs the wrapper.
    pub(in crate::native) fn run(
        &self,
        arguments: &[Cow<'_, Value>],
        context: &Context,
    ) -> Result<Value> {
        self.with_plan(arguments, context, |plan| plan.run(arguments, context))
    }

    /// Looks for accesses out of bounds, races, unwritten outputs and the like, on copies of these arguments. Where nobody
    /// has chosen yet with which configuration a kernel runs, all of them are looked at.
    pub(in crate::native) fn check(&self, arguments: &[Cow<'_, Value>]) -> Result<Vec<Finding>> {
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
    pub(in crate::native) fn tuned(&self) -> Vec<TunedKernel> {
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
