//! A run as it goes on: in a terminal a line for the whole and one for each attempt under way, elsewhere a line for each
//! attempt that ends.

use crate::output::warn;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use passnet_agent::agent::Moved;
use passnet_agent::budget::Spent;
use passnet_agent::run::News;
use passnet_agent::trajectory::End;
use passnet_bench::report::printable;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};

/// Attempts that are shown one by one.
const SHOWN: usize = 12;
/// Characters of a task's name.
const NAME: usize = 24;

/// What is known of a run under way.
#[derive(Debug, Default)]
struct Standing {
    attempts: usize,
    steps: u32,
    ended: usize,
    /// Of attempts that have ended.
    spent: Spent,
    best: BTreeMap<String, f64>,
    under_way: BTreeMap<(String, u32), Row>,
}

/// An attempt under way.
#[derive(Debug, Clone, Default)]
struct Row {
    spent: Spent,
    best: Option<f64>,
    doing: String,
}

impl Standing {
    fn moved(&mut self, task: &str, attempt: u32, moved: &Moved<'_>) {
        let row = Row {
            spent: *moved.spent,
            best: moved.best,
            doing: printable(moved.doing.unwrap_or("model")),
        };
        self.note_best(task, moved.best);
        self.under_way.insert((task.to_string(), attempt), row);
    }

    fn ended(&mut self, task: &str, attempt: u32, end: &End) {
        self.under_way.remove(&(task.to_string(), attempt));
        self.ended += 1;
        add(&mut self.spent, &end.spent);
        self.note_best(task, end.best);
    }

    fn note_best(&mut self, task: &str, score: Option<f64>) {
        if let Some(score) = score {
            let best = self.best.entry(task.to_string()).or_insert(score);
            *best = best.max(score);
        }
    }

    /// The whole first, then attempts under way.
    fn lines(&self) -> Vec<String> {
        let mut all = self.spent;
        self.under_way.values().for_each(|row| add(&mut all, &row.spent));
        let best = self.best.iter().max_by(|a, b| a.1.total_cmp(b.1));
        let best = best.map_or("no score yet".to_string(), |(task, score)| {
            format!("best AS {score:.3} ({})", short(task))
        });
        let mut lines = vec![format!(
            "{} of {} attempts done, {} under way; {} steps, {}; {best}",
            self.ended,
            self.attempts,
            self.under_way.len(),
            all.steps,
            spending(&all),
        )];
        for ((task, attempt), row) in self.under_way.iter().take(SHOWN) {
            let best = row.best.map_or("-".to_string(), |score| format!("{score:.3}"));
            lines.push(format!(
                "  {:NAME$} #{attempt}  step {}/{}  {}  best {best}  {}",
                short(task),
                row.spent.steps,
                self.steps,
                spending(&row.spent),
                row.doing,
            ));
        }
        if let Some(more) = self.under_way.len().checked_sub(SHOWN + 1) {
            lines.push(format!("  and {} more", more + 1));
        }
        lines
    }
}

fn short(task: &str) -> String {
    printable(task).chars().take(NAME).collect()
}

fn add(sum: &mut Spent, more: &Spent) {
    sum.steps += more.steps;
    sum.usage += more.usage;
    sum.cost = match (sum.cost, more.cost) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0.0) + b.unwrap_or(0.0)),
    };
}

fn spending(spent: &Spent) -> String {
    let tokens = tokens(spent.usage.total());
    spent.cost.map_or(format!("{tokens} tokens"), |cost| format!("{tokens} tokens, cost {cost:.4}"))
}

fn tokens(count: u64) -> String {
    match count {
        0..10_000 => count.to_string(),
        10_000..10_000_000 => format!("{} k", count / 1000),
        _ => format!("{} M", count / 1_000_000),
    }
}

/// Draws a run while it goes on.
#[derive(Debug)]
pub(super) struct Live {
    standing: Mutex<Standing>,
    /// Only where a person looks.
    screen: Option<ProgressBar>,
}

impl Live {
    pub(super) fn new(attempts: usize, steps: u32) -> Live {
        let screen = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(ProgressStyle::with_template("{msg}").unwrap_or_else(|_| {
                // The template is ours and has no mistake; without it the usual look does.
                ProgressStyle::default_spinner()
            }));
            bar
        });
        Live { standing: Mutex::new(Standing { attempts, steps, ..Standing::default() }), screen }
    }

    pub(super) fn hear(&self, news: &News<'_>) {
        // A panic while drawing must not take the run down with it.
        let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        match news {
            News::Known { .. } => standing.ended += 1,
            News::Moved { task, attempt, moved } => standing.moved(task, *attempt, moved),
            News::Ended { task, attempt, end } => {
                standing.ended(task, *attempt, end);
                self.say(&last_line(task, *attempt, end));
            }
        }
        if let Some(screen) = &self.screen {
            screen.set_message(standing.lines().join("\n"));
        }
    }

    /// A line that stays.
    fn say(&self, text: &str) {
        match &self.screen {
            Some(screen) => screen.suspend(|| warn(text)),
            None => warn(text),
        }
    }

    pub(super) fn finish(&self) {
        if let Some(screen) = &self.screen {
            screen.finish_and_clear();
        }
    }
}

fn last_line(task: &str, attempt: u32, end: &End) -> String {
    let score = end.best.map_or("no score".to_string(), |score| format!("AS {score:.4}"));
    let detail = if end.detail.is_empty() { String::new() } else { format!(" ({})", end.detail) };
    format!("{task} attempt {attempt}: {}, {score}, {} steps{detail}", end.reason, end.spent.steps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use passnet_agent::budget::EndReason;
    use passnet_agent::chat::Usage;

    fn spent(steps: u32, tokens: u64, cost: f64) -> Spent {
        let usage = Usage { input: tokens, ..Usage::default() };
        Spent { steps, usage, cost: Some(cost), ..Spent::default() }
    }

    #[test]
    fn a_run_is_told_in_lines() {
        let mut standing = Standing { attempts: 3, steps: 50, ..Standing::default() };
        assert_eq!(standing.lines().len(), 1);
        let (one, two) = (spent(7, 45_000, 0.5), spent(2, 900, 0.25));
        standing.moved("swiglu", 0, &Moved { spent: &one, best: Some(1.25), doing: Some("check") });
        standing.moved("geglu", 1, &Moved { spent: &two, best: None, doing: None });
        let lines = standing.lines();
        assert_eq!(
            lines[0],
            "0 of 3 attempts done, 2 under way; 9 steps, 45 k tokens, cost 0.7500; best AS 1.250 (swiglu)"
        );
        assert!(
            lines[1].starts_with("  geglu ") && lines[1].ends_with("best -  model"),
            "{lines:?}"
        );
        assert!(lines[2].contains("#0  step 7/50  45 k tokens, cost 0.5000  best 1.250  check"));
        let end = End {
            reason: EndReason::Submitted,
            detail: String::new(),
            spent: spent(8, 50_000, 0.6),
            best: Some(1.5),
            time: 0.0,
        };
        standing.ended("swiglu", 0, &end);
        let lines = standing.lines();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("1 of 3 attempts done, 1 under way; 10 steps, 50 k tokens"));
        assert!(lines[0].ends_with("best AS 1.500 (swiglu)"), "{lines:?}");
    }

    #[test]
    fn many_attempts_are_counted_and_foreign_names_stay_on_their_line() {
        let mut standing = Standing { attempts: 40, steps: 5, ..Standing::default() };
        let nothing = Spent::default();
        for attempt in 0..SHOWN as u32 + 3 {
            let moved = Moved { spent: &nothing, best: None, doing: Some("a\nb") };
            standing.moved(&format!("task\n{}", "x".repeat(90)), attempt, &moved);
        }
        let lines = standing.lines();
        assert_eq!(lines.len(), 1 + SHOWN + 1);
        assert_eq!(lines.last().unwrap(), "  and 3 more");
        assert!(lines.iter().all(|line| !line.contains('\n') && line.len() < 160), "{lines:?}");
    }
}
