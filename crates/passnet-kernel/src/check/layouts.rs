//! Stride assumptions: does an input that does not lie row by row give the results that a packed copy of it gives?
//!
//! A kernel that multiplies by sizes where it should multiply by strides is right as long as its inputs are packed, and
//! only then. So inputs of this signature that are not packed are packed and the plan is made and run again: a wrapper
//! that passes strides, calls `.contiguous()`, or treats all tensors alike elementwise gives the same numbers.

use super::findings::{Finding, Severity};
use crate::exec::{PreparedPlan, RunOptions, gather, lanes_as_f64};
use crate::modules::ModuleSet;
use crate::plan::{ArgValue, HostArg, Init, LaunchPlan, PlanLimits, TensorSpec, View, plan};
use passnet_graph::DType;

/// Loop iterations of a program in the second run.
const ITERATIONS: u64 = 1 << 22;

/// Differences that another order of summation can explain, relative to the larger of the value and one.
fn tolerance(dtype: DType) -> f64 {
    match dtype.size() {
        8 => 1e-9,
        4 => 1e-4,
        _ => 2e-2,
    }
}

/// The packed bytes of each input that lies otherwise, by its number.
pub(super) fn packed_inputs(
    plan: &LaunchPlan,
    args: &[HostArg],
    buffers: &[&mut [u8]],
) -> Vec<(usize, Vec<u8>)> {
    let mut packed = Vec::new();
    for (spec, bytes) in plan.buffers.iter().zip(buffers) {
        if let Init::Input(index) = spec.init
            && let Some(HostArg::Tensor(t)) = args.get(index)
            && !is_packed(t)
        {
            packed.push((index, gather(&whole(t), bytes)));
        }
    }
    packed
}

fn is_packed(t: &TensorSpec) -> bool {
    let packed = TensorSpec::contiguous(&t.shape, t.dtype, t.device);
    t.shape.contains(&0)
        || (0..t.shape.len()).all(|d| t.shape[d] == 1 || t.stride[d] == packed.stride[d])
}

fn whole(t: &TensorSpec) -> View {
    View { buffer: 0, offset: 0, shape: t.shape.clone(), stride: t.stride.clone(), dtype: t.dtype }
}

/// Runs the wrapper on packed copies and compares with what the inputs as they lie have given.
pub(super) fn strides(
    modules: &ModuleSet,
    wrapper: &str,
    args: &[HostArg],
    first: (&LaunchPlan, &[&mut [u8]]),
    inputs: &[(usize, Vec<u8>)],
    originals: &[(usize, Vec<u8>)],
) -> Option<Finding> {
    let relaid: Vec<HostArg> = args
        .iter()
        .map(|arg| match arg {
            HostArg::Tensor(t) => {
                HostArg::Tensor(TensorSpec::contiguous(&t.shape, t.dtype, t.device))
            }
            other => other.clone(),
        })
        .collect();
    let other = plan(modules, wrapper, &relaid, PlanLimits::default()).ok()?;
    let prepared = PreparedPlan::new(modules, other).ok()?;
    let data = |index: usize| {
        let found = inputs.iter().chain(originals).find(|(i, _)| *i == index);
        found.map(|(_, bytes)| bytes.clone())
    };
    let mut buffers: Vec<Vec<u8>> = Vec::new();
    for spec in &prepared.plan().buffers {
        buffers.push(match spec.init {
            Init::Input(index) => data(index)?,
            _ => vec![0; usize::try_from(spec.bytes()).ok()?],
        });
    }
    let mut lent: Vec<&mut [u8]> = buffers.iter_mut().map(Vec::as_mut_slice).collect();
    prepared.initialize(&mut lent);
    let options = RunOptions { iterations: ITERATIONS, ..RunOptions::default() };
    prepared.run(lent, options).ok()?;
    let (plan_data, ran) = first;
    let differs = plan_data.returns.iter().zip(&prepared.plan().returns).position(|(a, b)| {
        let (x, y) = (gather(a, ran[a.buffer]), gather(b, &buffers[b.buffer]));
        a.shape != b.shape || a.dtype != b.dtype || !alike(&x, &y, a.dtype)
    })?;
    // The launch that takes such an input, for the place of the message.
    let strided = |buffer: usize| {
        let init = plan_data.buffers.get(buffer).map(|b| &b.init);
        matches!(init, Some(Init::Input(i)) if inputs.iter().any(|(index, _)| index == i))
    };
    let (launch, name) = plan_data.launches().find_map(|launch| {
        launch.args.iter().find_map(|arg| match &arg.value {
            ArgValue::Buffer(view) if strided(view.buffer) => Some((launch, &arg.name)),
            _ => None,
        })
    })?;
    Some(Finding {
        rule: "stride-assumption",
        severity: Severity::Error,
        file: modules.source(launch.module).path().to_string(),
        line: launch.line,
        message: format!(
            "kernel `{}` reads `{name}` as if it lay row by row, which it does not: output {differs} is another than for a packed copy",
            launch.kernel
        ),
        proved: false,
    })
}

fn alike(a: &[u8], b: &[u8], dtype: DType) -> bool {
    if a == b {
        return true;
    }
    let (Some(a), Some(b)) = (lanes_as_f64(a, dtype), lanes_as_f64(b, dtype)) else { return false };
    let limit = tolerance(dtype);
    a.len() == b.len()
        && a.iter().zip(&b).all(|(x, y)| {
            x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= limit * y.abs().max(1.0)
        })
}
