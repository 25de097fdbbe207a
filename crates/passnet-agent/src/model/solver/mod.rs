//! The solver as a model: its passes in the form of a conversation, so that what it knows can be learned from.
//!
//! It has no memory. What it says next follows from the conversation: the files that the calls so far made, against those of
//! the solution. So an attempt can be stopped anywhere and goes on as any other.

mod mistake;
mod repair;

pub use mistake::Mistake;

use super::{ErrorKind, Model, ModelError, Request, text_calls};
use crate::chat::{Assistant, CHARS_PER_TOKEN, Message, Reply, Stop, ToolCall, Usage};
use crate::evaluator::{Evaluator, Files, Question};
use crate::task::Task;
use crate::tools::{self, Action, Tool};
use crate::workspace::{FOLDER, MANIFEST, Workspace};
use passnet_bench::verdict::VerdictKind;
use passnet_solver::explain::Rates;
use passnet_solver::solve::{EXPLANATION, SolveError, SolveOptions, solve};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Edits of one reply; the loop does not do many more calls.
const MOST_EDITS: usize = 14;
/// Mistakes that are tried before an attempt does without.
const MOST_TRIED: usize = 8;

/// Passes written without a language model, said as one would say them.
#[derive(Debug)]
pub struct SolverModel {
    evaluator: Arc<Evaluator>,
    with_mistakes: bool,
    /// Tokens of one reply, as estimated.
    most_output: Option<u64>,
    /// Operations of one pass.
    most_operations: Option<usize>,
    /// What the device reaches, measured once.
    rates: Arc<OnceLock<Rates>>,
    /// By the folder of the sample.
    known: Mutex<BTreeMap<PathBuf, Arc<Solution>>>,
}

/// What the solver found for a task.
#[derive(Debug)]
struct Solution {
    /// Empty where it found nothing.
    files: Files,
    /// What it is, or why there is none.
    words: String,
}

impl SolverModel {
    /// With mistakes, its first try is wrong in a way that models are.
    pub fn new(evaluator: Arc<Evaluator>, with_mistakes: bool) -> Self {
        let (rates, known) = (Arc::default(), Mutex::default());
        SolverModel {
            evaluator,
            with_mistakes,
            most_output: None,
            most_operations: None,
            rates,
            known,
        }
    }

    /// With as many passes as one reply has room for, of at most so many operations each.
    #[must_use]
    pub fn within(self, most_output: Option<u64>, most_operations: Option<usize>) -> Self {
        SolverModel { most_output, most_operations, ..self }
    }

    fn solution(&self, task: &Arc<Task>) -> Result<Arc<Solution>, String> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = &task.sample.folder;
        if let Some(solution) = known().get(folder) {
            return Ok(solution.clone());
        }
        let (sample, rates) = (task.sample.clone(), self.rates.clone());
        let most_chars = self.most_output.map(|tokens| {
            usize::try_from(tokens).unwrap_or(usize::MAX).saturating_mul(CHARS_PER_TOKEN)
        });
        let most_operations = self.most_operations;
        let solution = self.evaluator.on_device(move |engine| -> Result<Solution, String> {
            let place = tempfile::tempdir().map_err(|error| error.to_string())?;
            // Nothing is measured: whether a pass pays, the evaluation says.
            let options = SolveOptions {
                tune: false,
                most_chars,
                most_operations,
                ..SolveOptions::default()
            };
            let rates = rates.get_or_init(|| Rates::measure(engine));
            match solve(engine, rates, &sample, place.path(), &options) {
                Ok(_) => Solution::read(place.path()).map_err(|error| error.to_string()),
                Err(error @ (SolveError::Io { .. } | SolveError::Machine { .. })) => {
                    Err(error.to_string())
                }
                Err(error) => Ok(Solution { files: Files::new(), words: error.to_string() }),
            }
        })??;
        let solution = Arc::new(solution);
        known().insert(folder.clone(), solution.clone());
        Ok(solution)
    }

    /// The first version to be sent, and what to ask about it: the solution, or one that is wrong as wanted.
    fn first_version(
        &self,
        request: &Request<'_>,
        solution: &Solution,
    ) -> Result<(Files, Question), String> {
        let right = (solution.files.clone(), Question::Evaluate);
        let begins_wrong = self.with_mistakes && begins_wrong(&request.task.id, request.attempt);
        if !begins_wrong || solution.files.len() > MOST_EDITS {
            return Ok(right);
        }
        let seed = seed(&request.task.id, request.attempt);
        let mut tried = 0;
        for mistake in Mistake::in_order(seed) {
            for files in mistake.versions(&solution.files, seed) {
                if tried == MOST_TRIED {
                    return Ok(right);
                }
                tried += 1;
                let ask =
                    |files: &Files, question| self.evaluator.ask(request.task, files, question);
                let found = ask(&files, mistake.question())?;
                let is_shown = match mistake {
                    // Only against the solution itself is a version slow.
                    Mistake::Slow => {
                        let right = ask(&solution.files, Question::Evaluate)?;
                        mistake::is_slower(&found.answer.assessment, &right.answer.assessment)
                    }
                    _ => mistake.shows_in(&found.answer.assessment),
                };
                if is_shown {
                    return Ok((files, mistake.question()));
                }
            }
        }
        Ok(right)
    }

    fn next(
        &self,
        request: &Request<'_>,
    ) -> Result<(String, Vec<(Tool, serde_json::Value)>), String> {
        let solution = self.solution(request.task)?;
        let so_far = SoFar::of(request.messages);
        if solution.files.is_empty() || so_far.is_evaluated && so_far.files == solution.files {
            let words = match solution.files.is_empty() {
                true => solution.words.clone(),
                false => "This is the version that counts.".into(),
            };
            return Ok((words, vec![(Tool::Submit, json!({}))]));
        }
        let (wanted, question, words) = match so_far.files.is_empty() {
            true => {
                let (files, question) = self.first_version(request, &solution)?;
                (files, question, solution.words.clone())
            }
            false => (solution.files.clone(), Question::Evaluate, so_far.lesson()),
        };
        let mut calls = repair::edits(&so_far.files, &wanted);
        let is_whole = calls.len() <= MOST_EDITS;
        calls.truncate(MOST_EDITS);
        if is_whole {
            let tool = match question {
                Question::Match => Tool::Match,
                Question::Check => Tool::Check,
                Question::Evaluate => Tool::Evaluate,
            };
            calls.push((tool, json!({})));
        }
        Ok((words, calls))
    }
}

impl Model for SolverModel {
    fn reply(&self, request: &Request<'_>) -> Result<Reply, ModelError> {
        let next = self.next(request);
        let (words, calls) = next.map_err(|error| ModelError::new(ErrorKind::Malformed, error))?;
        let message = match request.tools.is_empty() {
            true => Assistant { content: in_text(&words, &calls), ..Assistant::default() },
            false => Assistant {
                content: words,
                tool_calls: calls
                    .into_iter()
                    .map(|(tool, arguments)| ToolCall {
                        id: String::new(),
                        name: tool.name().into(),
                        arguments: arguments.to_string(),
                    })
                    .collect(),
                ..Assistant::default()
            },
        };
        let usage = Usage::estimate(request.messages, &message);
        Ok(Reply { message, stop: Stop::ToolCalls, usage })
    }
}

/// Calls as models without a way of their own write them.
fn in_text(words: &str, calls: &[(Tool, serde_json::Value)]) -> String {
    let fences = calls.iter().map(|(tool, arguments)| {
        let call = json!({ "tool": tool.name(), "arguments": arguments });
        format!("\n```json\n{call}\n```")
    });
    format!("{words}{}", fences.collect::<String>())
}

impl Solution {
    fn read(folder: &Path) -> std::io::Result<Solution> {
        let mut files = Files::new();
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name != EXPLANATION {
                files.insert(name, std::fs::read_to_string(entry.path())?);
            }
        }
        let told = files.iter().filter(|(name, _)| *name != MANIFEST);
        let words: Vec<String> = told.filter_map(|(_, text)| first_words(text)).collect();
        Ok(Solution { files, words: words.join("\n") })
    }
}

/// The docstring that a pass begins with, as one paragraph.
fn first_words(text: &str) -> Option<String> {
    let (words, _) = text.strip_prefix("\"\"\"")?.split_once("\"\"\"")?;
    Some(words.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// What the conversation has come to.
struct SoFar {
    files: Files,
    /// Whether these files were evaluated.
    is_evaluated: bool,
    /// What was answered last.
    answer: String,
}

impl SoFar {
    fn of(messages: &[Message]) -> SoFar {
        let mut work = Workspace::default();
        let mut is_evaluated = false;
        let mut answer = String::new();
        for message in messages {
            let reply = match message {
                Message::Assistant(reply) => reply,
                Message::Tool { content, .. } | Message::User { content } => {
                    answer.push_str(content);
                    continue;
                }
                Message::System { .. } => continue,
            };
            answer.clear();
            let in_text = text_calls::find(&reply.content, |name| Tool::from_name(name).is_some());
            for call in reply.tool_calls.iter().chain(&in_text) {
                match tools::action(call) {
                    Ok((_, Action::Edit(edit))) => {
                        is_evaluated = false;
                        // What was refused then is refused now.
                        drop(edit.apply(&mut work));
                    }
                    Ok((Tool::Evaluate, _)) => is_evaluated = true,
                    _ => {}
                }
            }
        }
        SoFar { files: work.files().clone(), is_evaluated, answer }
    }

    /// What is to be learned from the last answer.
    fn lesson(&self) -> String {
        let said = |kind: VerdictKind| self.answer.contains(kind.name());
        let lessons = [
            (VerdictKind::CompileFail, "The file cannot be compiled as it is. I correct the line."),
            (VerdictKind::NoMatch, "The pattern must mirror the graph call by call. I correct it."),
            (
                VerdictKind::DtypeMismatch,
                "The output must have the element type that the graph returns.",
            ),
            (
                VerdictKind::Accuracy,
                "The numbers are wrong. I correct how the kernel computes them.",
            ),
            (VerdictKind::RuntimeFail, "The kernel touches memory that is not its own. I mask it."),
            (VerdictKind::Integrity, "A rule forbids what the text does. I do without it."),
        ];
        let found = lessons.into_iter().find(|(kind, _)| said(*kind));
        let slow = "Right, but slow: programs of this size do too little work. I make them larger.";
        let next = "I write the other files.";
        let is_timed = self.answer.contains("score (AS)");
        found.map_or(if is_timed { slow } else { next }, |(_, lesson)| lesson).to_string()
    }
}

/// Every second attempt at a task, and the first one at about half of the tasks: whole passes are learned from those that
/// begin right, repairs from the others.
fn begins_wrong(task: &str, attempt: u32) -> bool {
    (seed(task, 0) >> 32).wrapping_add(u64::from(attempt)) % 2 == 1
}

/// The same for every try of one attempt, and different for the next.
fn seed(task: &str, attempt: u32) -> u64 {
    let digest = blake3::hash(format!("{attempt} {task}").as_bytes());
    digest.as_bytes()[..8].iter().fold(0, |seed, byte| seed << 8 | u64::from(*byte))
}

/// Where a file of the pass folder lies, as calls name it.
fn path(name: &str) -> String {
    format!("{FOLDER}/{name}")
}
