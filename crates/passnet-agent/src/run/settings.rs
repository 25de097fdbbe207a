//! What a run was begun with, so that it can go on without being told again. Keys are not among it: only the name of the
//! variable that holds one.

use super::folder::write_whole;
use super::{RunError, RunFolder, io};
use crate::budget::Limits;
use crate::model::Prices;
use crate::prompt::{CallStyle, Target};
use crate::task::Portion;
use crate::trajectory::ModelInfo;
use passnet_bench::evaluate::EvaluateOptions;
use passnet_bench::shard::Shard;
use passnet_engine::EngineChoice;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

/// Changes whenever the meaning of a stored field does.
const FORMAT: u32 = 1;
const MAX_BYTES: u64 = 16 << 20;

/// What a run was asked for; stored, so that it can go on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named by the options of `passnet agent run`")]
pub struct Settings {
    pub format: u32,
    pub model: ModelInfo,
    pub key_variable: String,
    #[serde(default)]
    pub allow_http: bool,
    /// The provider wants no key.
    #[serde(default)]
    pub no_key: bool,
    pub calls: CallStyle,
    /// A folder with templates of the user's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<PathBuf>,
    /// What the templates say.
    pub prompt_digest: String,
    /// Sample folders, or folders of them.
    pub tasks: Vec<PathBuf>,
    /// Which of their graphs are worked on.
    #[serde(default, skip_serializing_if = "Portion::is_all")]
    pub portion: Portion,
    /// The part of them that this run is, where it is not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    pub attempts: u32,
    pub jobs: usize,
    pub limits: Limits,
    /// Seconds without a word after which a stream is given up.
    #[serde(default = "default_stall")]
    pub stall_seconds: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// Money for the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_cost: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_per_minute: Option<f64>,
    /// Where evaluations run, as it was asked for.
    #[serde(default)]
    pub engine: EngineChoice,
    /// The same as it was found. Missing in older runs, which are of the native engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    pub evaluate: EvaluateOptions,
    pub rules: bool,
    pub evaluation_seconds: f64,
}

/// What a stream that says nothing is given.
pub const STALL_SECONDS: f64 = 300.0;

fn default_stall() -> f64 {
    STALL_SECONDS
}

/// A run would mix results of different conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    pub(crate) folder: PathBuf,
    pub(crate) what: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: the run there was begun with another {}", self.folder.display(), self.what)
    }
}

impl Settings {
    /// What this version writes.
    pub const FORMAT: u32 = FORMAT;

    /// Those of the run in this folder.
    pub fn read(root: &Path) -> Result<Settings, RunError> {
        let path = RunFolder::reader(root).settings();
        let damaged = |message: String| RunError::Damaged { path: path.clone(), message };
        let size = std::fs::metadata(&path).map_err(io(&path))?.len();
        if size > MAX_BYTES {
            return Err(damaged("too large".into()));
        }
        let bytes = std::fs::read(&path).map_err(io(&path))?;
        let settings: Settings =
            serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        match settings.format == FORMAT {
            true => Ok(settings),
            false => Err(damaged(format!(
                "format {}, but this version reads format {FORMAT}",
                settings.format
            ))),
        }
    }

    /// Refuses conditions that would mix unlike results. A run keeps its model, its prompts, its engine and its way of judging;
    /// numbers of attempts, limits and tasks may change.
    pub fn check(&self, folder: &RunFolder) -> Result<(), RunError> {
        if !folder.settings().exists() {
            return Ok(());
        }
        let before = Settings::read(folder.root())?;
        match self.difference(&before) {
            None => Ok(()),
            Some(what) => {
                let folder = folder.root().to_path_buf();
                Err(RunError::Settings(Mismatch { folder, what }))
            }
        }
    }

    /// Stores the settings, where they may go on with what is there.
    pub fn write(&self, folder: &RunFolder) -> Result<(), RunError> {
        self.check(folder)?;
        let path = folder.settings();
        let json = serde_json::to_vec_pretty(self).map_err(|error| RunError::Damaged {
            path: path.clone(),
            message: error.to_string(),
        })?;
        write_whole(&path, &json).map_err(io(&path))
    }

    /// The same with paths that mean the same from every directory.
    #[must_use]
    pub fn with_absolute_paths(mut self) -> Settings {
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        self.tasks = self.tasks.into_iter().map(absolute).collect();
        self.prompts = self.prompts.map(absolute);
        self.engine = self.engine.with_absolute_paths();
        self
    }

    /// In what the conditions of two runs differ, where their results must not be mixed.
    pub(super) fn difference(&self, before: &Settings) -> Option<String> {
        let told = self.told_difference(before).map(str::to_string);
        told.or_else(|| self.engine_difference(before))
    }

    /// In what the engine is another one, where its results must not be mixed with the earlier ones.
    fn engine_difference(&self, before: &Settings) -> Option<String> {
        let (now, then) = (self.target.as_ref()?, before.target.as_ref()?);
        let found = then.identity.differences(&now.identity);
        let found = found.into_iter().find(|difference| difference.separates)?;
        Some(format!("{}: {} then, {} now", found.what, found.one, found.two))
    }

    fn told_difference(&self, before: &Settings) -> Option<&'static str> {
        let evaluate = |settings: &Settings| EvaluateOptions {
            // Measured anew each time.
            noise_floor: 0.0,
            ..settings.evaluate.clone()
        };
        [
            (self.model == before.model, "model"),
            (self.calls == before.calls, "way of calling tools"),
            (self.prompt_digest == before.prompt_digest, "set of prompts"),
            (self.portion == before.portion, "portion of the graphs"),
            (
                evaluate(self) == evaluate(before) && self.rules == before.rules,
                "way of judging passes",
            ),
        ]
        .into_iter()
        .find(|(is_same, _)| !is_same)
        .map(|(_, what)| what)
    }
}
