//! `view`: files with line numbers, and what folders hold.

use crate::task::Task;
use crate::workspace::{FOLDER, Refused, Workspace, plain_name};

/// Characters of one answer; a longer file is shown in parts.
const MAX_CHARS: usize = 10_000;
/// Graphs listed by number before the rest is counted.
const MAX_LISTED: usize = 20;

/// Shows a file of the pass folder or of the task.
pub fn view(
    task: &Task,
    work: &Workspace,
    path: &str,
    range: Option<(usize, usize)>,
) -> Result<String, Refused> {
    let path = path.trim().trim_start_matches("./").trim_end_matches('/');
    match path {
        "" | "." => return Ok(format!("{}\n{}", work.listing(), graphs(task))),
        FOLDER => return Ok(work.listing()),
        "graphs" => return Ok(graphs(task)),
        _ => {}
    }
    if path.starts_with("graphs/") {
        return match task.text(path) {
            Some(text) => Ok(numbered(&text, range)),
            None => Err(Refused(format!("there is no such file; {}", graphs(task)))),
        };
    }
    let name = plain_name(path)?;
    match work.get(&name) {
        Some(text) => Ok(numbered(text, range)),
        None => Err(Refused(format!("there is no {FOLDER}/{name}; {}", work.listing()))),
    }
}

fn graphs(task: &Task) -> String {
    let count = task.graphs.len();
    let last = count.min(MAX_LISTED).saturating_sub(1);
    format!(
        "graphs holds {count} graphs: graphs/0 to graphs/{last}{}, each with model.py and inputs.txt",
        if count > MAX_LISTED { " and on" } else { "" }
    )
}

fn numbered(text: &str, range: Option<(usize, usize)>) -> String {
    let (first, last) = range.unwrap_or((1, usize::MAX));
    let mut out = String::new();
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    for (number, line) in lines.filter(|(number, _)| (first..=last).contains(number)) {
        if out.is_empty() && line.len() > MAX_CHARS {
            let end = (0..=MAX_CHARS).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
            return format!("{number:>5}\t{}… line cut\n", &line[..end]);
        }
        if out.len() + line.len() > MAX_CHARS {
            out.push_str(&format!("… cut before line {number}; use `view_range`\n"));
            break;
        }
        out.push_str(&format!("{number:>5}\t{line}\n"));
    }
    if out.is_empty() { "(no lines)".into() } else { out }
}
