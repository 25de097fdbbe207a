//! Pictures: drawn from numbers, with a title and a description for those who do not see them.

use super::super::{Histogram, ratio_text};
use super::markup::Markup;
use crate::score::CURVE_HIGHEST;
use crate::stats::RatioInterval;
use crate::tolerance::LOWEST;

/// A coordinate.
pub fn number(value: f64) -> String {
    format!("{value:.1}")
}

/// A straight line.
pub fn line(page: &mut Markup, class: &str, from: (f64, f64), to: (f64, f64)) {
    let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(number);
    page.void("line", &[("class", class), ("x1", &x1), ("y1", &y1), ("x2", &x2), ("y2", &y2)]);
}

/// Text at a place.
pub fn label(page: &mut Markup, anchor: &str, at: (f64, f64), text: &str) {
    let (x, y) = (number(at.0), number(at.1));
    page.element("text", &[("x", &x), ("y", &y), ("text-anchor", anchor)], text);
}

/// Begins a picture; `svg` is left open.
pub fn open(page: &mut Markup, width: f64, height: f64, title: &str, description: &str) {
    let view = format!("0 0 {width} {height}");
    page.open(
        "svg",
        &[
            ("role", "img"),
            ("viewBox", &view),
            ("width", &width.to_string()),
            ("height", &height.to_string()),
            ("aria-label", title),
        ],
    );
    page.element("title", &[], title);
    page.element("desc", &[], description);
}

/// A run's name and its ES(t), level by level.
pub type NamedCurve<'a> = (&'a str, Vec<(i32, f64)>);

/// ES(t) of one or two runs on a logarithmic axis, with eager as a line.
pub fn curves(curves: &[NamedCurve<'_>], page: &mut Markup) {
    const WIDTH: f64 = 680.0;
    const HEIGHT: f64 = 300.0;
    const LEFT: f64 = 50.0;
    const RIGHT: f64 = 15.0;
    const TOP: f64 = 15.0;
    const BOTTOM: f64 = 40.0;
    let values = || curves.iter().flat_map(|(_, curve)| curve.iter().map(|(_, value)| *value));
    let usable = || values().filter(|value| value.is_finite() && *value > 0.0);
    let low = usable().fold(0.5, f64::min).max(1e-6).log10() - 0.05;
    let high = usable().fold(2.0, f64::max).min(1e6).log10() + 0.05;
    let x = |t: i32| {
        let share = f64::from(t - LOWEST) / f64::from(CURVE_HIGHEST - LOWEST);
        LEFT + share * (WIDTH - LEFT - RIGHT)
    };
    let y = |value: f64| {
        let share = (value.clamp(1e-6, 1e6).log10() - low) / (high - low);
        HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
    };
    let description: Vec<String> = curves
        .iter()
        .map(|(name, curve)| {
            let values: Vec<String> =
                curve.iter().map(|(t, value)| format!("{} at {t}", ratio_text(*value))).collect();
            format!("{name}: {}", values.join(", "))
        })
        .collect();
    let title = "ES(t), the error-aware speed-up by tolerance level";
    open(page, WIDTH, HEIGHT, title, &description.join("; "));
    for decade in (low.floor() as i32)..=(high.ceil() as i32) {
        for step in [1.0, 2.0, 5.0] {
            let value = step * 10f64.powi(decade);
            if (low..=high).contains(&value.log10()) {
                line(page, "axis", (LEFT, y(value)), (WIDTH - RIGHT, y(value)));
                label(page, "end", (LEFT - 6.0, y(value) + 4.0), &value.to_string());
            }
        }
    }
    for t in LOWEST..=CURVE_HIGHEST {
        label(page, "middle", (x(t), HEIGHT - BOTTOM + 18.0), &t.to_string());
    }
    label(page, "middle", ((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 5.0), "tolerance level t");
    line(page, "eager", (LEFT, y(1.0)), (WIDTH - RIGHT, y(1.0)));
    label(page, "start", (LEFT + 6.0, y(1.0) - 5.0), "1 = eager");
    for (index, (name, curve)) in curves.iter().enumerate() {
        let (class, dot) = match index {
            0 => ("curve", "point"),
            _ => ("curve second", "second point"),
        };
        let points: Vec<String> =
            curve.iter().map(|(t, value)| format!("{:.1},{:.1}", x(*t), y(*value))).collect();
        page.void("polyline", &[("class", class), ("points", &points.join(" "))]);
        for &(t, value) in curve {
            let (cx, cy) = (number(x(t)), number(y(value)));
            page.open("circle", &[("class", dot), ("cx", &cx), ("cy", &cy), ("r", "3")]);
            page.element("title", &[], &format!("{name}: ES({t}) = {}", ratio_text(value)));
            page.close("circle");
        }
    }
    page.close("svg");
}

/// Bars of equal ratio, with the line between slower and faster than eager.
pub fn histogram(histogram: &Histogram, page: &mut Markup) {
    const WIDTH: f64 = 680.0;
    const ROW: f64 = 20.0;
    const LEFT: f64 = 120.0;
    /// Room for a count and the name of the line beside the longest bar.
    const RIGHT: f64 = 120.0;
    let height = ROW * histogram.bins.len() as f64 + 20.0;
    let largest = histogram.largest().max(1) as f64;
    let bars: Vec<String> =
        histogram.bins.iter().map(|bin| format!("{}: {}", bin.label(), bin.count)).collect();
    open(page, WIDTH, height, "Graphs by speed-up", &bars.join("; "));
    for (index, bin) in histogram.bins.iter().enumerate() {
        let top = 10.0 + ROW * index as f64;
        let width = bin.count as f64 / largest * (WIDTH - LEFT - RIGHT);
        label(page, "end", (LEFT - 8.0, top + 14.0), &bin.label());
        let [x, y, w, h] = [LEFT, top + 2.0, width, ROW - 4.0].map(number);
        page.void("rect", &[("class", "bar"), ("x", &x), ("y", &y), ("width", &w), ("height", &h)]);
        label(page, "start", (LEFT + width + 6.0, top + 14.0), &bin.count.to_string());
        if bin.low == Some(1.0) {
            line(page, "eager", (0.0, top), (WIDTH, top));
            label(page, "end", (WIDTH, top + 14.0), "1 = eager");
        }
    }
    page.close("svg");
}

/// A ratio and its interval on a scale from an eighth to eight times eager.
pub fn interval_bar(what: &str, interval: &RatioInterval, page: &mut Markup) {
    const WIDTH: f64 = 140.0;
    const HEIGHT: f64 = 16.0;
    let x = |ratio: f64| {
        let share = if ratio > 0.0 { (ratio.log2() / 3.0).clamp(-1.0, 1.0) } else { -1.0 };
        5.0 + (share + 1.0) / 2.0 * (WIDTH - 10.0)
    };
    let title = format!(
        "{what} {}, between {} and {}",
        ratio_text(interval.ratio),
        ratio_text(interval.low),
        ratio_text(interval.high)
    );
    open(page, WIDTH, HEIGHT, &title, "on a scale from 1/8 to 8; the line is eager");
    line(page, "axis", (5.0, HEIGHT / 2.0), (WIDTH - 5.0, HEIGHT / 2.0));
    line(page, "eager", (x(1.0), 0.0), (x(1.0), HEIGHT));
    let (low, high) = (x(interval.low), x(interval.high));
    let [left, width] = [low, (high - low).max(1.0)].map(number);
    page.void(
        "rect",
        &[("class", "interval"), ("x", &left), ("y", "4"), ("width", &width), ("height", "8")],
    );
    let centre = number(x(interval.ratio));
    page.void("circle", &[("class", "point"), ("cx", &centre), ("cy", "8"), ("r", "3")]);
    page.close("svg");
}
