//! What a run was begun with, so that it can go on without being told again. Keys are not among it: only the name of the
//! variable that holds one.

use super::folder::write_whole;
use super::{RunError, RunFolder, io};
use crate::budget::Limits;
use crate::model::Prices;
use crate::prompt::CallStyle;
use crate::trajectory::ModelInfo;
use passnet_bench::evaluate::EvaluateOptions;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

/// Changes whenever the meaning of a stored field does.
const FORMAT: u32 = 1;
const MAX_BYTES: u64 = 16 << 20;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    pub format: u32,
    pub model: ModelInfo,
    pub key_variable: String,
    #[serde(default)]
    pub allow_http: bool,
    pub calls: CallStyle,
    /// A folder with templates of the user's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<PathBuf>,
    /// What the templates say.
    pub prompt_digest: String,
    /// Sample folders, or folders of them.
    pub tasks: Vec<PathBuf>,
    pub attempts: u32,
    pub jobs: usize,
    pub limits: Limits,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// Money for the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_cost: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_per_minute: Option<f64>,
    pub evaluate: EvaluateOptions,
    pub rules: bool,
    pub evaluation_seconds: f64,
}

/// A run would mix results of different conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    pub folder: PathBuf,
    pub what: &'static str,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: the run there was begun with another {}", self.folder.display(), self.what)
    }
}

impl Settings {
    pub const FORMAT: u32 = FORMAT;

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

    /// Stores the settings. A run keeps its model, its prompts and its way of judging; numbers of attempts, limits and
    /// tasks may change.
    pub fn write(&self, folder: &RunFolder) -> Result<(), RunError> {
        let path = folder.settings();
        if path.exists() {
            let before = Settings::read(folder.root())?;
            if let Some(what) = self.difference(&before) {
                let folder = folder.root().to_path_buf();
                return Err(RunError::Settings(Mismatch { folder, what }));
            }
        }
        let json = serde_json::to_vec_pretty(self).map_err(|error| RunError::Damaged {
            path: path.clone(),
            message: error.to_string(),
        })?;
        write_whole(&path, &json).map_err(io(&path))
    }

    fn difference(&self, before: &Settings) -> Option<&'static str> {
        let evaluate = |settings: &Settings| EvaluateOptions {
            // Measured anew each time.
            noise_floor: 0.0,
            ..settings.evaluate.clone()
        };
        [
            (self.model == before.model, "model"),
            (self.calls == before.calls, "way of calling tools"),
            (self.prompt_digest == before.prompt_digest, "set of prompts"),
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
