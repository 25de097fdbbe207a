//! A solution in few words: as many of its passes as one reply has room for.

use crate::chat::CHARS_PER_TOKEN;
use crate::evaluator::Files;
use crate::workspace::MANIFEST;

/// The passes that replace the most operations, as long as there is room; the shortest alone where there is none for any.
///
/// A small model that learns from long answers learns to write long wrong ones. A part of a solution is right as well: every
/// pass stands for itself.
pub(super) fn fitting(files: &Files, most_tokens: u64) -> Files {
    let most = usize::try_from(most_tokens).unwrap_or(usize::MAX).saturating_mul(CHARS_PER_TOKEN);
    let names = files.get(MANIFEST).and_then(|text| serde_json::from_str::<Vec<String>>(text).ok());
    let passes: Vec<(&String, &String)> =
        files.iter().filter(|(name, _)| *name != MANIFEST).collect();
    let total: usize = passes.iter().map(|(_, text)| text.len()).sum();
    let Some(names) = names.filter(|_| total > most) else { return files.clone() };
    let mut wanted = passes.clone();
    wanted.sort_by_key(|(_, text)| (std::cmp::Reverse(operations(text)), text.len()));
    let mut room = most;
    wanted.retain(|(_, text)| {
        let fits = text.len() <= room;
        room -= if fits { text.len() } else { 0 };
        fits
    });
    if wanted.is_empty() {
        wanted.extend(passes.into_iter().min_by_key(|(_, text)| text.len()));
    }
    let mut brief: Files =
        wanted.into_iter().map(|(name, text)| (name.clone(), text.clone())).collect();
    let told: Vec<&String> =
        names.iter().filter(|name| brief.contains_key(&format!("{name}.py"))).collect();
    brief.insert(MANIFEST.into(), format!("{}\n", serde_json::json!(told)));
    brief
}

/// Operations that a pass of the solver's replaces: the lines of its pattern before it returns.
fn operations(text: &str) -> usize {
    let lines = text.lines().skip_while(|line| !line.starts_with("def pattern("));
    lines.skip(1).take_while(|line| !line.starts_with("    return")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(operations: usize, padding: usize) -> String {
        let calls: String =
            (0..operations).map(|n| format!("    tmp_{n} = torch.relu(x)\n")).collect();
        format!("def pattern(x):\n{calls}    return x\n#{}\n", "-".repeat(padding))
    }

    fn solution() -> Files {
        let files = [("long", pass(5, 1000)), ("middle", pass(3, 40)), ("short", pass(1, 10))];
        let mut files: Files =
            files.into_iter().map(|(name, text)| (format!("{name}.py"), text)).collect();
        files.insert(MANIFEST.into(), "[\"short\", \"long\", \"middle\"]\n".into());
        files
    }

    fn told(most_tokens: u64) -> String {
        let brief = fitting(&solution(), most_tokens);
        let names: Vec<String> = serde_json::from_str(&brief[MANIFEST]).unwrap();
        assert_eq!(names.len() + 1, brief.len());
        names.join(" ")
    }

    #[test]
    fn what_replaces_most_is_told_first_and_the_order_stays() {
        assert_eq!(fitting(&solution(), 10_000), solution());
        assert_eq!(told(320), "short long", "the long one, and what fits beside it");
        assert_eq!(told(200), "short middle", "no room for the long one");
        assert_eq!(told(1), "short", "the shortest where nothing fits");
    }
}
