//! Bundles: a run as one file that can be believed.
//!
//! A bundle holds a manifest and blobs. The manifest names every blob by its digest, so the manifest's own digest, the
//! bundle's address, covers all content; a signature (ed25519) covers that address. There are no paths and no links in
//! it: a blob is found by its digest and nothing else. How the blobs are compressed is not part of the content.

mod envelope;
mod key;
mod make;
mod manifest;
mod passes;
mod verify;

pub use envelope::{Bundle, Draft, Limits, Signature};
pub use key::SigningKey;
pub use make::{MakeOptions, draft_of_run};
pub use manifest::{AgentSummary, AttemptRef, BlobRef, Claims, Manifest, is_digest_text};
pub use passes::{PassFiles, pass_files};
pub(crate) use verify::parse_model;
pub use verify::{Check, Verified, unpack, verify};

/// Changes whenever the meaning of a field does.
pub const FORMAT: u32 = 1;
