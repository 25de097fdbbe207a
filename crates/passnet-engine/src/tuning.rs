//! Which configuration the tuned kernels of a pass run with: what was chosen, and the times that decided it.

use passnet_kernel::plan::{Choices, Launch};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A kernel with `@triton.autotune`, and what was chosen for one `key`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TunedKernel {
    /// The kernel, the values of its `key`, the types of its tensors.
    pub key: String,
    /// Index of the chosen candidate.
    pub chosen: usize,
    /// Every candidate that was timed.
    pub candidates: Vec<TimedConfig>,
}

/// One configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimedConfig {
    /// Its constants, as the wrapper writes them.
    pub config: String,
    /// Milliseconds of a call of the wrapper, the fewest that were seen; `None` where it was not timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<f64>,
    /// Why it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
}

/// Why a candidate was not timed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Untimed {
    /// It cannot run, or takes too long: it is not to be chosen.
    Fails(String),
    /// Time was up before its turn.
    NoTime,
}

impl fmt::Display for Untimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Untimed::Fails(why) => f.write_str(why),
            Untimed::NoTime => f.write_str("not timed within the limit"),
        }
    }
}

/// What became of one candidate: its milliseconds, or why it has none.
pub(crate) type Timing = Result<f64, Untimed>;

/// Choices, the times that decided them, and how long all of it took.
#[derive(Debug, Default)]
struct State {
    choices: Choices,
    kernels: Vec<TunedKernel>,
    spent: Duration,
}

/// The choices made so far for one pass in one place where kernels run. Every graph that asks for a key gets what was
/// chosen first.
#[derive(Debug, Default)]
pub(crate) struct Tuning {
    state: Mutex<State>,
}

impl Tuning {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn choices(&self) -> Choices {
        self.lock().choices.clone()
    }

    /// What is left of the time that tuning this pass may take, compiling included.
    pub(crate) fn left(&self, budget: Duration) -> Duration {
        budget.saturating_sub(self.lock().spent)
    }

    /// Counts time that tuning took.
    pub(crate) fn spend(&self, time: Duration) {
        self.lock().spent += time;
    }

    /// Chooses the fastest candidate of a launch's kernel; where nothing was timed, the first that is not known to fail.
    pub(crate) fn choose(&self, launch: &Launch, timings: &[Timing]) {
        let mut state = self.lock();
        if state.choices.get(&launch.key).is_some() {
            return;
        }
        let timed = timings.iter().enumerate().filter_map(|(i, t)| Some((i, *t.as_ref().ok()?)));
        let fails = |index: &usize| matches!(timings.get(*index), Some(Err(Untimed::Fails(_))));
        let best = timed
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(index, _)| index)
            .or_else(|| (0..launch.configs.len()).find(|index| !fails(index)))
            .unwrap_or(0);
        let candidates = launch.configs.iter().enumerate().map(|(index, config)| {
            let (ms, skipped) = match timings.get(index) {
                Some(Ok(ms)) => (Some(*ms), None),
                Some(Err(why)) => (None, Some(why.to_string())),
                None => (None, Some(Untimed::NoTime.to_string())),
            };
            TimedConfig { config: config.to_string(), ms, skipped }
        });
        let candidates = candidates.collect();
        state.choices.set(&launch.key, best);
        state.kernels.push(TunedKernel { key: launch.key.clone(), chosen: best, candidates });
    }

    /// What was chosen for these keys.
    pub(crate) fn of(&self, keys: &[String]) -> Vec<TunedKernel> {
        let state = self.lock();
        state.kernels.iter().filter(|tuned| keys.contains(&tuned.key)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use passnet_graph::syntax::Source;
    use passnet_graph::{DType, Device};
    use passnet_kernel::ModuleSet;
    use passnet_kernel::plan::{HostArg, LaunchPlan, PlanLimits, TensorSpec, plan};

    fn tuned_plan() -> LaunchPlan {
        let text = "
import torch
import triton
import triton.language as tl

@triton.autotune(configs=[triton.Config({'BLOCK': b}) for b in (16, 32, 64)], key=['n'])
@triton.jit
def kernel(x, n, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), 0.0)

def run(x):
    kernel[(1,)](x, x.numel())
    return x
";
        let modules = ModuleSet::new(vec![("p".into(), Source::new("p.py", text))]).unwrap();
        let x = TensorSpec {
            shape: vec![64],
            stride: vec![1],
            dtype: DType::Float32,
            device: Device::CPU,
            aligned: true,
        };
        plan(&modules, "run", &[HostArg::Tensor(x)], PlanLimits::default()).unwrap()
    }

    fn fails(why: &str) -> Timing {
        Err(Untimed::Fails(why.into()))
    }

    #[test]
    fn the_fastest_that_ran_is_chosen_once() {
        let plan = tuned_plan();
        let tuning = Tuning::default();
        let launch = plan.open(&tuning.choices()).expect("nothing is chosen yet");
        tuning.choose(launch, &[Ok(2.0), fails("out of memory"), Ok(1.0)]);
        assert!(plan.open(&tuning.choices()).is_none());
        tuning.choose(launch, &[Ok(0.1)]);
        assert_eq!(tuning.choices().get("kernel(n=64, float32)"), Some(2));
        let [tuned] = &tuning.of(&["kernel(n=64, float32)".into()])[..] else { panic!() };
        assert_eq!(tuned.candidates[1].skipped.as_deref(), Some("out of memory"));
        assert_eq!(tuned.candidates[2].config, "BLOCK: 64, num_warps: 4, num_stages: 3");
    }

    #[test]
    fn nothing_timed_is_the_first_that_may_run() {
        let plan = tuned_plan();
        for (timings, chosen) in [(vec![], 0), (vec![fails("too wide"), Err(Untimed::NoTime)], 1)] {
            let tuning = Tuning::default();
            tuning.choose(plan.open(&tuning.choices()).unwrap(), &timings);
            assert_eq!(tuning.choices().get("kernel(n=64, float32)"), Some(chosen));
        }
    }

    #[test]
    fn the_time_of_a_pass_runs_out() {
        let (tuning, budget) = (Tuning::default(), Duration::from_secs(20));
        tuning.spend(Duration::from_secs(15));
        assert_eq!(tuning.left(budget), Duration::from_secs(5));
        tuning.spend(Duration::from_secs(15));
        assert!(tuning.left(budget).is_zero());
    }
}
