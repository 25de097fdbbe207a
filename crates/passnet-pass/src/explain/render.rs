//! An explanation as text: the two sources side by side, then every difference.

use super::{Explanation, Place};
use std::fmt::Write;

/// Plain text, readable without colour.
pub fn render(explanation: &Explanation) -> String {
    let mut text = String::new();
    let Explanation { pass, graph, reason, .. } = explanation;
    let verb = if explanation.matches > 0 { "matches" } else { "does not match" };
    // Writing to a string cannot fail.
    let _ = writeln!(text, "pass `{pass}` {verb} graph `{graph}`");
    let _ = writeln!(text, "  {reason}");
    if !explanation.alignment.is_empty() {
        text.push('\n');
        side_by_side(explanation, &mut text);
    }
    for (index, difference) in explanation.differences.iter().enumerate() {
        let _ = writeln!(text, "\n{}. {}", index + 1, difference.message);
        let _ = writeln!(text, "   pattern  {}", located(&difference.pattern));
        if let Some(place) = &difference.graph {
            let _ = writeln!(text, "   graph    {}", located(place));
        }
        let _ = writeln!(text, "   change   {}", difference.change);
    }
    text
}

fn located(place: &Place) -> String {
    match place.line {
        0 => format!("{}  {}", place.file, place.text),
        line => format!("{}:{line}  {}", place.file, place.text),
    }
}

fn side_by_side(explanation: &Explanation, text: &mut String) {
    let left = |place: &Place| format!("{:>4}  {}", place.line, place.text);
    let rows: Vec<(String, &str, String)> = explanation
        .alignment
        .iter()
        .map(|pair| {
            let right = match &pair.graph {
                Some(place) => left(place),
                None => "   -  (nothing)".into(),
            };
            (left(&pair.pattern), if pair.fits { "=" } else { "!" }, right)
        })
        .collect();
    let width = rows.iter().map(|(left, ..)| left.chars().count()).max().unwrap_or(0).max(13);
    let _ = writeln!(text, "  {:width$}     graph", "line  pattern");
    for (left, mark, right) in rows {
        let _ = writeln!(text, "  {left:width$}  {mark}  {right}");
    }
}
