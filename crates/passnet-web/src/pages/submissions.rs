//! What was submitted, and what became of it.

use super::links::Links;
use super::route::Route;
use super::shared::{date, link};
use super::{Page, Pages, home};
use crate::Error;
use passnet_bench::report::html::markup::Markup;

/// The newest are shown.
const ROWS: usize = 100;

pub(super) fn write(pages: &Pages<'_>, links: &Links) -> Result<Page, Error> {
    let mut out = Markup::default();
    out.element("h1", &[], "Submissions");
    out.element(
        "p",
        &[],
        "A bundle is kept, verified (signature, chain of events, scores from raw samples, passes by the rules) and put \
         on the board; then some of its graphs, drawn at random, are judged again here.",
    );
    let submissions = pages.store.submissions(ROWS)?;
    if submissions.is_empty() {
        out.element("p", &[], "Nothing was submitted yet.");
        home::submit_hint(&mut out);
        return Ok(Page { title: "Submissions".into(), body: out });
    }
    out.open_table(
        "The newest first",
        &["number", "received", "author", "state", "entry", "why it was refused"],
    );
    for submission in submissions {
        out.open("tr", &[]);
        out.element("th", &[("scope", "row")], &submission.id.to_string());
        out.element("td", &[], &date(submission.received));
        out.element("td", &[], &submission.author);
        out.element("td", &[], submission.state.name());
        out.open("td", &[]);
        if let Some(entry) = &submission.entry {
            link(links, &Route::Run(entry.clone()), entry, &mut out);
        }
        out.close("td");
        out.open("td", &[]);
        out.open("ul", &[]);
        submission.reasons.iter().for_each(|reason| out.element("li", &[], reason));
        out.close("ul");
        out.close("td");
        out.close("tr");
    }
    out.close_table();
    Ok(Page { title: "Submissions".into(), body: out })
}
