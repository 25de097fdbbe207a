//! The file itself: a magic line, the manifest, a signature, the blobs.
//!
//! ```text
//! "passnet-bundle-1\n"
//! length of the manifest (u32, little-endian), the manifest
//! 0, or 1 and a public key (32 bytes) and its signature (64 bytes) of the manifest's digest
//! for every blob of the manifest, in its order: length (u32, little-endian), a zstd frame
//! ```

use super::key::{SigningKey, is_signed_by, public_key_text};
use super::manifest::{BlobRef, Manifest};
use crate::Error;
use std::collections::BTreeMap;

const MAGIC: &[u8] = b"passnet-bundle-1\n";
/// Small files, and not much slower than the default.
const LEVEL: i32 = 9;

/// What a bundle may be at the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Of the whole file.
    pub file_bytes: usize,
    /// Of the manifest.
    pub manifest_bytes: usize,
    /// How many there may be.
    pub blobs: usize,
    /// Of one blob, before compression.
    pub blob_bytes: u64,
    /// Of all blobs, before compression.
    pub total_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            file_bytes: 64 << 20,
            manifest_bytes: 8 << 20,
            blobs: 50_000,
            blob_bytes: 128 << 20,
            total_bytes: 256 << 20,
        }
    }
}

/// Who vouches for a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature {
    public_key: [u8; 32],
    signature: [u8; 64],
}

impl Signature {
    /// In hexadecimal digits.
    pub fn public_key(&self) -> String {
        public_key_text(&self.public_key)
    }
}

/// A bundle that was read; its blobs are unpacked when they are asked for.
#[derive(Debug, Clone)]
pub struct Bundle {
    bytes: Vec<u8>,
    /// The list of what is in it.
    pub manifest: Manifest,
    digest: blake3::Hash,
    /// Of the manifest; `None` where nobody signed.
    pub signature: Option<Signature>,
    /// Where the blobs lie, in the order of the manifest.
    places: Vec<std::ops::Range<usize>>,
}

/// What is to become a bundle.
#[derive(Debug, Clone)]
pub struct Draft {
    /// Its list of blobs is made from `blobs`.
    pub manifest: Manifest,
    /// By digest.
    pub blobs: BTreeMap<String, Vec<u8>>,
}

impl Draft {
    /// Adds a blob, and gives its digest.
    pub fn add(&mut self, blob: Vec<u8>) -> String {
        let digest = blake3::hash(&blob).to_hex().to_string();
        self.blobs.insert(digest.clone(), blob);
        digest
    }

    /// The file, signed where a key is given.
    pub fn pack(mut self, key: Option<&SigningKey>) -> Result<Vec<u8>, Error> {
        let blob_ref = |(digest, blob): (&String, &Vec<u8>)| BlobRef {
            digest: digest.clone(),
            size: blob.len() as u64,
        };
        self.manifest.blobs = self.blobs.iter().map(blob_ref).collect();
        let manifest = self.manifest.to_bytes();
        let mut file = MAGIC.to_vec();
        push_length(&mut file, manifest.len())?;
        file.extend(&manifest);
        match key {
            None => file.push(0),
            Some(key) => {
                file.push(1);
                file.extend(key.public_bytes());
                file.extend(key.sign(&blake3::hash(&manifest)));
            }
        }
        for blob in self.blobs.values() {
            let packed = zstd::bulk::compress(blob, LEVEL)
                .map_err(|error| Error::input(format!("a blob cannot be packed: {error}")))?;
            push_length(&mut file, packed.len())?;
            file.extend(packed);
        }
        Ok(file)
    }
}

fn push_length(file: &mut Vec<u8>, length: usize) -> Result<(), Error> {
    let length = u32::try_from(length)
        .map_err(|_| Error::input("a part of the bundle is larger than 4 GiB"))?;
    file.extend(length.to_le_bytes());
    Ok(())
}

/// What is left of a file that is being read.
struct Rest<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Rest<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| Error::input("the bundle ends too early"))?;
        let found = &self.bytes[self.at..end];
        self.at = end;
        Ok(found)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn length(&mut self) -> Result<usize, Error> {
        Ok(u32::from_le_bytes(self.array()?) as usize)
    }
}

impl Bundle {
    /// Reads a file; nothing is unpacked yet.
    pub fn parse(bytes: Vec<u8>, limits: &Limits) -> Result<Bundle, Error> {
        if bytes.len() > limits.file_bytes {
            return Err(too_large("the bundle", limits.file_bytes as u64));
        }
        let mut rest = Rest { bytes: &bytes, at: 0 };
        if rest.take(MAGIC.len()).ok() != Some(MAGIC) {
            return Err(Error::input("not a bundle").with_hint("`passnet bundle RUN` makes one"));
        }
        let length = rest.length()?;
        if length > limits.manifest_bytes {
            return Err(too_large("the bundle's manifest", limits.manifest_bytes as u64));
        }
        let text = rest.take(length)?;
        let digest = blake3::hash(text);
        let manifest = Manifest::parse(text)?;
        check_sizes(&manifest, limits)?;
        let signature = match rest.array::<1>()?[0] {
            0 => None,
            1 => Some(Signature { public_key: rest.array()?, signature: rest.array()? }),
            other => return Err(Error::input(format!("the bundle has {other} signatures"))),
        };
        let mut places = Vec::with_capacity(manifest.blobs.len());
        for _ in &manifest.blobs {
            let length = rest.length()?;
            rest.take(length)?;
            places.push(rest.at - length..rest.at);
        }
        if rest.at != bytes.len() {
            return Err(Error::input(format!(
                "the bundle ends, and {} bytes follow",
                bytes.len() - rest.at
            )));
        }
        Ok(Bundle { manifest, digest, signature, places, bytes })
    }

    /// The address of the content.
    pub fn digest(&self) -> String {
        self.digest.to_hex().to_string()
    }

    /// The whole file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether the signature is there and fits the content.
    pub fn check_signature(&self) -> Result<&Signature, Error> {
        let Some(found) = &self.signature else {
            return Err(Error::input("the bundle is not signed")
                .with_hint("`passnet bundle RUN --key KEY` signs it"));
        };
        match is_signed_by(&found.public_key, &self.digest, &found.signature) {
            true => Ok(found),
            false => Err(Error::input("the bundle's signature is not one of its content")),
        }
    }

    /// Whether every blob is what the manifest says; one is unpacked at a time.
    pub fn check_blobs(&self) -> Result<(), Error> {
        self.manifest.blobs.iter().try_for_each(|blob| self.blob(&blob.digest).map(drop))
    }

    /// A blob, unpacked and held against its size and its digest.
    pub fn blob(&self, digest: &str) -> Result<Vec<u8>, Error> {
        let index = self
            .manifest
            .position(digest)
            .ok_or_else(|| Error::input(format!("the bundle has no blob {digest}")))?;
        let refused = |why: &str| Error::input(format!("the bundle's blob {digest} {why}"));
        let size = usize::try_from(self.manifest.blobs[index].size)
            .map_err(|_| refused("is too large for this machine"))?;
        let packed = &self.bytes[self.places[index].clone()];
        // No more than the size it claims is ever written, whatever the frame unpacks to.
        let blob = zstd::bulk::decompress(packed, size)
            .map_err(|error| refused(&format!("does not unpack to its size: {error}")))?;
        match blob.len() == size && *blake3::hash(&blob).to_hex() == *digest {
            true => Ok(blob),
            false => Err(refused("is not what its digest says")),
        }
    }
}

fn check_sizes(manifest: &Manifest, limits: &Limits) -> Result<(), Error> {
    if manifest.blobs.len() > limits.blobs {
        return Err(Error::input(format!(
            "the bundle has {} blobs, more than the limit of {}",
            manifest.blobs.len(),
            limits.blobs
        )));
    }
    if manifest.blobs.iter().any(|blob| blob.size > limits.blob_bytes) {
        return Err(too_large("a blob of the bundle", limits.blob_bytes));
    }
    let total = manifest.blobs.iter().try_fold(0u64, |sum, blob| sum.checked_add(blob.size));
    match total {
        Some(total) if total <= limits.total_bytes => Ok(()),
        _ => Err(too_large("the unpacked bundle", limits.total_bytes)),
    }
}

fn too_large(what: &str, limit: u64) -> Error {
    Error::input(format!("{what} is larger than the limit of {limit} bytes"))
}
