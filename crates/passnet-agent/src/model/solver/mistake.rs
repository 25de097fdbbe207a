//! Right passes made wrong in the ways that models get them wrong.
//!
//! Whether a version is wrong as its name says is not believed but asked: the environment judges it before it is sent.

use crate::evaluator::{Assessment, Files, Question};
use crate::workspace::MANIFEST;
use passnet_bench::verdict::VerdictKind;

/// A slow version takes at least so many times as long as the right one.
const SLOWER: f64 = 1.25;

/// A way to be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// The file cannot be parsed.
    Syntax,
    /// The pattern uses a name that it does not take.
    Name,
    /// The pattern is another one than the graph's.
    NoMatch,
    /// A mask is missing or one too wide.
    Mask,
    /// Sums are folded or rounded in the wrong type, or divided by the wrong number.
    Accumulation,
    /// The output has another element type.
    Dtype,
    /// Right, with blocks far too small.
    Slow,
}

impl Mistake {
    /// Which one is made depends on the task.
    pub const ALL: [Mistake; 7] = [
        Mistake::Syntax,
        Mistake::Name,
        Mistake::NoMatch,
        Mistake::Mask,
        Mistake::Accumulation,
        Mistake::Dtype,
        Mistake::Slow,
    ];

    /// All of them, beginning with the one that the seed says.
    pub(super) fn in_order(seed: u64) -> impl Iterator<Item = Mistake> {
        let count = Mistake::ALL.len();
        let first = (seed % count as u64) as usize;
        Mistake::ALL.into_iter().cycle().skip(first).take(count)
    }

    /// The cheapest question that shows it.
    pub const fn question(self) -> Question {
        match self {
            Mistake::NoMatch => Question::Match,
            // Models that get it wrong believe that they are done.
            Mistake::Name | Mistake::Slow => Question::Evaluate,
            Mistake::Syntax | Mistake::Mask | Mistake::Accumulation | Mistake::Dtype => {
                Question::Check
            }
        }
    }

    /// Whether an answer says what the mistake is named for.
    pub fn shows_in(self, found: &Assessment) -> bool {
        let any = |kind| found.count(kind) > 0;
        let all = |kind| !found.graphs.is_empty() && found.count(kind) == found.graphs.len();
        match self {
            Mistake::Syntax | Mistake::Name => all(VerdictKind::CompileFail),
            Mistake::NoMatch => all(VerdictKind::NoMatch),
            Mistake::Mask => {
                let wrong =
                    [VerdictKind::Accuracy, VerdictKind::RuntimeFail, VerdictKind::Unstable];
                wrong.into_iter().any(any) && !any(VerdictKind::CompileFail)
            }
            Mistake::Accumulation => any(VerdictKind::Accuracy) && !any(VerdictKind::CompileFail),
            Mistake::Dtype => any(VerdictKind::DtypeMismatch),
            Mistake::Slow => all(VerdictKind::Correct),
        }
    }

    /// Wrong versions of right files, those first that the seed says.
    pub fn versions(self, right: &Files, seed: u64) -> Vec<Files> {
        let mut found = Vec::new();
        for (name, text) in right.iter().filter(|(name, _)| *name != MANIFEST) {
            for wrong in self.texts(text) {
                let mut files = right.clone();
                files.insert(name.clone(), wrong);
                found.push(files);
            }
        }
        if !found.is_empty() {
            let first = (seed >> 8) as usize % found.len();
            found.rotate_left(first);
        }
        found
    }

    fn texts(self, text: &str) -> Vec<String> {
        let lines = Lines::of(text);
        match self {
            Mistake::Syntax => lines.changed(|line, _| {
                let is_call = line.contains("tl.load(") || line.contains("tl.store(");
                let cut = is_call.then(|| line.strip_suffix(')')).flatten();
                cut.or_else(|| line.strip_suffix("():").filter(|line| line.starts_with("def ")))
                    .map(str::to_string)
            }),
            Mistake::Name => lines.changed(|line, function| {
                let is_head = function == "pattern" && line.starts_with("def ");
                is_head.then(|| without_last_argument(line)).flatten()
            }),
            Mistake::NoMatch => lines.changed(|line, function| {
                if function != "pattern" {
                    return None;
                }
                match line.trim_start().strip_prefix("return ") {
                    // Only a single value can be called a method of.
                    Some(value) if is_name(value) => Some(format!("{line}.contiguous()")),
                    Some(_) => None,
                    None => without_last_argument(line),
                }
            }),
            Mistake::Mask => lines.changed(|line, _| {
                if line.contains("tl.load(") || line.contains("tl.store(") {
                    return without_argument(line, "mask=");
                }
                if let Some((name, condition)) = line.split_once(" = ")
                    && name.ends_with("inside")
                    && condition.matches(" < ").count() == 1
                {
                    return Some(line.replacen(" < ", " <= ", 1));
                }
                without_where(line)
            }),
            Mistake::Accumulation => lines.changed(|line, _| {
                let is_load = line.contains("tl.load(") && line.ends_with(".to(tl.float32)");
                let plain = is_load.then(|| line.strip_suffix(".to(tl.float32)")).flatten();
                let halved = || {
                    let sum = line.contains("tl.sum(").then(|| line.strip_suffix(')')).flatten()?;
                    Some(format!("{sum}).to(tl.float16).to(tl.float32)"))
                };
                let divided = || {
                    line.contains(" / columns")
                        .then(|| line.replacen(" / columns", " / (columns - 1)", 1))
                };
                divided().or_else(halved).or_else(|| plain.map(str::to_string))
            }),
            Mistake::Dtype => ["torch.float32", "torch.float16"]
                .into_iter()
                .flat_map(|dtype| {
                    lines.changed(|line, _| {
                        let (before, rest) = line.split_once("torch.empty_like(")?;
                        let (value, after) = rest.split_once(')')?;
                        is_name(value).then(|| {
                            format!("{before}torch.empty_like({value}, dtype={dtype}){after}")
                        })
                    })
                })
                .collect(),
            Mistake::Slow => ["4096", "2048", "1024", "512"]
                .into_iter()
                .filter(|size| text.contains(size))
                .map(|size| text.replace(size, "16"))
                .collect(),
        }
    }
}

/// Whether a version that is right takes clearly longer than another.
pub(super) fn is_slower(slow: &Assessment, right: &Assessment) -> bool {
    let both = slow.score.zip(right.score);
    Mistake::Slow.shows_in(slow)
        && right.is_all_correct()
        && both.is_some_and(|(slow, right)| slow * SLOWER <= right)
}

/// The lines of a text, each with the function that it stands in.
struct Lines<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        let mut function = "";
        let line = |line: &'a str| {
            if let Some(rest) = line.strip_prefix("def ") {
                function = rest.split('(').next().unwrap_or("");
            }
            (line, function)
        };
        Lines(text.split('\n').map(line).collect())
    }

    /// A text for each line that can be changed.
    fn changed(&self, change: impl Fn(&str, &str) -> Option<String>) -> Vec<String> {
        let text = |at: usize| {
            let new = change(self.0[at].0, self.0[at].1)?;
            let old = self.0.iter().map(|(line, _)| *line);
            let lines =
                old.enumerate().map(|(place, line)| if place == at { new.as_str() } else { line });
            Some(lines.collect::<Vec<_>>().join("\n"))
        };
        (0..self.0.len()).filter_map(text).collect()
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Where the bracket that opens before `from` closes, and the commas at its level.
fn closing(line: &str, from: usize) -> Option<(Vec<usize>, usize)> {
    let mut depth = 0usize;
    let mut commas = Vec::new();
    for (at, c) in line.char_indices().filter(|(at, _)| *at >= from) {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => return Some((commas, at)),
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => commas.push(at),
            _ => {}
        }
    }
    None
}

/// A call without its last argument.
fn without_last_argument(line: &str) -> Option<String> {
    let open = line.find('(')? + 1;
    let (commas, end) = closing(line, open)?;
    let last = *commas.last()?;
    Some(format!("{}{}", &line[..last], &line[end..]))
}

/// A call without one of its keyword arguments, and without the one that only serves it.
fn without_argument(line: &str, name: &str) -> Option<String> {
    let at = line.find(&format!(", {name}"))?;
    let rest = &line[at + 2..];
    let (commas, end) = closing(rest, 0)?;
    let next = commas.first().copied().unwrap_or(end);
    let after = &rest[next..];
    let after = after.strip_prefix(", other=0.0").unwrap_or(after);
    Some(format!("{}{after}", &line[..at]))
}

/// A choice between values and a filler, without the choice.
fn without_where(line: &str) -> Option<String> {
    let open = "tl.where(";
    let at = line.find(open)?;
    let start = at + open.len();
    let (commas, end) = closing(line, start)?;
    let [first, second] = commas[..] else { return None };
    line[start..first].ends_with("inside").then(|| {
        format!("{}{}{}", &line[..at], line[first + 1..second].trim_start(), &line[end + 1..])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_changed_as_a_model_would_get_them_wrong() {
        let load = "x = tl.load(x_ptr + row * n + f(a, b), mask=inside, other=0.0).to(tl.float32)";
        assert_eq!(
            without_argument(load, "mask=").unwrap(),
            "x = tl.load(x_ptr + row * n + f(a, b)).to(tl.float32)"
        );
        let sum = "s = tl.sum(tl.where(column_inside, c * f(c, 1), 0.0), axis=1)";
        assert_eq!(without_where(sum).unwrap(), "s = tl.sum(c * f(c, 1), axis=1)");
        assert_eq!(without_where("a = tl.where(x < 0, 0.0, x)"), None);
        assert_eq!(
            without_last_argument("    t = torch.nn.functional.softmax(x, dim=-1)").unwrap(),
            "    t = torch.nn.functional.softmax(x)"
        );
        assert_eq!(without_last_argument("    t = x + y"), None);
        let pattern = "def pattern(x, y):\n    return x + y\n\n\ndef replacement_args(x, y):\n    return (x, y)\n";
        let wrong = pattern.replace("pattern(x, y)", "pattern(x)");
        assert_eq!(Mistake::Name.texts(pattern), [wrong]);
        assert_eq!(Mistake::Name.texts("def pattern(x):\n    return x.relu()\n"), [""; 0]);
    }
}
