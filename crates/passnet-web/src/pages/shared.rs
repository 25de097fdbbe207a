//! What several pages show alike.

use super::links::Links;
use super::route::Route;
use crate::Error;
use crate::store::{Entry, EntryState};
use passnet_bench::report::RunRecord;
use passnet_bench::report::html::markup::Markup;
pub(super) use passnet_bench::report::html::parts::{
    CELLS, count, facts, graph_cell, headline, list, optional_ratio, percent, verdict,
};
use passnet_bench::run::Event;

/// A day of the calendar, from seconds since 1970.
pub(super) fn date(seconds: i64) -> String {
    // Civil date from days, after Howard Hinnant.
    let days = seconds.div_euclid(86_400) + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// A link with text.
pub(super) fn link(links: &Links, route: &Route, text: &str, out: &mut Markup) {
    out.inline("a", &[("href", &links.to(route))], text);
}

/// What stands above a column, and whether its cells are numbers.
pub(super) type Head<'a> = (&'a str, bool);

/// Opens a table; `Markup::close_table` ends it. One that is there in full is sorted by the page's script.
pub(super) fn open_sortable(
    id: &str,
    is_whole: bool,
    caption: &str,
    heads: &[Head<'_>],
    out: &mut Markup,
) {
    out.open("div", &[("class", "wide")]);
    let whole: &[_] = if is_whole { &[("data-whole", "")] } else { &[] };
    out.open("table", &[&[("id", id)], whole].concat());
    out.element("caption", &[], caption);
    out.open("thead", &[]);
    out.open("tr", &[]);
    for (title, is_number) in heads {
        out.open("th", &[("scope", "col"), ("class", if *is_number { "n" } else { "" })]);
        match is_whole {
            true => out.element("button", &[("type", "button")], title),
            false => out.text(title),
        }
        out.close("th");
    }
    out.close("tr");
    out.close("thead");
    out.open("tbody", &[]);
}

/// How far an entry was checked, and whether it still stands.
pub(super) fn badges(entry: &Entry, links: &Links, out: &mut Markup) {
    let badge = entry.badge();
    out.element("span", &[("class", badge.class())], &badge.text());
    match (entry.state, &entry.replaced_by) {
        (EntryState::Listed, _) => {}
        (EntryState::Superseded, Some(by)) => {
            out.open("span", &[("class", "badge bad")]);
            link(links, &Route::Run(by.clone()), "superseded", out);
            out.close("span");
        }
        (state, _) => out.element("span", &[("class", "badge bad")], state.name()),
    }
}

/// Events from the bytes of `events.jsonl`; a line that is none is passed over, for the bundle was verified before.
fn events(bytes: &[u8]) -> impl Iterator<Item = Event> + '_ {
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
}

/// The run behind an entry, from its bundle.
pub(crate) fn run_of(bundle: &crate::bundle::Bundle) -> Result<RunRecord, Error> {
    let bytes = bundle.blob(&bundle.manifest.events)?;
    Ok(RunRecord::of_audited(&bundle.manifest.name, events(&bytes).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (1_709_164_800, "2024-02-29"),
            (1_763_337_600, "2025-11-17"),
            (-1, "1969-12-31"),
        ] {
            assert_eq!(date(seconds), expected);
        }
    }
}
