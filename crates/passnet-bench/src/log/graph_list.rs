//! The graphs a log should be about, so that those which vanished from it can be counted.

use passnet_graph::Diagnostic;
use std::collections::BTreeMap;

/// The paths of a sample's `graph_list.txt`.
#[derive(Debug, Clone, Default)]
pub struct GraphList {
    paths: Vec<String>,
    by_path: BTreeMap<String, usize>,
}

impl GraphList {
    /// One path a line; of a line with tabs (`uid<TAB>path`) the last field. Repeated paths count once.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self, Diagnostic> {
        let text = std::str::from_utf8(bytes)
            .map_err(|_| Diagnostic::file(name, "the graph list is not UTF-8"))?;
        let mut list = GraphList::default();
        for line in text.lines() {
            let path = line.rsplit('\t').next().unwrap_or_default().trim();
            let key = normalised(path);
            if key.is_empty() || list.by_path.contains_key(&key) {
                continue;
            }
            if list.paths.len() == super::MAX_GRAPHS {
                let text = format!("the graph list has more than {} graphs", super::MAX_GRAPHS);
                return Err(Diagnostic::file(name, text));
            }
            list.by_path.insert(key, list.paths.len());
            list.paths.push(path.to_string());
        }
        if list.paths.is_empty() {
            return Err(Diagnostic::file(name, "the graph list names no graph")
                .with_hint("one path a line, as in a sample's graph_list.txt"));
        }
        Ok(list)
    }

    /// In the order of the list.
    pub fn paths(&self) -> &[String] {
        &self.paths
    }

    /// Which graph of the list a log means: logs put the sample's folder before the listed path.
    pub fn position(&self, logged: &str) -> Option<usize> {
        let logged = normalised(logged);
        let mut rest = logged.as_str();
        loop {
            if let Some(&position) = self.by_path.get(rest) {
                return Some(position);
            }
            rest = rest.split_once('/')?.1;
        }
    }
}

/// Without `.`, `..`, doubled and trailing slashes.
fn normalised(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logged_paths_are_found_by_their_end() {
        let list =
            GraphList::parse("l", b"graphs/a/x\n\n./graphs//b/x/\nuid\tgraphs/c\ngraphs/a/x\n");
        let list = list.unwrap();
        assert_eq!(list.paths(), ["graphs/a/x", "./graphs//b/x/", "graphs/c"]);
        assert_eq!(list.position("/data/sample/graphs/a/x"), Some(0));
        assert_eq!(list.position("sample/../graphs/b/x"), Some(1));
        assert_eq!(list.position("graphs/c/"), Some(2));
        assert_eq!(list.position("othergraphs/c"), None);
        assert_eq!(list.position("x"), None);
        assert!(GraphList::parse("l", b"\n \n").is_err());
        assert!(GraphList::parse("l", b"\xff").is_err());
    }
}
