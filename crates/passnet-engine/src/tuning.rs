//! Which configuration the tuned kernels of a pass run with: what was chosen, and the times that decided it.

use passnet_kernel::plan::{Choices, Launch};
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A kernel with `@triton.autotune`, and what was chosen for one `key`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TunedKernel {
    /// The kernel, the values of its `key`, the types of its tensors.
    pub key: String,
    /// Index of the chosen candidate.
    pub chosen: usize,
    pub candidates: Vec<TimedConfig>,
}

/// One configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimedConfig {
    pub config: String,
    /// Milliseconds of a call of the wrapper, the fewest that were seen; `None` where it was not timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<f64>,
    /// Why it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
}

/// What became of one candidate: its milliseconds, or why it has none.
pub(crate) type Timing = Result<f64, String>;

/// The choices made so far for one pass in one place where kernels run. Every graph that asks for a key gets what was
/// chosen first.
#[derive(Debug, Default)]
pub(crate) struct Tuning {
    state: Mutex<(Choices, Vec<TunedKernel>)>,
}

impl Tuning {
    fn lock(&self) -> MutexGuard<'_, (Choices, Vec<TunedKernel>)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn choices(&self) -> Choices {
        self.lock().0.clone()
    }

    /// Chooses the fastest candidate of a launch's kernel; where nothing was timed, the first that is not known to fail.
    pub(crate) fn choose(&self, launch: &Launch, timings: &[Timing]) {
        let mut state = self.lock();
        if state.0.get(&launch.key).is_some() {
            return;
        }
        let timed = timings.iter().enumerate().filter_map(|(i, t)| Some((i, *t.as_ref().ok()?)));
        let best = timed.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(index, _)| index);
        let candidates = launch.configs.iter().enumerate().map(|(index, config)| {
            let (ms, skipped) = match timings.get(index) {
                Some(Ok(ms)) => (Some(*ms), None),
                Some(Err(why)) => (None, Some(why.clone())),
                None => (None, Some("not timed within the limit".into())),
            };
            TimedConfig { config: config.to_string(), ms, skipped }
        });
        let candidates = candidates.collect();
        state.0.set(&launch.key, best);
        state.1.push(TunedKernel { key: launch.key.clone(), chosen: best, candidates });
    }

    /// What was chosen for these keys.
    pub(crate) fn of(&self, keys: &[String]) -> Vec<TunedKernel> {
        let state = self.lock();
        state.1.iter().filter(|tuned| keys.contains(&tuned.key)).cloned().collect()
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

    #[test]
    fn the_fastest_that_ran_is_chosen_once() {
        let plan = tuned_plan();
        let tuning = Tuning::default();
        let launch = plan.open(&tuning.choices()).expect("nothing is chosen yet");
        tuning.choose(launch, &[Ok(2.0), Err("out of memory".into()), Ok(1.0)]);
        assert!(plan.open(&tuning.choices()).is_none());
        tuning.choose(launch, &[Ok(0.1)]);
        assert_eq!(tuning.choices().get("kernel(n=64, float32)"), Some(2));
        let [tuned] = &tuning.of(&["kernel(n=64, float32)".into()])[..] else { panic!() };
        assert_eq!(tuned.candidates[1].skipped.as_deref(), Some("out of memory"));
        assert_eq!(tuned.candidates[2].config, "BLOCK: 64, num_warps: 4, num_stages: 3");
    }

    #[test]
    fn nothing_timed_is_the_first() {
        let plan = tuned_plan();
        let tuning = Tuning::default();
        tuning.choose(plan.open(&tuning.choices()).unwrap(), &[]);
        assert_eq!(tuning.choices().get("kernel(n=64, float32)"), Some(0));
    }
}
