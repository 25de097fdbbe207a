//! Conversations that were made elsewhere (`--data`): none of them may be about a structure that is evaluated.
//!
//! What a conversation is about is read from the conversation, not from what somebody says of it: its prompt shows the
//! graphs, and their structures are computed again. A conversation whose graphs cannot be read is not learned.

use crate::error::CommandError;
use crate::output::warn;
use passnet_agent::secrets::Redactor;
use passnet_graph::identity::{Digest, identify};
use passnet_graph::read::read_model;
use passnet_graph::syntax::Source;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// How a graph's text begins in a prompt, and how any ends.
const OPENS: &str = "```python\n";
const CLOSES: &str = "\n```";
/// What a text that was too long for its prompt ends with.
const CUT: &str = "\n# … cut;";

/// What became of the conversations.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Count {
    kept: usize,
    /// About a structure of an evaluation task.
    seen: usize,
    /// Without a whole graph in the prompt.
    unknown: usize,
    /// With what looks like a key.
    secret: usize,
}

/// The files that may be learned from, written below `out`.
pub(super) fn checked(
    files: &[PathBuf],
    evaluated: &BTreeSet<Digest>,
    out: &Path,
) -> Result<Vec<PathBuf>, CommandError> {
    let redactor = Redactor::from_environment(None);
    let (mut count, mut written) = (Count::default(), Vec::new());
    for (number, file) in files.iter().enumerate() {
        let text = std::fs::read_to_string(file)
            .map_err(|error| CommandError::input(format!("{}: {error}", file.display())))?;
        let kept = keep(&text, evaluated, &redactor, &mut count).map_err(|(line, why)| {
            CommandError::input(format!("{}:{line}:1: not a conversation: {why}", file.display()))
                .with_hint("`passnet agent export --to openai` writes such files")
        })?;
        let path = out.join(format!("data-{}.jsonl", number + 1));
        std::fs::write(&path, kept)?;
        written.push(std::path::absolute(path)?);
    }
    for (left_out, why) in [
        (count.seen, "are about a structure of an evaluation task"),
        (count.unknown, "show no whole graph in their prompt, so nobody knows what they are about"),
        (count.secret, "hold what looks like a key"),
    ] {
        if left_out > 0 {
            warn(&format!("note: {left_out} conversations {why} and are left out"));
        }
    }
    match count.kept {
        0 => Err(CommandError::input("no conversation is left to learn from").with_hint(
            "prompts must show their graphs as `{{code}}` does, and none that are evaluated",
        )),
        _ => Ok(written),
    }
}

/// The lines that may be learned from; an error is a line's number and what is wrong with it.
fn keep(
    text: &str,
    evaluated: &BTreeSet<Digest>,
    redactor: &Redactor,
    count: &mut Count,
) -> Result<String, (usize, String)> {
    let mut kept = String::new();
    for (number, line) in text.lines().enumerate() {
        let wrong = |why: String| (number + 1, why);
        let conversation: Value =
            serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
        let messages = conversation["messages"].as_array();
        let messages = messages.ok_or_else(|| wrong("`messages` is missing".into()))?;
        let place = match structures(messages) {
            None => &mut count.unknown,
            Some(found) if !found.is_disjoint(evaluated) => &mut count.seen,
            Some(_) if redactor.text(line) != line => &mut count.secret,
            Some(_) => {
                kept.push_str(line);
                kept.push('\n');
                &mut count.kept
            }
        };
        *place += 1;
    }
    Ok(kept)
}

/// The structures of the graphs that a prompt shows; `None` if there is none, or one is not whole.
fn structures(messages: &[Value]) -> Option<BTreeSet<Digest>> {
    let prompt = messages.iter().take_while(|message| message["role"] != "assistant");
    let mut found = BTreeSet::new();
    for text in prompt.filter_map(|message| message["content"].as_str()) {
        for block in text.split(OPENS).skip(1) {
            let block = block.split_once(CLOSES).map_or(block, |(block, _)| block);
            if block.contains(CUT) {
                return None;
            }
            // The example of a pass is no graph.
            if let Ok(graph) = read_model(&Source::new("prompt", block)) {
                found.insert(identify(&graph, &[]).structure);
            }
        }
    }
    (!found.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ADD: &str = "import torch\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, x, y):\n        add = x + y\n        return (add,)";

    fn line(code: &str, said: &str) -> String {
        let prompt = format!("Make it fast.\n```python\n{code}\n```\nGo.");
        json!({ "messages": [{ "role": "user", "content": prompt }, { "role": "assistant", "content": said }] })
            .to_string()
    }

    fn structure(code: &str) -> Digest {
        identify(&read_model(&Source::new("model.py", code)).unwrap(), &[]).structure
    }

    fn count(lines: &[String], evaluated: &[Digest]) -> (Count, String) {
        let mut count = Count::default();
        let evaluated = evaluated.iter().copied().collect();
        let kept = keep(&lines.join("\n"), &evaluated, &Redactor::default(), &mut count).unwrap();
        (count, kept)
    }

    #[test]
    fn what_is_evaluated_is_not_learned_whatever_its_names() {
        let renamed = ADD.replace("add", "total").replace('x', "a");
        let other = ADD.replace("x + y", "x * y");
        let lines = [line(&renamed, "done"), line(&other, "done")];
        let (found, kept) = count(&lines, &[structure(ADD)]);
        assert_eq!(found, Count { kept: 1, seen: 1, ..Count::default() });
        assert_eq!(kept, lines[1].clone() + "\n");
    }

    #[test]
    fn what_nobody_can_compare_and_keys_are_left_out() {
        let cut = format!("{ADD}\n# … cut; `view graphs/0/model.py` shows the rest");
        let key = format!("sk-{}", "a1".repeat(20));
        let lines = [line(&cut, "done"), line("x = (", "done"), line(ADD, &key), line(ADD, "done")];
        // A graph that only the reply shows is not what was asked.
        let said = json!({ "messages": [{ "role": "user", "content": "Hm." },
            { "role": "assistant", "content": format!("```python\n{ADD}\n```") }] });
        let lines: Vec<String> = lines.into_iter().chain([said.to_string()]).collect();
        let (found, _) = count(&lines, &[]);
        assert_eq!(found, Count { kept: 1, unknown: 3, secret: 1, seen: 0 });
    }

    #[test]
    fn lines_that_are_no_conversations_are_named() {
        for (text, line) in [("{", 1), ("{\"messages\": []}\n7", 2), ("{\"messages\": 5}", 1)] {
            let mut count = Count::default();
            let wrong = keep(text, &BTreeSet::new(), &Redactor::default(), &mut count);
            assert_eq!(wrong.unwrap_err().0, line, "{text}");
        }
    }
}
