//! The secret of a run: whatever an attacker could use by knowing it is drawn from here.
//!
//! Draws of inputs, places of extreme values, the draw that is watched, contents of timed calls and the order of
//! programs follow from a secret that the system gives when a run begins. Every graph has a secret of its own, from
//! which no other graph's can be computed. It is recorded beside the graph's result, so that the result can be made
//! again, and shown to nobody before.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};

/// Thirty-two bytes that nobody knows beforehand.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Secret([u8; 32]);

impl Secret {
    /// Drawn from the system.
    pub fn random() -> Secret {
        let mut bytes = [0; 32];
        if getrandom::fill(&mut bytes).is_err() {
            // The keys of the standard library's tables come from the system, too.
            for word in bytes.as_chunks_mut::<8>().0 {
                *word = RandomState::new().build_hasher().finish().to_le_bytes();
            }
        }
        Secret(bytes)
    }

    /// The secret of one graph, or of one purpose: without this secret nobody can compute it, and it tells nothing about
    /// this one.
    pub fn of(&self, purpose: &str) -> Secret {
        Secret(*blake3::keyed_hash(&self.0, purpose.as_bytes()).as_bytes())
    }

    /// Numbers for one purpose.
    pub fn dice(&self, purpose: &str) -> Dice {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(purpose.as_bytes());
        Dice { reader: hasher.finalize_xof() }
    }
}

/// A secret is printed only where it is recorded.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl From<Secret> for String {
    fn from(secret: Secret) -> String {
        blake3::Hash::from_bytes(secret.0).to_hex().to_string()
    }
}

impl TryFrom<String> for Secret {
    type Error = String;

    fn try_from(text: String) -> Result<Secret, String> {
        text.parse()
    }
}

impl std::str::FromStr for Secret {
    type Err = String;

    fn from_str(text: &str) -> Result<Secret, String> {
        let hash = blake3::Hash::from_hex(text);
        hash.map(|hash| Secret(*hash.as_bytes()))
            .map_err(|_| "a secret is 64 hexadecimal digits".to_string())
    }
}

/// Numbers that follow from a secret and from nothing else.
pub struct Dice {
    reader: blake3::OutputReader,
}

impl fmt::Debug for Dice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dice")
    }
}

impl Dice {
    /// The next one, any of 64 bits.
    pub fn number(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.reader.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// A number below `end`; 0 where there is none.
    pub fn below(&mut self, end: usize) -> usize {
        // The bias of a 128-bit product is below 2^-60 for every size that fits memory.
        ((u128::from(self.number()) * end as u128) >> 64) as usize
    }

    /// True once in so many times.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times.max(1)) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_differ_and_are_read_back() {
        let secret = Secret::random();
        assert_ne!(secret, Secret::random());
        let text = String::from(secret.clone());
        assert_eq!(text.parse::<Secret>().unwrap(), secret);
        assert!("12".parse::<Secret>().is_err());
        assert_eq!(format!("{secret:?}"), "Secret");
    }

    #[test]
    fn dice_follow_from_secret_and_purpose() {
        let secret = Secret::random();
        let numbers = |secret: &Secret, purpose| {
            let mut dice = secret.dice(purpose);
            [(); 4].map(|()| dice.number())
        };
        assert_eq!(numbers(&secret, "draws"), numbers(&secret, "draws"));
        assert_ne!(numbers(&secret, "draws"), numbers(&secret, "places"));
        assert_ne!(numbers(&secret, "draws"), numbers(&secret.of("a graph"), "draws"));
    }

    #[test]
    fn dice_come_to_every_number_and_to_no_other() {
        let mut dice = Secret::random().dice("test");
        let mut seen = [0; 5];
        (0..2000).for_each(|_| seen[dice.below(5)] += 1);
        assert!(seen.iter().all(|times| *times > 250), "{seen:?}");
        assert_eq!(dice.below(0), 0);
    }
}
