//! Run against run: significant differences first, then every task.

use super::links::Links;
use super::route::Route;
use super::shared::link;
use super::{Page, Pages, matrix};
use crate::Error;
use passnet_bench::report::html::markup::Markup;
use passnet_bench::report::html::{chart, comparison};
use passnet_bench::report::{Comparison, compare, ratio_text};
use passnet_bench::score::Parameters;

/// Pairs that are shown of each kind; the matrix has all.
const PAIRS: usize = 60;

pub(super) fn write(
    pages: &Pages<'_>,
    links: &Links,
    one: &str,
    two: &str,
) -> Result<Option<Page>, Error> {
    let ids = [one.to_string(), two.to_string()];
    let Some(chosen) = matrix::read(pages, &ids)? else { return Ok(None) };
    let ([one, two], [before, after]) = (chosen.entries.as_slice(), chosen.runs.as_slice()) else {
        return Ok(None);
    };
    let mut found = compare(before, after, Parameters::default());
    let mut out = Markup::default();
    out.element("h1", &[], &format!("{} against {}", two.name, one.name));
    out.open("p", &[]);
    link(links, &Route::Run(one.id.clone()), &one.name, &mut out);
    out.text(" · ");
    link(links, &Route::Run(two.id.clone()), &two.name, &mut out);
    out.close("p");
    curves(&found, &mut out);
    let left_out = cut(&mut found);
    comparison(&found, &mut out);
    if left_out > 0 {
        let text = format!("{left_out} more graphs are in the matrix below.");
        out.element("p", &[("class", "soft")], &text);
    }
    matrix::below(&chosen, links, &mut out);
    Ok(Some(Page { title: format!("{} against {}", two.name, one.name), body: out }))
}

fn curves(found: &Comparison, out: &mut Markup) {
    let (Some(before), Some(after)) = (&found.before.common, &found.after.common) else { return };
    out.open("figure", &[]);
    let both = [
        (found.before.run.as_str(), before.es.iter().collect()),
        (found.after.run.as_str(), after.es.iter().collect()),
    ];
    chart::curves(&both, out);
    let caption = format!(
        "ES(t) over the graphs that both have: {} (first colour), AS {}; {}, AS {}.",
        found.before.run,
        ratio_text(before.aggregated),
        found.after.run,
        ratio_text(after.aggregated)
    );
    out.element("figcaption", &[], &caption);
    out.close("figure");
}

/// Keeps what matters most; gives how much was left out.
fn cut(found: &mut Comparison) -> usize {
    let mut left_out = 0;
    left_out += found.pairs.len().saturating_sub(PAIRS);
    found.pairs.truncate(PAIRS);
    left_out += found.verdicts.len().saturating_sub(PAIRS);
    found.verdicts.truncate(PAIRS);
    for names in [&mut found.only_before, &mut found.only_after, &mut found.other_models] {
        left_out += names.len().saturating_sub(PAIRS);
        names.truncate(PAIRS);
    }
    left_out
}
