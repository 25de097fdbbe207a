//! Addresses of pages, and the questions that may follow them.

use crate::store::{EntryOrder, EntryState, Shelf};
use std::collections::{BTreeMap, BTreeSet};

/// A page.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Route {
    /// All rankings.
    Home,
    /// A ranking, by its key.
    Board(String),
    /// A run, by its id.
    Run(String),
    /// A run's id, and the number of the task in it.
    Task(String, usize),
    /// The passes for a task of a run.
    Pass(String, usize),
    /// An attempt of a run of an agent.
    Attempt(String, usize),
    /// Two runs, by their ids.
    Compare(String, String),
    /// Runs task by task, each held against the first, and the page of their tasks, from 1.
    Matrix(Vec<String>, usize),
    /// Graphs of the dataset; on a disk, the first of them.
    Dataset,
    /// More of them on a disk, counted from 2.
    DatasetPage(usize),
    /// A graph of the dataset by its number.
    Graph(usize),
    /// The operations, tasks or structures of the dataset.
    Shelves(Shelf),
    /// The graphs with one of them, and the page of these on a disk, from 1.
    Shelf(Shelf, String, usize),
    /// What the words and numbers mean.
    Reference,
    /// What was sent, and what became of it.
    Submissions,
}

/// Parts of addresses are keys, ids and numbers; none is longer.
const MAX_PART: usize = 64;
/// Runs side by side: more are neither read nor written in a moment.
pub(crate) const MAX_RUNS: usize = 24;

impl Route {
    /// The page at a path without its first slash; every page's path ends with one.
    pub fn parse(path: &str) -> Option<Route> {
        let Some(path) = path.strip_suffix('/') else {
            return path.is_empty().then_some(Route::Home);
        };
        let parts: Vec<&str> = path.split('/').collect();
        if !parts.iter().all(|part| is_plain(part)) {
            return None;
        }
        let number = |text: &str| text.parse::<usize>().ok();
        Some(match parts.as_slice() {
            ["board", key] => Route::Board((*key).into()),
            ["run", id] => Route::Run((*id).into()),
            ["run", id, "task", task] => Route::Task((*id).into(), number(task)?),
            ["run", id, "task", task, "pass"] => Route::Pass((*id).into(), number(task)?),
            ["run", id, "attempt", attempt] => Route::Attempt((*id).into(), number(attempt)?),
            ["compare", one, two] => Route::Compare((*one).into(), (*two).into()),
            ["matrix", ids @ .., "page", page] => {
                Route::Matrix(several(ids)?, number(page).filter(|page| *page > 1)?)
            }
            ["matrix", ids @ ..] => Route::Matrix(several(ids)?, 1),
            ["dataset"] => Route::Dataset,
            ["dataset", "page", page] => Route::DatasetPage(number(page)?),
            ["dataset", "graph", graph] => Route::Graph(number(graph)?),
            ["dataset", shelves] => Route::Shelves(shelf(shelves.strip_suffix('s')?)?),
            ["dataset", name, slug] => Route::Shelf(shelf(name)?, (*slug).into(), 1),
            ["dataset", name, slug, "page", page] => {
                let page = number(page).filter(|page| *page > 1)?;
                Route::Shelf(shelf(name)?, (*slug).into(), page)
            }
            ["reference"] => Route::Reference,
            ["submissions"] => Route::Submissions,
            _ => return None,
        })
    }

    /// Whether the page is made from a whole bundle: that takes its time.
    pub fn is_heavy(&self) -> bool {
        matches!(
            self,
            Route::Task(..)
                | Route::Pass(..)
                | Route::Attempt(..)
                | Route::Compare(..)
                | Route::Matrix(..)
        )
    }

    /// The questions to which the page has an answer of its own.
    fn keys(&self) -> &'static [&'static str] {
        match self {
            Route::Board(_) => &["direction", "page", "q", "sort", "state"],
            Route::Dataset | Route::Shelves(_) => &["op", "page"],
            Route::Shelf(..) => &["page"],
            _ => &[],
        }
    }

    /// The path without its first slash.
    pub fn path(&self) -> String {
        match self {
            Route::Home => String::new(),
            Route::Board(key) => format!("board/{key}/"),
            Route::Run(id) => format!("run/{id}/"),
            Route::Task(id, task) => format!("run/{id}/task/{task}/"),
            Route::Pass(id, task) => format!("run/{id}/task/{task}/pass/"),
            Route::Attempt(id, attempt) => format!("run/{id}/attempt/{attempt}/"),
            Route::Compare(one, two) => format!("compare/{one}/{two}/"),
            Route::Matrix(ids, 1) => format!("matrix/{}/", ids.join("/")),
            Route::Matrix(ids, page) => format!("matrix/{}/page/{page}/", ids.join("/")),
            Route::Dataset => "dataset/".into(),
            Route::DatasetPage(page) => format!("dataset/page/{page}/"),
            Route::Graph(number) => format!("dataset/graph/{number}/"),
            Route::Shelves(shelf) => format!("dataset/{}s/", shelf.name()),
            Route::Shelf(shelf, slug, 1) => format!("dataset/{}/{slug}/", shelf.name()),
            Route::Shelf(shelf, slug, page) => {
                format!("dataset/{}/{slug}/page/{page}/", shelf.name())
            }
            Route::Reference => "reference/".into(),
            Route::Submissions => "submissions/".into(),
        }
    }
}

/// Two runs or more, each once.
fn several(ids: &[&str]) -> Option<Vec<String>> {
    let known: BTreeSet<&&str> = ids.iter().collect();
    let is_sound = (2..=MAX_RUNS).contains(&ids.len()) && known.len() == ids.len();
    is_sound.then(|| ids.iter().map(ToString::to_string).collect())
}

fn shelf(name: &str) -> Option<Shelf> {
    Shelf::ALL.into_iter().find(|shelf| shelf.name() == name)
}

/// Whether a text can be part of an address and the name of a folder.
fn is_plain(part: &str) -> bool {
    let mut bytes = part.bytes();
    !part.is_empty()
        && part.len() <= MAX_PART
        && !part.starts_with('.')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// What a name becomes in an address that is none for it.
const BY_DIGEST: &str = "x-";

/// The address of the graphs with one name.
pub(crate) fn shelf_route(shelf: Shelf, name: &str) -> Route {
    Route::Shelf(shelf, slug(name), 1)
}

/// A name as part of an address: itself where it can be, otherwise its digest.
pub(super) fn slug(name: &str) -> String {
    match is_plain(name) && !name.starts_with(BY_DIGEST) {
        true => name.to_string(),
        false => format!("{BY_DIGEST}{}", &blake3::hash(name.as_bytes()).to_hex()[..16]),
    }
}

/// What stands behind the question mark; unknown words are passed over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query(BTreeMap<String, String>);

/// What may be asked.
const KEYS: [&str; 9] = ["direction", "one", "op", "page", "q", "replaces", "sort", "state", "two"];
/// More or longer questions are cut.
const MAX_PAIRS: usize = 16;
const MAX_VALUE: usize = 200;

impl Query {
    /// What cannot be read is left out.
    pub fn parse(text: &str) -> Query {
        let pairs = text.split('&').take(MAX_PAIRS).filter_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value: String = decoded(value).chars().take(MAX_VALUE).collect();
            KEYS.contains(&key).then(|| (key.to_string(), value))
        });
        Query(pairs.collect())
    }

    /// Everything that is asked under one word, in order.
    pub fn all(text: &str, key: &str) -> Vec<String> {
        let pairs =
            text.split('&').take(MAX_RUNS + MAX_PAIRS).filter_map(|pair| pair.split_once('='));
        pairs.filter(|(word, _)| *word == key).map(|(_, value)| decoded(value)).collect()
    }

    /// What a page makes a difference for: other questions are the same question.
    #[must_use]
    pub fn for_page(mut self, route: &Route) -> Query {
        self.0.retain(|key, value| route.keys().contains(&key.as_str()) && !value.is_empty());
        self
    }

    /// Empty where it was not given.
    pub fn get(&self, key: &str) -> &str {
        self.0.get(key).map_or("", String::as_str)
    }

    /// Counted from 1.
    pub fn page(&self) -> usize {
        self.get("page").parse().unwrap_or(1).clamp(1, 1_000_000)
    }

    pub(crate) fn order(&self) -> EntryOrder {
        EntryOrder::parse(self.get("sort")).unwrap_or_default()
    }

    pub(crate) fn is_ascending(&self) -> bool {
        self.get("direction") == "up"
    }

    /// Of entries that are wanted.
    pub fn state(&self) -> Option<EntryState> {
        EntryState::ALL.into_iter().find(|state| state.name() == self.get("state"))
    }

    /// The same question with other answers; an empty one is left out.
    pub fn with(&self, changes: &[(&str, &str)]) -> String {
        let mut pairs = self.0.clone();
        for (key, value) in changes {
            pairs.insert((*key).to_string(), (*value).to_string());
        }
        let pairs = pairs.iter().filter(|(_, value)| !value.is_empty());
        let pairs: Vec<String> =
            pairs.map(|(key, value)| format!("{}={}", encoded(key), encoded(value))).collect();
        format!("?{}", pairs.join("&"))
    }
}

fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let hex = bytes.get(at + 1..at + 3).and_then(|pair| std::str::from_utf8(pair).ok());
        match (byte, hex.and_then(|pair| u8::from_str_radix(pair, 16).ok())) {
            (b'%', Some(value)) => {
                out.push(value);
                at += 3;
                continue;
            }
            (b'+', _) => out.push(b' '),
            (other, _) => out.push(other),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

pub(super) fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_found_at_its_path() {
        let id = || "0123456789abcdef".to_string();
        let routes = [
            Route::Home,
            Route::Board("ab-cd".into()),
            Route::Run(id()),
            Route::Task(id(), 3),
            Route::Pass(id(), 3),
            Route::Attempt(id(), 0),
            Route::Compare(id(), id()),
            Route::Matrix(vec!["a".into(), "b".into(), id()], 1),
            Route::Matrix(vec!["a".into(), id()], 3),
            Route::Dataset,
            Route::DatasetPage(2),
            Route::Graph(7),
            Route::Shelves(Shelf::Operation),
            Route::Shelves(Shelf::Structure),
            Route::Shelf(Shelf::Operation, "layer_norm".into(), 1),
            Route::Shelf(Shelf::Operation, "torch.add".into(), 2),
            Route::Shelf(Shelf::Task, slug("<script>"), 1),
            Route::Reference,
            Route::Submissions,
        ];
        for route in routes {
            assert_eq!(Route::parse(&route.path()), Some(route.clone()), "{route:?}");
        }
        for path in [
            "run",
            "run//",
            "run/../",
            "run/%2e/",
            "board/a/b/",
            "run/x/task/-1/",
            "x/",
            "run/a\0/",
            "run/.a/",
            "dataset/operation/../",
            "dataset/operation/a/page/1/",
            "dataset/authors/",
            "dataset/operation/a%2fb/",
            "matrix/",
            "matrix/a/",
            "matrix/a/a/",
            "matrix/a/b/page/1/",
            "matrix/a/page/2/",
            "matrix/a/../b/",
        ] {
            assert_eq!(Route::parse(path), None, "{path}");
        }
    }

    #[test]
    fn every_name_has_an_address_of_its_own() {
        let names = [
            "add",
            "layer_norm",
            "aten.add",
            "..",
            "",
            "a/b",
            "A B",
            "<b>",
            "x-add",
            &"n".repeat(65),
        ];
        let slugs: std::collections::BTreeSet<String> =
            names.iter().map(|name| slug(name)).collect();
        assert_eq!(slugs.len(), names.len());
        for name in names {
            assert!(is_plain(&slug(name)), "{name}");
            // The slug of a slug is another where it stands for something else.
            assert_eq!(slug(&slug(name)) == slug(name), slug(name) == name, "{name}");
        }
        assert_eq!((slug("add").as_str(), slug("aten.add").as_str()), ("add", "aten.add"));
    }

    #[test]
    fn a_page_sees_only_questions_that_it_answers() {
        let asked = || Query::parse("q=a&page=2&sort=&op=relu&two=x");
        let of = |route: &Route| asked().for_page(route).with(&[]);
        assert_eq!(of(&Route::Board("b".into())), "?page=2&q=a");
        assert_eq!(of(&Route::Dataset), "?op=relu&page=2");
        assert_eq!(of(&Route::Run("r".into())), "?");
        assert_eq!(of(&Route::Pass("r".into(), 1)), "?");
    }

    #[test]
    fn questions_survive_and_are_cut() {
        let query = Query::parse("q=a%20b%26c&sort=cost&direction=up&page=x&%zz&state=listed");
        assert_eq!(query.get("q"), "a b&c");
        assert_eq!((query.order(), query.page()), (EntryOrder::Cost, 1));
        assert!(query.is_ascending());
        assert_eq!(Query::parse(query.with(&[]).trim_start_matches('?')), query);
        assert!(query.with(&[("q", "")]).find("q=").is_none());
        assert_eq!(Query::all("run=a&one=b&run=%2f&run", "run"), ["a", "/"]);
        let many: Vec<String> = (0..=MAX_RUNS).map(|run| format!("{run}/")).collect();
        assert_eq!(Route::parse(&format!("matrix/{}", many.concat())), None);
        let long = format!("q={}", "x".repeat(10_000));
        assert_eq!(Query::parse(&long).get("q").len(), MAX_VALUE);
    }
}
