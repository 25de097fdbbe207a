//! Pictures of raw samples.

use passnet_bench::report::html::chart::{label, line, number, open};
use passnet_bench::report::html::markup::Markup;
use passnet_bench::report::ratio_text;
use passnet_bench::stats::{interquartile_range, median};

/// Calls that are drawn of each side, evenly chosen.
const DOTS: usize = 120;

/// Where the timed calls of both sides lie, with their medians and the least time there can be.
pub(super) fn samples(eager: &[f64], candidate: &[f64], roofline: Option<f64>, out: &mut Markup) {
    const WIDTH: f64 = 620.0;
    const LEFT: f64 = 80.0;
    const RIGHT: f64 = 15.0;
    const HEIGHT: f64 = 96.0;
    let known = || eager.iter().chain(candidate).copied().chain(roofline);
    let usable = || known().filter(|time| time.is_finite() && *time > 0.0);
    let (low, high) = (usable().fold(f64::INFINITY, f64::min), usable().fold(0.0, f64::max));
    if eager.is_empty() || candidate.is_empty() || low > high {
        return;
    }
    let (low, high) = ((low * 0.95).ln(), (high * 1.05).ln());
    let x = |time: f64| {
        let share = ((time.max(1e-12).ln() - low) / (high - low)).clamp(0.0, 1.0);
        LEFT + share * (WIDTH - LEFT - RIGHT)
    };
    let middle = |samples: &[f64]| median(samples).unwrap_or(0.0);
    let spread = |samples: &[f64]| interquartile_range(samples).unwrap_or(0.0);
    let told = format!(
        "eager {} ms (quartiles {} apart), candidate {} ms (quartiles {} apart)",
        ratio_text(middle(eager)),
        ratio_text(spread(eager)),
        ratio_text(middle(candidate)),
        ratio_text(spread(candidate))
    );
    out.open("figure", &[]);
    open(out, WIDTH, HEIGHT, &format!("Timed calls: {told}"), "milliseconds on a logarithmic axis");
    for (row, (name, class, samples)) in
        [("eager", "sample second", eager), ("candidate", "sample", candidate)]
            .into_iter()
            .enumerate()
    {
        let y = 27.0 + 30.0 * row as f64;
        label(out, "end", (LEFT - 8.0, y + 4.0), name);
        line(out, "axis", (LEFT, y), (WIDTH - RIGHT, y));
        let step = samples.len().div_ceil(DOTS).max(1);
        for (index, time) in samples.iter().step_by(step).enumerate() {
            // Calls of one time stand side by side, not on top of each other.
            let (cx, cy) = (number(x(*time)), number(y + (index % 5) as f64 * 3.0 - 6.0));
            out.void("circle", &[("class", class), ("cx", &cx), ("cy", &cy), ("r", "2.2")]);
        }
        let at = x(middle(samples));
        line(out, "curve", (at, y - 11.0), (at, y + 11.0));
    }
    if let Some(time) = roofline.filter(|time| time.is_finite() && *time > 0.0) {
        line(out, "baseline", (x(time), 2.0), (x(time), 76.0));
        let (anchor, beside) = if x(time) > WIDTH / 2.0 { ("end", -4.0) } else { ("start", 4.0) };
        label(out, anchor, (x(time) + beside, 11.0), "roofline");
    }
    for (time, anchor, at) in [(low.exp(), "start", LEFT), (high.exp(), "end", WIDTH - RIGHT)] {
        label(out, anchor, (at, HEIGHT - 8.0), &format!("{} ms", ratio_text(time)));
    }
    out.close("svg");
    out.element("figcaption", &[], &format!("Timed calls and their medians: {told}."));
    out.close("figure");
}
