//! Addresses of pages, and the questions that may follow them.

use crate::store::{EntryOrder, EntryState};
use std::collections::BTreeMap;

/// A page.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Route {
    Home,
    Board(String),
    Run(String),
    /// A run's id, and the number of the task in it.
    Task(String, usize),
    Pass(String, usize),
    Attempt(String, usize),
    Compare(String, String),
    /// Graphs of the dataset; on a disk, the first of them.
    Dataset,
    /// More of them on a disk, counted from 2.
    DatasetPage(usize),
    /// A graph of the dataset by its number.
    Graph(usize),
    Reference,
    Submissions,
}

/// Parts of addresses are keys, ids and numbers; none is longer.
const MAX_PART: usize = 64;

impl Route {
    /// The page at a path without its first slash; every page's path ends with one.
    pub fn parse(path: &str) -> Option<Route> {
        let Some(path) = path.strip_suffix('/') else {
            return path.is_empty().then_some(Route::Home);
        };
        let parts: Vec<&str> = path.split('/').collect();
        let is_plain = |part: &&str| {
            let mut bytes = part.bytes();
            !part.is_empty()
                && part.len() <= MAX_PART
                && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        if !parts.iter().all(is_plain) {
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
            ["dataset"] => Route::Dataset,
            ["dataset", "page", page] => Route::DatasetPage(number(page)?),
            ["dataset", "graph", graph] => Route::Graph(number(graph)?),
            ["reference"] => Route::Reference,
            ["submissions"] => Route::Submissions,
            _ => return None,
        })
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
            Route::Dataset => "dataset/".into(),
            Route::DatasetPage(page) => format!("dataset/page/{page}/"),
            Route::Graph(number) => format!("dataset/graph/{number}/"),
            Route::Reference => "reference/".into(),
            Route::Submissions => "submissions/".into(),
        }
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
    pub fn parse(text: &str) -> Query {
        let pairs = text.split('&').take(MAX_PAIRS).filter_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value: String = decoded(value).chars().take(MAX_VALUE).collect();
            KEYS.contains(&key).then(|| (key.to_string(), value))
        });
        Query(pairs.collect())
    }

    pub fn get(&self, key: &str) -> &str {
        self.0.get(key).map_or("", String::as_str)
    }

    /// Counted from 1.
    pub fn page(&self) -> usize {
        self.get("page").parse().unwrap_or(1).clamp(1, 1_000_000)
    }

    pub fn order(&self) -> EntryOrder {
        EntryOrder::parse(self.get("sort")).unwrap_or_default()
    }

    pub fn is_ascending(&self) -> bool {
        self.get("direction") == "up"
    }

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
            Route::Dataset,
            Route::DatasetPage(2),
            Route::Graph(7),
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
        ] {
            assert_eq!(Route::parse(path), None, "{path}");
        }
    }

    #[test]
    fn questions_survive_and_are_cut() {
        let query = Query::parse("q=a%20b%26c&sort=cost&direction=up&page=x&%zz&state=listed");
        assert_eq!(query.get("q"), "a b&c");
        assert_eq!((query.order(), query.page()), (EntryOrder::Cost, 1));
        assert!(query.is_ascending());
        assert_eq!(Query::parse(query.with(&[]).trim_start_matches('?')), query);
        assert!(query.with(&[("q", "")]).find("q=").is_none());
        let long = format!("q={}", "x".repeat(10_000));
        assert_eq!(Query::parse(&long).get("q").len(), MAX_VALUE);
    }
}
