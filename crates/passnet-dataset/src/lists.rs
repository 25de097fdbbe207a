//! The lists of PassNet: which graphs there are, how they are grouped, and which samples train and which evaluate.
//!
//! ```text
//! graph_lists/hf_fusible_subgraphs_v2.txt               uid<TAB>path, the path below the folder of its kind
//! graph_lists/hf_grouped_fusible_subgraph_uids_v2.txt   the uids of one group a line, with commas between them
//! sample_lists/**/*.txt                                 one sample a line
//! sample_lists/**/*.csv                                 the same as the column `sample_path`
//! *.jsonl                                               tasks of an agent: `sample_dir` of each object
//! ```

use crate::sample::identity::Uid;
use passnet_graph::Diagnostic;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Lines of one list; the largest published one has 25,151.
const MAX_LINES: usize = 10_000_000;
/// The column of a table that names samples.
const COLUMN: &str = "sample_path";
/// The key of an agent's task that names its sample.
const KEY: &str = "sample_dir";
/// What lines of a graph list look like.
const FORMS: &str = "a line is `uid<TAB>path`, or uids with commas between them";
/// The file that makes a folder a sample; lists may name it instead of the folder.
pub const GRAPH_LIST: &str = "graph_list.txt";

/// A line of a graph list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedGraph {
    /// What the published lists call the graph.
    pub uid: Uid,
    /// Where its folder lies.
    pub path: String,
    /// Its line in the list, from 1.
    pub line: usize,
}

/// What a file of `graph_lists` holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GraphIndex {
    /// One graph a line.
    Graphs(Vec<ListedGraph>),
    /// The graphs of one task a line.
    Groups(Vec<Vec<Uid>>),
}

impl GraphIndex {
    /// Tells the two kinds apart by their first line: only graphs have a tab.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self, Diagnostic> {
        let lines = lines(name, bytes)?;
        if lines.first().is_some_and(|(_, line)| line.contains('\t')) {
            return lines
                .iter()
                .map(|line| graph(name, *line))
                .collect::<Result<_, _>>()
                .map(Self::Graphs);
        }
        lines.iter().map(|line| group(name, *line)).collect::<Result<_, _>>().map(Self::Groups)
    }
}

fn graph(name: &str, (line, text): (usize, &str)) -> Result<ListedGraph, Diagnostic> {
    let Some((uid, path)) = text.split_once('\t') else {
        return Err(at(name, line, 1, "expected a uid, a tab and a path").with_hint(FORMS));
    };
    let uid = uid.parse().map_err(|error| {
        at(name, line, 1, format!("`{}`: {error}", uid.escape_debug())).with_hint(FORMS)
    })?;
    let path = path.trim_end();
    if path.is_empty() {
        return Err(at(name, line, text.len() + 1, "the path is missing"));
    }
    Ok(ListedGraph { uid, path: path.to_string(), line })
}

fn group(name: &str, (line, text): (usize, &str)) -> Result<Vec<Uid>, Diagnostic> {
    let mut column = 1;
    let mut uids = Vec::new();
    for part in text.split(',') {
        let uid = part.trim().parse().map_err(|error| {
            at(name, line, column, format!("`{}`: {error}", part.escape_debug())).with_hint(FORMS)
        })?;
        uids.push(uid);
        column += part.chars().count() + 1;
    }
    Ok(uids)
}

/// The uids of a sample's `sample_uids.txt`, in the order of its graphs.
pub fn sample_uids(name: &str, bytes: &[u8]) -> Result<Vec<Uid>, Diagnostic> {
    let lines = lines(name, bytes)?;
    let groups = lines.iter().map(|line| group(name, *line)).collect::<Result<Vec<_>, _>>()?;
    Ok(groups.concat())
}

/// The graphs of a sample's `graph_list.txt`, with their lines; of a line with tabs the last field.
pub fn sample_graphs(name: &str, bytes: &[u8]) -> Result<Vec<(usize, String)>, Diagnostic> {
    let lines = lines(name, bytes)?;
    let last = |text: &str| text.rsplit('\t').next().unwrap_or_default().trim().to_string();
    let graphs: Vec<_> = lines.into_iter().map(|(line, text)| (line, last(text))).collect();
    match graphs.is_empty() {
        false => Ok(graphs),
        true => Err(Diagnostic::file(name, "the list names no graph")),
    }
}

/// A list of samples, of whatever form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleList {
    name: String,
    /// Folders as the list writes them, with their lines.
    pub samples: Vec<(usize, String)>,
}

impl SampleList {
    /// The ending of `name` says which form the list has. An empty list is one, too.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self, Diagnostic> {
        let lines = lines(name, bytes)?;
        let is = |ending: &str| name.to_ascii_lowercase().ends_with(ending);
        let samples = match () {
            () if is(".csv") => table(name, &lines)?,
            () if is(".jsonl") => tasks(name, &lines)?,
            () => lines.into_iter().map(|(line, text)| (line, text.trim().to_string())).collect(),
        };
        let folder = |path: String| match path.strip_suffix(GRAPH_LIST) {
            Some(folder) if folder.is_empty() || folder.ends_with('/') => {
                folder.trim_end_matches('/').to_string()
            }
            _ => path,
        };
        let samples = samples.into_iter().map(|(line, path)| (line, folder(path))).collect();
        Ok(Self { name: name.to_string(), samples })
    }

    /// The folders that the list at `list` means. Published lists name samples from the top of their checkout, so each is
    /// looked for in the list's own folder, in those above it, and in the working folder.
    pub fn folders(&self, list: &Path) -> Result<Vec<PathBuf>, Diagnostic> {
        let full = std::fs::canonicalize(list).unwrap_or_else(|_| list.to_path_buf());
        let bases: Vec<&Path> = full.ancestors().skip(1).chain([Path::new("")]).collect();
        let mut folders = Vec::with_capacity(self.samples.len());
        for (line, sample) in &self.samples {
            let places = bases.iter().map(|base| base.join(sample));
            let found = places.into_iter().find(|place| place.is_dir());
            folders.push(found.ok_or_else(|| {
                let message = format!("there is no folder `{}`", sample.escape_debug());
                at(&self.name, *line, 1, message).with_hint(
                    "samples are looked for in the list's folder, in the folders above it and in the working folder",
                )
            })?);
        }
        if folders.is_empty() {
            return Err(Diagnostic::file(&self.name, "the list names no sample")
                .with_hint("one sample folder a line, or a table with the column `sample_path`"));
        }
        Ok(folders)
    }
}

fn table(name: &str, lines: &[(usize, &str)]) -> Result<Vec<(usize, String)>, Diagnostic> {
    let Some(((first, header), rows)) = lines.split_first() else { return Ok(Vec::new()) };
    let header = fields(name, *first, header)?;
    let column = header.iter().position(|field| field.trim() == COLUMN).ok_or_else(|| {
        at(name, *first, 1, format!("the table has no column `{COLUMN}`"))
            .with_hint("a list of samples has it; a list of graphs is made into samples by `passnet dataset import`")
    })?;
    let row = |(line, text): &(usize, &str)| {
        let fields = fields(name, *line, text)?;
        let path = fields.get(column).filter(|path| !path.trim().is_empty());
        let path = path.ok_or_else(|| at(name, *line, 1, format!("the row has no `{COLUMN}`")))?;
        Ok((*line, path.trim().to_string()))
    };
    rows.iter().map(row).collect()
}

/// The fields of one line of a table. Quoted fields may hold commas, and quotes written twice.
fn fields(name: &str, line: usize, text: &str) -> Result<Vec<String>, Diagnostic> {
    let (mut fields, mut field) = (Vec::new(), String::new());
    let mut quoted_from = None;
    let mut characters = text.trim_end().chars().enumerate().peekable();
    while let Some((place, character)) = characters.next() {
        match character {
            '"' if quoted_from.is_some()
                && characters.peek().is_some_and(|(_, next)| *next == '"') =>
            {
                characters.next();
                field.push('"');
            }
            '"' if quoted_from.is_some() => quoted_from = None,
            '"' if field.is_empty() => quoted_from = Some(place + 1),
            ',' if quoted_from.is_none() => fields.push(std::mem::take(&mut field)),
            other => field.push(other),
        }
    }
    fields.push(field);
    match quoted_from {
        Some(column) => Err(at(name, line, column, "this quote is not closed on its line")),
        None => Ok(fields),
    }
}

fn tasks(name: &str, lines: &[(usize, &str)]) -> Result<Vec<(usize, String)>, Diagnostic> {
    let task = |(line, text): &(usize, &str)| {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| at(name, *line, error.column(), format!("not JSON: {error}")))?;
        let folder = value.get(KEY).and_then(Value::as_str);
        let folder =
            folder.ok_or_else(|| at(name, *line, 1, format!("the task has no `{KEY}`")))?;
        Ok((*line, folder.to_string()))
    };
    lines.iter().map(task).collect()
}

/// The lines that hold something, with their numbers.
fn lines<'a>(name: &str, bytes: &'a [u8]) -> Result<Vec<(usize, &'a str)>, Diagnostic> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
        at(name, line, 1, "the list is not UTF-8")
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line));
    let lines: Vec<(usize, &str)> = lines.filter(|(_, line)| !line.trim().is_empty()).collect();
    match lines.get(MAX_LINES) {
        None => Ok(lines),
        Some((line, _)) => {
            Err(at(name, *line, 1, format!("the list has more than {MAX_LINES} lines")))
        }
    }
}

pub(crate) fn at(name: &str, line: usize, column: usize, message: impl Into<String>) -> Diagnostic {
    Diagnostic { line, column, ..Diagnostic::file(name, message) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "2bb9d13c00eb43ee97d35ab0b89fcc11";
    const B: &str = "7b04d0dae0534ce7a9907c6bf3f74955";

    fn samples(name: &str, text: &str) -> Vec<(usize, String)> {
        SampleList::parse(name, text.as_bytes()).unwrap().samples
    }

    fn shown<T: std::fmt::Debug>(result: Result<T, Diagnostic>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn graphs_and_groups_are_told_apart() {
        let graphs = GraphIndex::parse("g", format!("{A}\tfloat32/9/x\n\n{B}\ty\n").as_bytes());
        let GraphIndex::Graphs(graphs) = graphs.unwrap() else { panic!("no graphs") };
        assert_eq!((graphs[0].uid.to_string(), graphs[0].path.as_str()), (A.into(), "float32/9/x"));
        assert_eq!((graphs[1].line, graphs[1].path.as_str()), (3, "y"));
        let groups = GraphIndex::parse("g", format!("{A},{B}\n{B}\n").as_bytes()).unwrap();
        let uid = |text: &str| text.parse::<Uid>().unwrap();
        assert_eq!(groups, GraphIndex::Groups(vec![vec![uid(A), uid(B)], vec![uid(B)]]));
        assert_eq!(sample_uids("u", format!("{B},{A}").as_bytes()).unwrap(), [uid(B), uid(A)]);
    }

    #[test]
    fn a_bad_line_is_named_with_its_place() {
        let parse = |text: &str| shown(GraphIndex::parse("g.txt", text.as_bytes()));
        assert!(parse(&format!("{A}\tx\nnonsense\n")).starts_with("g.txt:2:1: expected a uid"));
        assert!(parse(&format!("{A}\tx\nabc\ty\n")).starts_with("g.txt:2:1: `abc`: a uid has 32"));
        assert!(parse(&format!("{A},zz\n")).starts_with("g.txt:1:34: `zz`"));
        assert!(
            shown(GraphIndex::parse("g.txt", b"\xff")).starts_with("g.txt:1:1: the list is not")
        );
    }

    #[test]
    fn samples_are_read_from_every_form() {
        let both = vec![(1, "samples/a".to_string()), (3, "samples/b".to_string())];
        assert_eq!(samples("l.txt", "samples/a\r\n\nsamples/b/graph_list.txt\n"), both);
        let rows = vec![(2, "samples/a".to_string()), (3, "samples/b, \"c\"".to_string())];
        assert_eq!(
            samples("l.csv", "id,sample_path\n0,samples/a\n1,\"samples/b, \"\"c\"\"\"\n"),
            rows
        );
        let line = r#"{"swe_type": "passnet", "sample_dir": "samples/a"}"#;
        assert_eq!(samples("l.jsonl", line), [(1, "samples/a".to_string())]);
        assert_eq!(samples("l.txt", ""), []);
    }

    #[test]
    fn bad_tables_and_tasks_are_refused() {
        let parse = |name: &str, text: &str| shown(SampleList::parse(name, text.as_bytes()));
        let graphs = parse("l.csv", "sample_id,graph_path\n0,graphs/x\n");
        assert!(graphs.starts_with("l.csv:1:1: the table has no column `sample_path`"), "{graphs}");
        assert!(parse("l.csv", "sample_path\n\"a\n").starts_with("l.csv:2:1: this quote"));
        assert!(parse("l.csv", "id,sample_path\n7\n").starts_with("l.csv:2:1: the row has no"));
        assert!(parse("l.jsonl", "{\"a\": 1}\n").starts_with("l.jsonl:1:1: the task has no"));
        assert!(parse("l.jsonl", "{\n").starts_with("l.jsonl:1:"));
    }

    #[test]
    fn samples_are_found_from_the_top_of_their_checkout() {
        let root = tempfile::tempdir().unwrap();
        let sample = root.path().join("samples/set/a");
        std::fs::create_dir_all(&sample).unwrap();
        std::fs::create_dir_all(root.path().join("sample_lists/eval")).unwrap();
        let list = root.path().join("sample_lists/eval/l.txt");
        std::fs::write(&list, "samples/set/a\n").unwrap();
        let parsed = SampleList::parse("l.txt", b"samples/set/a\n").unwrap();
        assert_eq!(parsed.folders(&list).unwrap(), [sample.canonicalize().unwrap()]);
        let lost = SampleList::parse("l.txt", b"samples/set/a\nsamples/set/b\n").unwrap();
        assert!(
            shown(lost.folders(&list)).starts_with("l.txt:2:1: there is no folder `samples/set/b`")
        );
        let empty = SampleList::parse("l.txt", b"").unwrap();
        assert!(shown(empty.folders(&list)).starts_with("l.txt: the list names no sample"));
    }
}
