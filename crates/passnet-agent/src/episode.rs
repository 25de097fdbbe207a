//! One attempt's world: the task, the files, the evaluator, the best version so far.
//!
//! The loop around a model and the environment server both drive this; neither judges anything itself.

use crate::chat::ToolCall;
use crate::evaluator::{Answer, Assessment, Evaluator, Files, Question};
use crate::feedback::feedback;
use crate::task::Task;
use crate::tools::{self, Action, Tool};
use crate::workspace::{Refused, Workspace};
use std::sync::Arc;
use std::time::Instant;

/// A task being worked on.
#[derive(Debug)]
pub struct Episode {
    task: Arc<Task>,
    evaluator: Arc<Evaluator>,
    work: Workspace,
    best: Option<Best>,
    is_submitted: bool,
}

/// The best version so far: the first of those with the highest score.
#[derive(Debug, Clone)]
pub struct Best {
    /// Its AS.
    pub score: f64,
    /// The passes themselves.
    pub files: Files,
    /// Missing after a resume; the attempt's folder has it then.
    pub answer: Option<Arc<Answer>>,
}

/// What a tool answered, in words and as data.
#[derive(Debug, Clone)]
pub struct Observation {
    /// What the model reads.
    pub content: String,
    /// Whether the call was refused.
    pub is_error: bool,
    /// Where the evaluator was asked.
    pub assessment: Option<Assessment>,
    /// Whether this evaluation is the best so far.
    pub is_best: bool,
    /// Without the time in line.
    pub seconds: f64,
    /// Seconds in line for the evaluator.
    pub waited: f64,
}

impl Episode {
    /// With an empty pass folder.
    pub fn new(task: Arc<Task>, evaluator: Arc<Evaluator>) -> Self {
        Episode { task, evaluator, work: Workspace::default(), best: None, is_submitted: false }
    }

    pub(crate) fn task(&self) -> &Arc<Task> {
        &self.task
    }

    /// `None` until an evaluation had a score.
    pub fn best(&self) -> Option<&Best> {
        self.best.as_ref()
    }

    /// As the model has them now.
    pub fn files(&self) -> &Files {
        self.work.files()
    }

    pub(crate) fn is_submitted(&self) -> bool {
        self.is_submitted
    }

    /// Does what a call asks. Mistakes of the model are answers; an error is a mistake of ours.
    pub fn perform(&mut self, call: &ToolCall) -> Result<Observation, String> {
        let started = Instant::now();
        let mut waited = 0.0;
        let mut is_best = false;
        let mut assessment = None;
        let said = match tools::action(call).map(|(_, action)| action) {
            Err(refused) => Err(refused),
            Ok(Action::Edit(edit)) => edit.apply(&mut self.work),
            Ok(Action::View { path, range }) => tools::view(&self.task, &self.work, &path, range),
            Ok(Action::Submit) => {
                self.is_submitted = true;
                Ok(self.farewell())
            }
            Ok(action @ (Action::Match | Action::Check | Action::Evaluate)) => {
                let question = match action {
                    Action::Match => Question::Match,
                    Action::Check => Question::Check,
                    _ => Question::Evaluate,
                };
                let asked = self.evaluator.ask(&self.task, self.work.files(), question)?;
                waited = asked.waited;
                let found = &asked.answer.assessment;
                let before = self.best.as_ref().map(|best| best.score);
                let text = feedback(&self.task, found, before);
                if let Some(score) = found.score
                    && found.earns()
                    && before.is_none_or(|before| score > before)
                {
                    is_best = true;
                    let files = self.work.files().clone();
                    self.best = Some(Best { score, files, answer: Some(asked.answer.clone()) });
                }
                assessment = Some(found.clone());
                Ok(text)
            }
        };
        let (content, is_error) = match said {
            Ok(content) => (content, false),
            Err(Refused(content)) => (content, true),
        };
        let seconds = (started.elapsed().as_secs_f64() - waited).max(0.0);
        Ok(Observation { content, is_error, assessment, is_best, seconds, waited })
    }

    fn farewell(&self) -> String {
        match &self.best {
            Some(best) => format!("submitted; the best score is {:.4}", best.score),
            None => "submitted; nothing was ever evaluated, so there is no score".into(),
        }
    }

    /// Repeats what a recorded call did to the files, without asking the evaluator again.
    pub fn replay(&mut self, call: &ToolCall) {
        match tools::action(call) {
            // An edit that was refused then is refused now.
            Ok((_, Action::Edit(edit))) => drop(edit.apply(&mut self.work)),
            Ok((Tool::Submit, _)) => self.is_submitted = true,
            _ => {}
        }
    }

    /// Restores the best version from the record.
    pub fn restore_best(&mut self, score: f64, files: Files) {
        self.best = Some(Best { score, files, answer: None });
    }
}
