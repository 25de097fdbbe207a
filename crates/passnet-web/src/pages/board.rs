//! One ranking: one device class, one benchmark set.

use super::links::Links;
use super::route::{Query, Route};
use super::shared::{badges, date, link, optional_ratio, percent};
use super::{Page, Pages, against};
use crate::Error;
use crate::store::{Board, Entry, EntryOrder, EntryState, Filter};
use passnet_bench::report::html::chart::{label, line, number, open};
use passnet_bench::report::html::markup::Markup;
use passnet_bench::report::ratio_text;
use passnet_bench::subject::Subject;

/// Rows of one page of a server.
const ROWS: usize = 100;
/// Runs in the picture.
const DRAWN: usize = 20;

pub(super) fn write(
    pages: &Pages<'_>,
    links: &Links,
    key: &str,
    query: &Query,
) -> Result<Option<Page>, Error> {
    let Some(board) = pages.store.board(key)? else { return Ok(None) };
    let limit = if pages.is_static { 0 } else { ROWS };
    let filter = Filter {
        order: query.order(),
        ascending: query.is_ascending(),
        text: query.get("q").to_string(),
        state: query.state(),
        skip: (query.page() - 1).saturating_mul(limit),
        limit,
    };
    let (entries, all) = pages.store.entries(&board, &filter)?;
    let mut out = Markup::default();
    out.element("h1", &[], &format!("{}: {}", board.device, board.benchmark_name));
    out.element("p", &[("class", "soft")], &format!("{}.", board.conditions));
    let best = Filter { limit: DRAWN, state: Some(EntryState::Listed), ..Filter::default() };
    let (best, _) = pages.store.entries(&board, &best)?;
    let inductor = pages.store.baseline(&board, "inductor")?;
    interval_chart(&best, inductor.as_ref(), &mut out);
    filter_form(pages, query, &mut out);
    let is_whole = entries.len() == all;
    table(&board, &entries, query, links, is_whole, &mut out);
    if !pages.is_static {
        steps(query, all, &mut out);
    }
    against::write(pages, links, &entries, &best, &mut out);
    Ok(Some(Page { title: format!("{}, {}", board.device, board.benchmark_name), body: out }))
}

/// AS with its interval, run by run, with eager and TorchInductor as lines.
pub(super) fn interval_chart(entries: &[Entry], inductor: Option<&Entry>, out: &mut Markup) {
    const WIDTH: f64 = 760.0;
    const RIGHT: f64 = 20.0;
    /// Of a letter, about, and of a score with the room around it.
    const LETTER: f64 = 6.8;
    const SCORE: f64 = 56.0;
    const ROW: f64 = 22.0;
    const TOP: f64 = 24.0;
    if entries.is_empty() {
        return;
    }
    let known = || {
        let ends = entries.iter().flat_map(|entry| [entry.low, entry.high, entry.score]);
        ends.chain(inductor.map(|entry| entry.score)).filter(|end| end.is_finite() && *end > 0.0)
    };
    let low = known().fold(0.8, f64::min).max(1e-3).ln();
    let high = known().fold(1.25, f64::max).min(1e3).ln();
    let names: Vec<String> = entries.iter().map(|entry| shortened(&entry.name, 30)).collect();
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    // Names and scores stand before the picture: on a narrow screen they are seen first.
    let left = LETTER * longest as f64 + SCORE + 8.0;
    let x = |score: f64| {
        let share = (score.clamp(1e-3, 1e3).ln() - low) / (high - low);
        left + share * (WIDTH - left - RIGHT)
    };
    let height = TOP + ROW * entries.len() as f64 + 6.0;
    let told: Vec<String> =
        entries.iter().map(|entry| format!("{} {}", entry.name, ratio_text(entry.score))).collect();
    out.open("figure", &[]);
    open(out, WIDTH, height, "AS of the best runs, with intervals", &told.join("; "));
    line(out, "eager", (x(1.0), TOP - 8.0), (x(1.0), height));
    label(out, "middle", (x(1.0), 11.0), "eager");
    if let Some(entry) = inductor {
        line(out, "baseline", (x(entry.score), TOP - 8.0), (x(entry.score), height));
        let is_close = (x(entry.score) - x(1.0)).abs() < 60.0;
        let (anchor, at) = match (is_close, entry.score < 1.0) {
            (true, true) => ("end", x(1.0) - 24.0),
            (true, false) => ("start", x(1.0) + 24.0),
            (false, _) => ("middle", x(entry.score)),
        };
        label(out, anchor, (at, 11.0), "TorchInductor");
    }
    for (index, entry) in entries.iter().enumerate() {
        let y = TOP + ROW * index as f64 + ROW / 2.0;
        label(out, "end", (left - SCORE, y + 4.0), &names[index]);
        label(out, "end", (left - 12.0, y + 4.0), &ratio_text(entry.score));
        let [from, top, width, tall] =
            [x(entry.low), y - 5.0, (x(entry.high) - x(entry.low)).max(1.0), 10.0].map(number);
        let box_at = [("x", from.as_str()), ("y", &top), ("width", &width), ("height", &tall)];
        out.void("rect", &[&[("class", "interval")], &box_at[..]].concat());
        let (cx, cy) = (number(x(entry.score)), number(y));
        out.void("circle", &[("class", "point"), ("cx", &cx), ("cy", &cy), ("r", "4")]);
    }
    out.close("svg");
    out.element("figcaption", &[], "AS with its 99 % interval; further right is faster.");
    out.close("figure");
}

fn shortened(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most - 1).chain(['…']).collect(),
        false => text.to_string(),
    }
}

fn filter_form(pages: &Pages<'_>, query: &Query, out: &mut Markup) {
    out.open("form", &[("class", "filter"), ("method", "get"), ("role", "search")]);
    out.open("label", &[]);
    out.text("Run or author");
    out.void(
        "input",
        &[
            ("name", "q"),
            ("value", query.get("q")),
            ("data-filters", "ranking"),
            ("type", "search"),
        ],
    );
    out.close("label");
    if !pages.is_static {
        out.open("label", &[]);
        out.text("State");
        out.open("select", &[("name", "state")]);
        for (value, text) in [
            ("", "all"),
            ("listed", "listed"),
            ("withdrawn", "withdrawn"),
            ("superseded", "superseded"),
        ] {
            match value == query.get("state") {
                true => out.element("option", &[("value", value), ("selected", "")], text),
                false => out.element("option", &[("value", value)], text),
            }
        }
        out.close("select");
        out.close("label");
        out.element("button", &[], "Show");
    }
    out.close("form");
}

/// Heads of the columns, the order behind each, and whether its cells are numbers.
const COLUMNS: [(&str, Option<EntryOrder>, bool); 13] = [
    ("rank", None, true),
    ("run", Some(EntryOrder::Name), false),
    ("AS", Some(EntryOrder::Score), true),
    ("99 % interval", None, true),
    ("G-mean", Some(EntryOrder::Mean), true),
    ("correct", Some(EntryOrder::Correct), true),
    ("fast_1", Some(EntryOrder::Fast1), true),
    ("fast_1.5", Some(EntryOrder::Fast15), true),
    ("tokens", Some(EntryOrder::Tokens), true),
    ("cost", Some(EntryOrder::Cost), true),
    ("date", Some(EntryOrder::Date), false),
    ("author", Some(EntryOrder::Author), false),
    ("checked", None, false),
];

fn table(
    board: &Board,
    entries: &[Entry],
    query: &Query,
    links: &Links,
    is_whole: bool,
    out: &mut Markup,
) {
    out.open("div", &[("class", "wide")]);
    let mut attributes = vec![("id", "ranking")];
    if is_whole {
        attributes.push(("data-whole", ""));
    }
    out.open("table", &attributes);
    out.element(
        "caption",
        &[],
        &format!(
            "{} graphs of {} tasks. G-mean: geometric mean speed-up of the right graphs. fast_p: share of graphs that \
             are right and at least p times as fast as eager. Runs that the tasks do not tell from the best of a rank \
             share it.",
            board.graphs, board.tasks
        ),
    );
    heads(query, out);
    out.open("tbody", &[]);
    let by_score = query.order() == EntryOrder::Score && !query.is_ascending();
    let mut is_eager_shown = !by_score || !query.get("q").is_empty();
    let is_first_page = query.page() == 1;
    for (index, entry) in entries.iter().enumerate() {
        let is_here = entry.score < 1.0 && entry.state == EntryState::Listed;
        if !is_eager_shown && is_here && (is_first_page || index > 0) {
            eager(out);
            is_eager_shown = true;
        }
        row(entry, links, out);
    }
    if !is_eager_shown && is_whole {
        eager(out);
    }
    out.close("tbody");
    out.close("table");
    out.close("div");
}

fn heads(query: &Query, out: &mut Markup) {
    out.open("thead", &[]);
    out.open("tr", &[]);
    for (title, order, is_number) in COLUMNS {
        let class = if is_number { "n" } else { "" };
        let mut attributes = vec![("scope", "col"), ("class", class)];
        let is_current = order == Some(query.order());
        if is_current {
            let direction = if query.is_ascending() { "ascending" } else { "descending" };
            attributes.push(("aria-sort", direction));
        }
        out.open("th", &attributes);
        match order {
            None => out.text(title),
            Some(order) => {
                let turn = if is_current && !query.is_ascending() { "up" } else { "" };
                let href = query.with(&[("sort", order.name()), ("direction", turn), ("page", "")]);
                out.element("a", &[("href", &href)], title);
            }
        }
        out.close("th");
    }
    out.close("tr");
    out.close("thead");
}

/// Eager against itself, by definition.
fn eager(out: &mut Markup) {
    out.open("tr", &[("class", "baseline")]);
    out.element("td", &[("class", "n")], "");
    out.element("th", &[("scope", "row")], "eager (by definition)");
    for text in ["1.000", "", "1.000", "100.0 %", "100.0 %", "0.0 %", "", ""] {
        out.element("td", &[("class", "n")], text);
    }
    for _ in 0..3 {
        out.element("td", &[], "");
    }
    out.close("tr");
}

fn row(entry: &Entry, links: &Links, out: &mut Markup) {
    let is_baseline = Subject::is_baseline(entry.compiler.as_str());
    let class = match (entry.state == EntryState::Listed, is_baseline) {
        (false, _) => "gone",
        (true, true) => "baseline",
        (true, false) => "",
    };
    out.open("tr", &[("class", class)]);
    let cell = |text: &str, out: &mut Markup| out.element("td", &[("class", "n")], text);
    out.open("td", &[("class", "n")]);
    against::choice(entry, links, out);
    out.text(&entry.place.map_or(String::new(), |place| format!(" {place}")));
    out.close("td");
    out.open("th", &[("scope", "row")]);
    link(links, &Route::Run(entry.id.clone()), &entry.name, out);
    if is_baseline {
        out.element("span", &[("class", "soft")], &format!(" ({})", entry.compiler));
    }
    out.close("th");
    let exact = entry.score.to_string();
    out.element("td", &[("class", "n"), ("data-value", &exact)], &ratio_text(entry.score));
    cell(&format!("{} to {}", ratio_text(entry.low), ratio_text(entry.high)), out);
    cell(&optional_ratio(entry.mean), out);
    cell(&percent(entry.correct), out);
    cell(&percent(entry.fast_1), out);
    cell(&percent(entry.fast_15), out);
    cell(&entry.tokens.map_or(String::new(), |tokens| tokens.to_string()), out);
    cell(&entry.cost.map_or(String::new(), |cost| format!("{cost:.2} $")), out);
    let exact = entry.added.to_string();
    out.element("td", &[("class", "day"), ("data-value", &exact)], &date(entry.added));
    out.element("td", &[], &entry.author);
    out.open("td", &[]);
    badges(entry, links, out);
    out.close("td");
    out.close("tr");
}

/// From one page of a long ranking to the next.
fn steps(query: &Query, all: usize, out: &mut Markup) {
    let last = all.div_ceil(ROWS).max(1);
    if last == 1 {
        return;
    }
    let page = query.page();
    out.open("nav", &[("aria-label", "Pages of the ranking")]);
    out.open("p", &[]);
    if page > 1 {
        let before = (page - 1).to_string();
        out.element("a", &[("href", &query.with(&[("page", &before)])), ("rel", "prev")], "Better");
        out.text(" ");
    }
    out.text(&format!("Page {page} of {last}, {all} runs. "));
    if page < last {
        let after = (page + 1).to_string();
        out.element("a", &[("href", &query.with(&[("page", &after)])), ("rel", "next")], "Next");
    }
    out.close("p");
    out.close("nav");
}
