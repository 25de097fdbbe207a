//! Whether accesses provably stay inside their buffers.

use super::linear::Linear;
use super::touches::{Analysis, Touch, analyze};
use crate::ir::Function;
use crate::plan::{Launch, LaunchPlan};

/// Whether every access of the launch is proved to stay inside its buffer, for all data.
pub fn proved_in_bounds(plan: &LaunchPlan, launch: &Launch, function: &Function) -> bool {
    let analysis = analyze(function, launch);
    analysis.touches.iter().all(|touch| inside(plan, launch, function, &analysis, touch))
}

fn inside(
    plan: &LaunchPlan,
    launch: &Launch,
    f: &Function,
    analysis: &Analysis,
    touch: &Touch,
) -> bool {
    let (Some(param), Some(bytes)) = (touch.param, &touch.bytes) else { return false };
    let Some(view) = launch.view(&f.params[param].name) else { return false };
    let Some(buffer) = plan.buffers.get(view.buffer) else { return false };
    let size = touch.elem.size() as i128;
    let (low, high) = bytes.range(&analysis.symbols, &touch.shape);
    let (mut low, mut high) = (low, high);
    // Each condition bounds the part of the address it is proportional to.
    for condition in &touch.conditions {
        if let Some((l, h)) = tightened(bytes, condition, analysis, &touch.shape) {
            low = low.max(l);
            high = high.min(h);
        }
    }
    low >= 0 && high + size <= i128::from(buffer.bytes())
}

/// Range of `bytes` given `condition < 0`, by writing `bytes = k * condition + rest`.
fn tightened(
    bytes: &Linear,
    condition: &Linear,
    analysis: &Analysis,
    shape: &[u32],
) -> Option<(i128, i128)> {
    let k = condition
        .terms
        .iter()
        .map(|(s, c)| (bytes.terms.get(s).copied().unwrap_or(0), *c))
        .chain(
            condition
                .lanes
                .iter()
                .enumerate()
                .map(|(d, c)| (bytes.lanes.get(d).copied().unwrap_or(0), *c)),
        )
        .filter(|(_, c)| *c != 0)
        .find_map(|(b, c)| (b != 0 && b % c == 0).then_some(b / c))?;
    let rest = bytes.plus(condition, -k)?;
    let (rest_low, rest_high) = rest.range(&analysis.symbols, shape);
    let (c_low, _) = condition.range(&analysis.symbols, shape);
    // condition lies in [c_low, -1].
    let (a, b) = (i128::from(k) * c_low, -i128::from(k));
    Some((rest_low + a.min(b), rest_high + a.max(b)))
}
