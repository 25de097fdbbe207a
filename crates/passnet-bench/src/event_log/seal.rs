//! Seals of lines: what is changed, taken out or put in is noticed, and named.

use serde::Serialize;

/// What is said of a line whose seal does not hold.
pub const BROKEN: &str = "its seal does not fit: the line was changed, or one before it was changed, taken out or put in";

/// What a sealed line begins with; the digest and [`AFTER_SEAL`] follow.
const SEAL: &str = "{\"seal\":\"";
const AFTER_SEAL: &str = "\",";
const SEAL_DIGITS: usize = 2 * blake3::OUT_LEN;

/// Whether the lines of a file hold together.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Seal {
    /// Lines with a seal that fits.
    pub sealed: usize,
    /// Lines without a seal, before the first that has one: written by a version that knew none.
    pub unsealed: usize,
    /// Numbers of lines that are not what was written.
    pub broken: Vec<usize>,
}

impl Seal {
    /// Whether every line is sealed and holds.
    pub fn is_whole(&self) -> bool {
        self.unsealed == 0 && self.broken.is_empty()
    }

    /// In one word.
    pub fn state(&self) -> &'static str {
        match (self.broken.is_empty(), self.unsealed) {
            (false, _) => "broken",
            (true, 0) => "sealed",
            (true, _) => "unsealed",
        }
    }
}

/// The chain of seals up to some line.
#[derive(Debug, Clone)]
pub(super) struct Chain {
    /// Of all lines so far.
    last: String,
    pub(super) seal: Seal,
}

impl Default for Chain {
    fn default() -> Self {
        Chain { last: "0".repeat(SEAL_DIGITS), seal: Seal::default() }
    }
}

impl Chain {
    /// The seal of the next line, given without one.
    fn next(&self, body: &[u8]) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.last.as_bytes());
        hasher.update(body);
        hasher.finalize().to_hex().to_string()
    }

    /// Seals an event's text.
    pub(super) fn append(&mut self, body: &[u8]) -> Vec<u8> {
        self.last = self.next(body);
        self.seal.sealed += 1;
        let inner = body.strip_prefix(b"{").unwrap_or(body);
        [SEAL.as_bytes(), self.last.as_bytes(), AFTER_SEAL.as_bytes(), inner].concat()
    }

    /// Takes a line that was read, without its end. After one that does not hold the chain goes on from what the line
    /// claims, so that only places where something was done are named.
    pub(super) fn read(&mut self, number: usize, line: &[u8]) {
        match split_seal(line) {
            Some((claimed, body)) => {
                if self.next(&body) != claimed {
                    self.seal.broken.push(number);
                }
                self.seal.sealed += 1;
                self.last = claimed.to_string();
            }
            None => {
                match self.seal.sealed {
                    0 => self.seal.unsealed += 1,
                    // Nobody goes back to an older version in the middle of a file.
                    _ => self.seal.broken.push(number),
                }
                self.last = self.next(line);
            }
        }
    }
}

/// The seal that a line claims, and the line as it was before it was sealed.
fn split_seal(line: &[u8]) -> Option<(&str, Vec<u8>)> {
    let rest = line.strip_prefix(SEAL.as_bytes())?;
    let (claimed, rest) = rest.split_at_checked(SEAL_DIGITS)?;
    let inner = rest.strip_prefix(AFTER_SEAL.as_bytes())?;
    Some((std::str::from_utf8(claimed).ok()?, [b"{", inner].concat()))
}
