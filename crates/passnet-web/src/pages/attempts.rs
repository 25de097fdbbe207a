//! All attempts of a run on one page: what the model achieved, then every attempt, to be opened and read step by step.

use super::attempt::replay;
use passnet_agent::metrics::{At, Metrics};
use passnet_agent::run::AttemptRecord;
use passnet_bench::report::html::markup::Markup;
use passnet_bench::report::html::parts::percent;
use passnet_bench::report::ratio_text;
use passnet_bench::score::Parameters;

/// Attempts that are told in full; a page that holds more does not open any longer.
const MAX_ATTEMPTS: usize = 100;

/// Writes the attempts of a run, known by this name.
pub fn attempts(name: &str, attempts: &[AttemptRecord], parameters: Parameters, out: &mut Markup) {
    let Some(metrics) = Metrics::of(attempts, parameters) else { return };
    out.element("h2", &[], &format!("Attempts of {} in {name}", metrics.model));
    achieved(&metrics, out);
    for attempt in attempts.iter().take(MAX_ATTEMPTS) {
        let end = attempt.reason().map_or("not ended".to_string(), |reason| reason.to_string());
        let score = attempt.best_score().map_or("no score".into(), ratio_text);
        let right = if attempt.is_correct() { "solved" } else { "not solved" };
        out.open("details", &[("class", "attempt")]);
        out.element(
            "summary",
            &[],
            &format!(
                "{}, attempt {}: {right}, AS {score}, {} steps, {end}",
                attempt.start.task,
                u64::from(attempt.start.attempt) + 1,
                attempt.steps()
            ),
        );
        replay(attempt, out);
        out.close("details");
    }
    if let Some(more) = attempts.len().checked_sub(MAX_ATTEMPTS + 1) {
        let text =
            format!("{} more attempts are left out; `passnet agent show` has them.", more + 1);
        out.element("p", &[("class", "soft")], &text);
    }
}

/// pass@k, the best of k, and what it cost.
fn achieved(metrics: &Metrics, out: &mut Markup) {
    out.open_table("What k attempts achieve", &["k", "pass@k", "fast@k", "AS, best of k"]);
    let at = |values: &[At], k: usize| values.iter().find(|at| at.k == k).map(|at| at.value);
    let most = metrics.pass_at.len();
    for k in (1..=most).filter(|k| k.is_power_of_two() || *k == most) {
        let share = |values: &[At]| at(values, k).map_or("-".into(), percent);
        let best = at(&metrics.best_of, k).map_or("-".into(), ratio_text);
        out.row(&[k.to_string(), share(&metrics.pass_at), share(&metrics.fast_at), best]);
    }
    out.close_table();
    if !metrics.set_aside.is_empty() {
        let names = metrics.set_aside.join(", ");
        let text = format!("Set aside: eager fails ({} tasks): {names}", metrics.set_aside.len());
        out.element("p", &[], &text);
    }
    out.open_table("What they cost", &["", "all attempts"]);
    let money = |cost: Option<f64>| cost.map_or("-".into(), |cost| format!("{cost:.4}"));
    for (name, value) in [
        ("tasks", metrics.tasks.to_string()),
        ("attempts", metrics.attempts.to_string()),
        ("steps", metrics.steps.to_string()),
        ("evaluations", metrics.evaluations.to_string()),
        ("tokens in", metrics.input_tokens.to_string()),
        ("tokens out", metrics.output_tokens.to_string()),
        ("cost", money(metrics.cost)),
        ("cost per task", money(metrics.cost_per_task)),
    ] {
        out.row(&[name.to_string(), value]);
    }
    out.close_table();
}
