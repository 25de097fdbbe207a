//! Two runs.

use super::{MAX_ROWS, and_more, count, seals_json};
use crate::error::CommandError;
use crate::output::{Output, table};
use passnet_bench::report::{
    Change, Comparison, GraphName, Overall, Pair, RunRecord, compare, printable, ratio_text,
};
use passnet_bench::score::Parameters;

pub(super) fn show(
    before: &RunRecord,
    after: &RunRecord,
    parameters: Parameters,
    out: &mut Output,
) -> Result<(), CommandError> {
    let comparison = compare(before, after, parameters);
    if out.is_json() {
        let mut value = serde_json::to_value(&comparison)
            .map_err(|error| CommandError::bug(error.to_string()))?;
        if let Some(object) = value.as_object_mut() {
            object.insert("seals".into(), seals_json(&[before.clone(), after.clone()]));
        }
        return out.json(&value);
    }
    print_scores(&comparison, out)?;
    for caution in &comparison.cautions {
        out.line(format!("note: {}", printable(caution)))?;
    }
    out.line("")?;
    if comparison.unlike {
        out.line("These runs are unlike: no speed of one is held against one of the other.")?;
        return print_the_rest(&comparison, out);
    }
    print_overall("AS", comparison.score.as_ref(), out)?;
    print_overall("speed-up", comparison.speed.as_ref(), out)?;
    let of = |wanted: Change| -> Vec<&Pair> {
        comparison.pairs.iter().filter(|pair| pair.change == wanted).collect()
    };
    let (slower, faster, same) = (of(Change::Slower), of(Change::Faster), of(Change::Same));
    out.line(format!(
        "Of {} right in both runs {} got faster, {} slower, {} cannot be told from noise.",
        count(comparison.pairs.len(), "graph"),
        faster.len(),
        slower.len(),
        same.len()
    ))?;
    print_pairs("slower", &slower, out)?;
    print_pairs("faster", &faster, out)?;
    print_the_rest(&comparison, out)
}

/// What does not depend on speed.
fn print_the_rest(comparison: &Comparison, out: &mut Output) -> Result<(), CommandError> {
    print_verdicts(comparison, out)?;
    print_names("Only in the first run", &comparison.only_before, out)?;
    print_names("Only in the second run", &comparison.only_after, out)?;
    print_names("Other model text under the same name", &comparison.other_models, out)
}

fn print_scores(comparison: &Comparison, out: &mut Output) -> Result<(), CommandError> {
    let mut rows =
        table(["run", "graphs", "AS", "common graphs", "AS of these", "correct", "speed-up"]);
    for side in [&comparison.before, &comparison.after] {
        let common = side.common.as_ref();
        let text = |value: Option<f64>| value.map_or("-".into(), |v| format!("{v:.4}"));
        rows.add_row([
            printable(&side.run),
            side.graphs.to_string(),
            text(side.aggregated),
            common.map_or("0".into(), |score| score.summary.graphs.to_string()),
            text(common.map(|score| score.aggregated)),
            common.map_or("-".into(), |score| score.summary.correct.to_string()),
            text(common.and_then(|score| score.summary.geometric_mean)),
        ]);
    }
    out.table(&rows)
}

fn print_overall(
    what: &str,
    overall: Option<&Overall>,
    out: &mut Output,
) -> Result<(), CommandError> {
    let Some(overall) = overall else { return out.line(format!("{what}: nothing to compare")) };
    let units = if overall.units_are_tasks { "task" } else { "graph" };
    let conclusion = overall.conclusion.text();
    out.line(format!(
        "{what} x {} (99 % interval {} to {}, {} up, {} down, sign test p = {}): {conclusion}",
        ratio_text(overall.ratio.ratio),
        ratio_text(overall.ratio.low),
        ratio_text(overall.ratio.high),
        count(overall.better, units),
        overall.worse,
        ratio_text(overall.p_value)
    ))
}

fn print_pairs(title: &str, pairs: &[&Pair], out: &mut Output) -> Result<(), CommandError> {
    if pairs.is_empty() {
        return Ok(());
    }
    out.line("")?;
    let mut rows = table([title, "before", "after", "ratio", "at least", "at most"]);
    for pair in pairs.iter().take(MAX_ROWS) {
        rows.add_row([
            printable(&pair.name.to_string()),
            ratio_text(pair.before),
            ratio_text(pair.after),
            ratio_text(pair.ratio.ratio),
            ratio_text(pair.ratio.low),
            ratio_text(pair.ratio.high),
        ]);
    }
    out.table(&rows)?;
    and_more(pairs.len(), out)
}

fn print_verdicts(comparison: &Comparison, out: &mut Output) -> Result<(), CommandError> {
    if comparison.verdicts.is_empty() {
        return Ok(());
    }
    out.line("")?;
    out.line("Other verdicts:")?;
    for change in comparison.verdicts.iter().take(MAX_ROWS) {
        let evidence = change.evidence.first().map(|text| format!(" ({})", printable(text)));
        out.line(format!(
            "  {}: {} before, {} after{}",
            printable(&change.name.to_string()),
            change.before,
            change.after,
            evidence.unwrap_or_default()
        ))?;
    }
    and_more(comparison.verdicts.len(), out)
}

fn print_names(title: &str, names: &[GraphName], out: &mut Output) -> Result<(), CommandError> {
    if names.is_empty() {
        return Ok(());
    }
    out.line("")?;
    out.line(format!("{title}:"))?;
    for name in names.iter().take(MAX_ROWS) {
        out.line(format!("  {}", printable(&name.to_string())))?;
    }
    and_more(names.len(), out)
}
