//! Keys that sign bundles.

use crate::Error;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use std::fmt;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::path::Path;

/// What a key file begins with; the seed in hexadecimal digits follows.
const PREFIX: &str = "passnet-key-1 ";
/// No key file is longer.
const MAX_BYTES: u64 = 4096;
/// What is signed begins with this, so that a signature made for something else is none here.
const DOMAIN: &[u8] = b"passnet bundle 1\0";

/// A private key; it is never printed.
pub struct SigningKey(Ed25519KeyPair);

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public_key())
    }
}

impl SigningKey {
    /// Draws a key and writes it to a new file that only its owner may read.
    pub fn create(path: &Path) -> Result<SigningKey, Error> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|error| {
            Error::lacking(format!("the system gives no random numbers: {error}"))
        })?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path).map_err(Error::at(path))?;
        let text = format!("{PREFIX}{}\n", blake3::Hash::from_bytes(seed).to_hex());
        file.write_all(text.as_bytes()).and_then(|()| file.sync_data()).map_err(Error::at(path))?;
        SigningKey::of_seed(&seed)
    }

    /// From a file that `passnet bundle key` wrote.
    pub fn read(path: &Path) -> Result<SigningKey, Error> {
        let mut text = String::new();
        let file = std::fs::File::open(path).map_err(|error| {
            Error::at(path)(error).with_hint("`passnet bundle key FILE` makes a key")
        })?;
        file.take(MAX_BYTES).read_to_string(&mut text).map_err(Error::at(path))?;
        let seed = text
            .strip_prefix(PREFIX)
            .and_then(|hex| blake3::Hash::from_hex(hex.trim_end()).ok())
            .ok_or_else(|| {
                Error::input(format!("{}: not a key", path.display()))
                    .with_hint("`passnet bundle key FILE` makes one")
            })?;
        SigningKey::of_seed(seed.as_bytes())
    }

    fn of_seed(seed: &[u8; 32]) -> Result<SigningKey, Error> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed);
        pair.map(SigningKey).map_err(|error| Error::input(format!("not a key: {error}")))
    }

    /// The part that others verify with, in hexadecimal digits.
    pub fn public_key(&self) -> String {
        public_key_text(&self.public_bytes())
    }

    pub(super) fn public_bytes(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.0.public_key().as_ref());
        bytes
    }

    /// Signs the address of a bundle.
    pub(super) fn sign(&self, digest: &blake3::Hash) -> [u8; 64] {
        let mut bytes = [0; 64];
        bytes.copy_from_slice(self.0.sign(&message(digest)).as_ref());
        bytes
    }
}

pub(super) fn public_key_text(bytes: &[u8; 32]) -> String {
    blake3::Hash::from_bytes(*bytes).to_hex().to_string()
}

pub(super) fn is_signed_by(
    public_key: &[u8; 32],
    digest: &blake3::Hash,
    signature: &[u8; 64],
) -> bool {
    UnparsedPublicKey::new(&ED25519, public_key).verify(&message(digest), signature).is_ok()
}

fn message(digest: &blake3::Hash) -> Vec<u8> {
    [DOMAIN, digest.as_bytes()].concat()
}
