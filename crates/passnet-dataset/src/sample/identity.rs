//! Names of graphs and tasks, derived from content.
//!
//! A graph's uid is the first half of its content digest; a task's id is a digest of its members' uids. The same
//! graphs therefore make the same tasks, wherever and whenever the dataset is built.

use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;

/// The name of one graph: 128 bits, written as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uid([u8; 16]);

impl Uid {
    /// The uid of the graph with this content digest.
    pub fn from_digest(digest: &[u8; 32]) -> Self {
        let mut half = [0; 16];
        half.copy_from_slice(&digest[..16]);
        Self(half)
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

/// The text is not 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAUid;

impl fmt::Display for NotAUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a uid has 32 hexadecimal digits")
    }
}

impl std::error::Error for NotAUid {}

impl FromStr for Uid {
    type Err = NotAUid;

    fn from_str(text: &str) -> Result<Self, NotAUid> {
        // `from_str_radix` alone would accept a sign.
        if text.len() != 32 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(NotAUid);
        }
        let number = u128::from_str_radix(text, 16).map_err(|_| NotAUid)?;
        Ok(Self(number.to_be_bytes()))
    }
}

/// The name of one task: 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SampleId([u8; 32]);

impl SampleId {
    /// The id of the task with these members, in whatever order they come.
    pub fn of(members: &[Uid]) -> Self {
        let mut uids: Vec<String> = members.iter().map(Uid::to_string).collect();
        uids.sort_unstable();
        Self(Sha256::digest(uids.join("\n")).into())
    }
}

impl fmt::Display for SampleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Debug for SampleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

fn write_hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_task_gets_its_published_id() {
        // `sample_uids.txt` of the task `00/08/00085a8d…` of `hf_subgraphs_v2/fusible_subgraphs`.
        let uids = [
            "2bb9d13c00eb43ee97d35ab0b89fcc11",
            "7b04d0dae0534ce7a9907c6bf3f74955",
            "c4d02f1ef03e495c9bb8a5f0eda78302",
        ]
        .map(|text| text.parse().unwrap());
        let id = SampleId::of(&uids).to_string();
        assert!(id.starts_with("00085a8d"), "{id}");
        assert_eq!(SampleId::of(&[uids[2], uids[0], uids[1]]).to_string(), id);
    }

    #[test]
    fn a_uid_is_the_first_half_of_the_digest() {
        let mut digest = [0; 32];
        digest[0] = 0xab;
        digest[15] = 0x01;
        digest[16] = 0xff;
        let uid = Uid::from_digest(&digest);
        assert_eq!(uid.to_string(), "ab000000000000000000000000000001");
        assert_eq!(uid.to_string().parse(), Ok(uid));
    }

    #[test]
    fn only_hexadecimal_digits_make_a_uid() {
        for text in
            ["", "2bb9", "+bb9d13c00eb43ee97d35ab0b89fcc11", "zbb9d13c00eb43ee97d35ab0b89fcc11"]
        {
            assert_eq!(text.parse::<Uid>(), Err(NotAUid), "{text}");
        }
    }
}
