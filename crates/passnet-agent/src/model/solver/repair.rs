//! From the files that are there to those that should be: the calls that a careful writer would make.

use super::path;
use crate::evaluator::Files;
use crate::tools::Tool;
use crate::workspace::MANIFEST;
use serde_json::{Value, json};

/// New files whole, the list of passes first; others by one replacement each.
pub(super) fn edits(now: &Files, wanted: &Files) -> Vec<(Tool, Value)> {
    let mut names: Vec<&String> = wanted.keys().collect();
    names.sort_by_key(|name| *name != MANIFEST);
    let edit = |name: &String| {
        let text = &wanted[name];
        match now.get(name) {
            Some(before) if before == text => None,
            Some(before) => {
                let (old, new) = replacement(before, text);
                let arguments = json!({ "path": path(name), "old_str": old, "new_str": new });
                Some((Tool::StrReplace, arguments))
            }
            None => Some((Tool::Create, json!({ "path": path(name), "file_text": text }))),
        }
    };
    names.into_iter().filter_map(edit).collect()
}

/// The lines that differ, with as many around them as make the old ones unique in the text.
fn replacement<'a>(before: &'a str, after: &'a str) -> (&'a str, &'a str) {
    let starts = |text: &'a str| -> Vec<usize> {
        let ends = text.char_indices().filter(|(_, c)| *c == '\n').map(|(at, _)| at + 1);
        std::iter::once(0).chain(ends).collect()
    };
    let (old, new) = (starts(before), starts(after));
    let line = |text: &'a str, starts: &[usize], at: usize| -> &'a str {
        &text[starts[at]..starts.get(at + 1).copied().unwrap_or(text.len())]
    };
    let fewer = old.len().min(new.len());
    let head = (0..fewer)
        .take_while(|at| line(before, &old, *at) == line(after, &new, *at))
        .count()
        .min(fewer - 1);
    let tail = (1..=fewer - head)
        .take_while(|back| {
            line(before, &old, old.len() - back) == line(after, &new, new.len() - back)
        })
        .count();
    // Widened on both sides until it occurs once; the whole text does.
    for more in 0..=old.len() {
        let (head, tail) = (head.saturating_sub(more), tail.saturating_sub(more));
        let range = |text: &'a str, starts: &[usize]| -> &'a str {
            let end = starts.get(starts.len() - tail).copied().unwrap_or(text.len());
            &text[starts[head]..end]
        };
        let found = range(before, &old);
        if !found.trim().is_empty() && before.matches(found).count() == 1 {
            return (found, range(after, &new));
        }
    }
    (before, after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replacement_is_unique_and_gives_the_wanted_text() {
        let texts = [
            ("a\nb\nc\n", "a\nx\nc\n"),
            ("a\nb\nc\nb\n", "a\nb\nc\nx\n"),
            ("x = 1\nx = 1\nx = 1\n", "x = 1\nx = 1\n"),
            ("x = 1\nx = 1\n", "x = 1\nx = 1\nx = 1\n"),
            ("one", "two"),
            ("a\nb", "a\nb\n"),
            ("\n\n\na\n", "\n\n\n\na\n"),
        ];
        for (before, after) in texts {
            let (old, new) = replacement(before, after);
            assert_eq!(before.matches(old).count(), 1, "{old:?} in {before:?}");
            assert_eq!(before.replacen(old, new, 1), after);
        }
    }
}
