//! What a bundle says about itself.

use super::FORMAT;
use crate::Error;
use serde::{Deserialize, Serialize};

/// Longer names are refused.
pub(super) const MAX_NAME: usize = 200;

/// The list of all that is in a bundle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Of the manifest; another one is refused.
    pub format: u32,
    /// What the author calls the run.
    pub name: String,
    /// Digest of the run's `events.jsonl`.
    pub events: String,
    /// Found again by whoever verifies the bundle.
    pub claims: Claims,
    /// Where a model wrote the passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentSummary>,
    /// Attempts whose trajectories travel along, by task and number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptRef>,
    /// Ascending by digest, each once.
    pub blobs: Vec<BlobRef>,
}

/// What the run is said to have achieved; whoever verifies the bundle finds the numbers again.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// That have results.
    pub tasks: usize,
    /// That have results.
    pub graphs: usize,
    /// Of these, called correct.
    pub correct: usize,
    /// AS.
    #[serde(rename = "as")]
    pub aggregated: f64,
}

/// What a model used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSummary {
    /// Its name.
    pub model: String,
    /// That were attempted.
    pub tasks: usize,
    /// At all tasks together.
    pub attempts: usize,
    /// Replies.
    pub steps: u64,
    /// Of prompts.
    pub input_tokens: u64,
    /// Of replies.
    pub output_tokens: u64,
    /// `None` where no prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Of models and tools, attempts added up.
    pub seconds: f64,
}

/// One attempt's trajectory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttemptRef {
    /// By the name that the run gives it.
    pub task: String,
    /// Counted from 0.
    pub attempt: u32,
    /// Digest of its events.
    pub trajectory: String,
}

/// A file of the bundle, by what is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlobRef {
    /// Of the bytes before compression.
    pub digest: String,
    /// Bytes before compression.
    pub size: u64,
}

impl Manifest {
    /// The one text of this manifest.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Numbers, texts and lists always have a text; a number that is not finite is read back as another manifest.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads the one text of a manifest; any other text of the same content is refused.
    pub fn parse(bytes: &[u8]) -> Result<Manifest, Error> {
        let manifest: Manifest = serde_json::from_slice(bytes)
            .map_err(|error| Error::input(format!("the bundle's manifest: {error}")))?;
        if manifest.format != FORMAT {
            return Err(Error::input(format!(
                "the bundle has format {}, but this version reads format {FORMAT}",
                manifest.format
            )));
        }
        if manifest.to_bytes() != bytes {
            return Err(Error::input("the bundle's manifest is not in its canonical form")
                .with_hint("`passnet bundle` writes it so"));
        }
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), Error> {
        if self.name.is_empty() || self.name.chars().count() > MAX_NAME {
            return Err(Error::input(format!(
                "the bundle's name must have 1 to {MAX_NAME} characters"
            )));
        }
        if !self.blobs.iter().all(|blob| is_digest_text(&blob.digest)) {
            return Err(Error::input("the bundle's manifest names a blob by what is no digest"));
        }
        if !self.blobs.windows(2).all(|pair| pair[0].digest < pair[1].digest) {
            return Err(Error::input(
                "the bundle's blobs are not in the order of their digests, each once",
            ));
        }
        let named = self.attempts.iter().map(|attempt| &attempt.trajectory);
        for digest in named.chain([&self.events]) {
            if !self.has(digest) {
                return Err(Error::input(
                    "the bundle's manifest names a blob that it does not list",
                ));
            }
        }
        Ok(())
    }

    /// Whether a blob is listed.
    pub fn has(&self, digest: &str) -> bool {
        self.position(digest).is_some()
    }

    /// Of a blob in the list.
    pub fn position(&self, digest: &str) -> Option<usize> {
        self.blobs.binary_search_by(|blob| blob.digest.as_str().cmp(digest)).ok()
    }
}

/// Whether a text is the digest of something, in the one way we write it.
pub fn is_digest_text(text: &str) -> bool {
    text.len() == 2 * blake3::OUT_LEN
        && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
