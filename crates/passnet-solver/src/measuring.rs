//! What tuning may cost, and what it found before.

use crate::options::SolveOptions;
use passnet_engine::Engine;
use passnet_graph::GraphFiles;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How pieces of one task are measured.
pub(crate) struct Measuring {
    /// Seconds of timing for one choice.
    pub(crate) seconds: f64,
    /// When no further choice is begun.
    until: Option<Instant>,
    /// The folder of earlier results.
    kept: Option<PathBuf>,
    /// The engine and the device, which times belong to.
    place: String,
}

/// What one choice took in one graph.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Times {
    pub(crate) speedup: f64,
    pub(crate) eager_seconds: f64,
    pub(crate) seconds: f64,
    /// Of a GPU alone, by its own clock.
    pub(crate) device_seconds: Option<f64>,
}

impl Times {
    /// What choices are compared by: the GPU's seconds where it keeps time itself, for a call of a small kernel takes the host
    /// longer than the GPU, whatever its tiles; else the share of eager's time, which was taken in turns with it.
    pub(crate) fn compared(self) -> f64 {
        self.device_seconds.unwrap_or(self.speedup.recip())
    }
}

impl Measuring {
    pub(crate) fn new(engine: &dyn Engine, options: &SolveOptions) -> Measuring {
        // More seconds than a clock can count are no limit.
        let limit = options.tune_seconds.and_then(|limit| Duration::try_from_secs_f64(limit).ok());
        Measuring {
            seconds: options.seconds,
            until: limit.and_then(|limit| Instant::now().checked_add(limit)),
            kept: options.measurements.clone(),
            place: engine.identity().digest(),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// Under which name the times of these passes in this graph are kept.
    pub(crate) fn key(&self, graph: &GraphFiles, passes: &BTreeMap<String, String>) -> String {
        let mut hasher = blake3::Hasher::new();
        let mut add = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        add(self.place.as_bytes());
        add(&self.seconds.to_le_bytes());
        for (name, bytes) in &graph.files {
            add(name.as_str().as_bytes());
            add(bytes);
        }
        for (name, text) in passes {
            add(name.as_bytes());
            add(text.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    /// What an earlier tuning found. A file that holds no times was never written by us, and is not believed.
    pub(crate) fn known(&self, key: &str) -> Option<Times> {
        let text = std::fs::read(self.kept.as_ref()?.join(key)).ok()?;
        let times: Times = serde_json::from_slice(&text).ok()?;
        let all = [times.speedup, times.eager_seconds, times.seconds, times.compared()];
        all.iter().all(|time| time.is_finite() && *time > 0.0).then_some(times)
    }

    /// Keeps times for the next tuning. What cannot be written is measured again then.
    pub(crate) fn keep(&self, key: &str, times: Times) {
        let Some(folder) = &self.kept else { return };
        let draft = folder.join(format!(".{key}.{}", std::process::id()));
        let text = serde_json::to_string(&times).unwrap_or_default();
        let written =
            std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&draft, text)).is_ok();
        if written && std::fs::rename(&draft, folder.join(key)).is_err() {
            let _ = std::fs::remove_file(&draft);
        }
    }
}
