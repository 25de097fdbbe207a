//! Pages: HTML written from the store, the same for a server and for files on a disk.
//!
//! Everything shown is foreign text. [`Markup`] takes markup only from this program's source and escapes the rest; a
//! policy in every page allows its own style and script and nothing else. Every page works without its script.

mod against;
mod attempt;
mod attempts;
mod board;
mod compare;
mod corpus;
mod drawing;
mod graph_table;
mod home;
mod links;
mod matrix;
mod pass;
mod plots;
mod reference;
mod route;
mod run;
mod shared;
mod shelves;
mod submissions;
mod task;

pub use attempts::attempts;
pub(crate) use graph_table::ROWS as CORPUS_ROWS;
pub use links::Links;
pub(crate) use matrix::{compared, matrix_route};
pub(crate) use pass::inspected;
pub(crate) use reference::published;
pub(crate) use route::MAX_RUNS;
pub(crate) use route::shelf_route;
pub use route::{Query, Route};
pub(crate) use shared::run_of;
pub(crate) use shelves::searched;

use crate::Error;
use crate::store::Store;
use crate::tasks::TaskIndex;
use passnet_bench::report::html::markup::Markup;
use passnet_bench::report::html::{STYLE, document};
use sha2::{Digest, Sha256};
use std::sync::OnceLock;

const SCRIPT: &str = include_str!("script.js");

/// What pages are written from.
#[derive(Debug, Clone, Copy)]
pub struct Pages<'a> {
    /// All that pages say comes from it.
    pub store: &'a Store,
    /// The tasks of this site, where it has them: types and plans need whole graphs.
    pub tasks: Option<&'a TaskIndex>,
    /// Whether the pages are files: nobody answers questions then, and a page shows all rows.
    pub is_static: bool,
}

/// What is written of one page.
struct Page {
    title: String,
    body: Markup,
}

impl Pages<'_> {
    /// A page, or `None` where there is none at this address.
    pub fn write(&self, route: &Route, query: &Query) -> Result<Option<String>, Error> {
        let links = Links::new(route, self.is_static);
        let page = match route {
            Route::Home => Some(home::write(self, &links)?),
            Route::Board(key) => board::write(self, &links, key, query)?,
            Route::Run(id) => run::write(self, &links, id)?,
            Route::Task(id, task) => task::write(self, &links, id, *task)?,
            Route::Pass(id, task) => pass::write(self, &links, id, *task)?,
            Route::Attempt(id, attempt) => attempt::write(self, &links, id, *attempt)?,
            Route::Compare(one, two) => compare::write(self, &links, one, two)?,
            Route::Matrix(ids, page) => matrix::write(self, &links, ids, *page)?,
            Route::Dataset => Some(corpus::write(self, &links, query, query.page())?),
            Route::DatasetPage(page) => Some(corpus::write(self, &links, query, *page)?),
            Route::Shelves(shelf) => Some(shelves::write(self, &links, *shelf, query)?),
            Route::Shelf(shelf, slug, page) => {
                let page = if self.is_static { *page } else { query.page() };
                shelves::write_one(self, &links, (*shelf, slug), query, page)?
            }
            Route::Graph(number) => corpus::write_graph(self, &links, *number)?,
            Route::Reference => Some(reference::write(&links)),
            Route::Submissions => Some(submissions::write(self, &links)?),
        };
        Ok(page.map(|page| self.frame(route, &links, page)))
    }

    /// A page that only says something, for addresses where nothing is.
    pub fn message(&self, title: &str, text: &str) -> String {
        let mut body = Markup::default();
        body.element("h1", &[], title);
        body.element("p", &[], text);
        let page = Page { title: title.to_string(), body };
        self.frame(&Route::Home, &Links::absolute(), page)
    }

    fn frame(&self, route: &Route, links: &Links, page: Page) -> String {
        let title = format!("{} · PassNet", page.title);
        document(&title, policy(), SCRIPT, |out| {
            out.open("a", &[("class", "skip"), ("href", "#content")]);
            out.text("To the content");
            out.close("a");
            self.navigation(route, links, out);
            out.open("main", &[("id", "content")]);
            out.append(page.body);
            out.close("main");
            out.open("footer", &[]);
            out.element(
                "p",
                &[],
                "AS is the aggregated speed-up over eager: 1 is as fast as eager, failures count 0.1. Intervals hold \
                 with 99 % confidence. Unlike devices, versions and depths of checking are never in one ranking.",
            );
            out.close("footer");
        })
    }

    fn navigation(&self, route: &Route, links: &Links, out: &mut Markup) {
        out.open("nav", &[("class", "site"), ("aria-label", "Site")]);
        out.element("strong", &[], "PassNet");
        let mut places = vec![
            ("Leaderboard", Route::Home),
            ("Dataset", Route::Dataset),
            ("Published results of the reference", Route::Reference),
        ];
        if !self.is_static {
            places.push(("Submissions", Route::Submissions));
        }
        for (name, place) in places {
            let href = links.to(&place);
            let mut attributes = vec![("href", href.as_str())];
            if place == *route {
                attributes.push(("aria-current", "page"));
            }
            out.element("a", &attributes, name);
        }
        out.close("nav");
    }
}

/// What a page may load and run: its own style and script, known by their digests, and nothing from anywhere.
pub fn policy() -> &'static str {
    static POLICY: OnceLock<String> = OnceLock::new();
    POLICY.get_or_init(|| {
        let source = |text: &str| format!("'sha256-{}'", base64(&Sha256::digest(text.as_bytes())));
        format!(
            "default-src 'none'; style-src {}; script-src {}; form-action 'self'; base-uri 'none'",
            source(STYLE),
            source(SCRIPT)
        )
    })
}

/// The digits of RFC 4648.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            match digit <= chunk.len() {
                true => text.push(char::from(DIGITS[(bits >> (18 - 6 * digit) & 63) as usize])),
                false => text.push('='),
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        for (text, expected) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(text.as_bytes()), expected);
        }
    }
}
