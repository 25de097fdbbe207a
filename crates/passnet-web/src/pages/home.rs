//! The first page: every ranking with its best runs.

use super::links::Links;
use super::route::Route;
use super::shared::{count, link};
use super::{Page, Pages, board};
use crate::Error;
use crate::store::{EntryState, Filter};
use passnet_bench::report::html::markup::Markup;

/// Runs of a ranking that are shown here.
const BEST: usize = 5;
/// Rankings that are shown with their runs; the rest are only named.
const SHOWN: usize = 12;

pub(super) fn write(pages: &Pages<'_>, links: &Links) -> Result<Page, Error> {
    let mut out = Markup::default();
    out.element("h1", &[], "Leaderboard");
    out.element(
        "p",
        &[],
        "Passes that language models, a solver and people wrote, matched, verified and timed against eager. Each \
         device class and benchmark set has a ranking of its own.",
    );
    let boards = pages.store.boards()?;
    if boards.is_empty() {
        out.element("p", &[], "There are no runs yet.");
        if !pages.is_static {
            submit_hint(&mut out);
        }
    }
    for board in boards.iter().take(SHOWN) {
        out.open("section", &[]);
        out.open("h2", &[]);
        link(links, &Route::Board(board.key.clone()), &board.device, &mut out);
        out.close("h2");
        let entries = usize::try_from(board.entries).unwrap_or(0);
        out.element(
            "p",
            &[("class", "soft")],
            &format!("{}; {}.", board.benchmark_name, count(entries, "run")),
        );
        let filter = Filter { state: Some(EntryState::Listed), limit: BEST, ..Filter::default() };
        let (best, _) = pages.store.entries(board, &filter)?;
        let inductor = pages.store.baseline(board, "inductor")?;
        board::interval_chart(&best, inductor.as_ref(), &mut out);
        out.open("ol", &[]);
        for entry in &best {
            out.open("li", &[]);
            link(links, &Route::Run(entry.id.clone()), &entry.name, &mut out);
            out.text(&format!(
                " by {}: AS {:.3}, {} right",
                entry.author,
                entry.score,
                super::shared::percent(entry.correct)
            ));
            out.close("li");
        }
        out.close("ol");
        out.open("p", &[]);
        link(links, &Route::Board(board.key.clone()), "The whole ranking", &mut out);
        out.close("p");
        out.close("section");
    }
    if boards.len() > SHOWN {
        out.element("h2", &[], "More rankings");
        out.open("ul", &[]);
        for board in &boards[SHOWN..] {
            out.open("li", &[]);
            let text = format!("{}: {}", board.device, board.benchmark_name);
            link(links, &Route::Board(board.key.clone()), &text, &mut out);
            out.close("li");
        }
        out.close("ul");
    }
    Ok(Page { title: "Leaderboard".into(), body: out })
}

/// How a run gets to a server.
pub(super) fn submit_hint(out: &mut Markup) {
    out.element("p", &[], "A run gets here as a bundle:");
    out.open("pre", &[]);
    out.element(
        "code",
        &[],
        "passnet bench TASKS --passes PASSES --out RUN\n\
         passnet bundle RUN --out run.bundle --key my.key\n\
         passnet submit run.bundle --to URL",
    );
    out.close("pre");
}
