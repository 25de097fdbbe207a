//! Whether the kernels of a plan stay inside their buffers, asked before a GPU runs them.
//!
//! A GPU does not look: a kernel that is right at the sizes it was judged at can read and write elsewhere at others, where the
//! memory belongs to somebody else. So every plan that goes to a process which is not ours is proved to stay inside for all
//! data, or, where that cannot be proved, runs on the CPU first, which looks at every access.

use passnet_kernel::check::proved_in_bounds;
use passnet_kernel::exec::{PreparedPlan, RunOptions};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Plans with more memory are not tried.
const MAX_BYTES: u64 = 1 << 30;
/// Longer than this no plan is tried.
const MAX_TIME: Duration = Duration::from_secs(20);

/// What was found out about plans, by pass and plan.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    known: Mutex<BTreeMap<[u8; 32], Result<(), String>>>,
}

impl Bounds {
    /// An error where a kernel of the plan leaves its buffers, or may.
    pub(super) fn check(&self, pass: &str, prepared: &PreparedPlan) -> Result<(), String> {
        let plan = serde_json::to_string(prepared.plan()).map_err(|error| error.to_string())?;
        let key = *blake3::hash(format!("{pass}\n{plan}").as_bytes()).as_bytes();
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(&key) {
            return found.clone();
        }
        let found = stays_inside(prepared);
        known().insert(key, found.clone());
        found
    }
}

fn stays_inside(prepared: &PreparedPlan) -> Result<(), String> {
    let plan = prepared.plan();
    let is_proved = |(launch, function)| proved_in_bounds(plan, launch, function);
    if prepared.launches().all(is_proved) {
        return Ok(());
    }
    let bytes = plan.buffers.iter().map(passnet_kernel::plan::BufferSpec::bytes);
    if bytes.clone().fold(0, u64::saturating_add) > MAX_BYTES {
        return Err(
            "its kernels are not proved to stay inside their buffers, and they are too large to try"
                .into(),
        );
    }
    // Zeros as inputs: where an input says which element is read, the first is there.
    let mut buffers: Vec<Vec<u8>> =
        bytes.map(|bytes| vec![0; usize::try_from(bytes).unwrap_or(0)]).collect();
    let mut lent: Vec<&mut [u8]> = buffers.iter_mut().map(Vec::as_mut_slice).collect();
    prepared.initialize(&mut lent);
    let options = RunOptions { deadline: Some(Instant::now() + MAX_TIME), ..RunOptions::default() };
    prepared.run(lent, options).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use passnet_graph::DType;
    use passnet_graph::syntax::Source;
    use passnet_kernel::ModuleSet;
    use passnet_kernel::plan::{HostArg, PlanLimits, TensorSpec, plan};

    /// Right where there are at least as many columns as rows.
    const TEXT: &str = "
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < LIMIT, other=0.0), mask=at < columns)


def wrapper(x):
    out = torch.empty(x.shape[1], dtype=x.dtype, device=x.device)
    kernel[(1,)](x, out, x.shape[0], x.shape[1], BLOCK=triton.next_power_of_2(x.shape[0] * x.shape[1] * 2))
    return out
";

    fn prepared(limit: &str, shape: [i64; 2]) -> PreparedPlan {
        let text = TEXT.replace("LIMIT", limit);
        let source = Source::new("pass.py", text);
        let modules = ModuleSet::new(vec![("pass".into(), source)]).unwrap();
        let argument = HostArg::Tensor(TensorSpec {
            shape: shape.to_vec(),
            stride: vec![shape[1], 1],
            dtype: DType::Float32,
            device: TensorSpec::DEVICE,
            aligned: true,
        });
        let plan = plan(&modules, "wrapper", &[argument], PlanLimits::default()).unwrap();
        PreparedPlan::new(&modules, plan).unwrap()
    }

    #[test]
    fn a_plan_that_stays_inside_is_proved_or_tried() {
        let bounds = Bounds::default();
        for shape in [[2, 8], [8, 2]] {
            assert_eq!(bounds.check("p", &prepared("columns", shape)), Ok(()), "{shape:?}");
        }
    }

    #[test]
    fn one_that_leaves_its_buffer_at_some_sizes_is_refused_at_these() {
        let bounds = Bounds::default();
        // As many elements as there are, and more where there are many rows.
        let limit = "rows * rows * 2";
        assert_eq!(bounds.check("p", &prepared(limit, [2, 8])), Ok(()));
        let refused = bounds.check("p", &prepared(limit, [8, 2])).unwrap_err();
        assert!(refused.contains("kernel `kernel`"), "{refused}");
        assert_eq!(bounds.check("p", &prepared(limit, [8, 2])), Err(refused));
    }
}
