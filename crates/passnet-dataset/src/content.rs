//! The key of a graph's content, and the rules for its path.

use passnet_graph::GraphFiles;
use std::fmt;

/// The first 128 bits of a BLAKE3 hash: two different contents among 10^9 share one with probability 10^-21.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentKey(pub [u8; 16]);

impl ContentKey {
    /// The key of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self::truncate(blake3::hash(bytes))
    }

    /// The key of a graph's files, whatever its path.
    pub fn of_graph(graph: &GraphFiles) -> Self {
        let mut hasher = blake3::Hasher::new();
        for (name, bytes) in &graph.files {
            hasher.update(name.as_str().as_bytes());
            hasher.update(&[0]);
            hasher.update(&Self::of(bytes).0);
        }
        Self::truncate(hasher.finalize())
    }

    pub(crate) fn truncate(hash: blake3::Hash) -> Self {
        let mut key = [0; 16];
        key.copy_from_slice(&hash.as_bytes()[..16]);
        Self(key)
    }
}

impl fmt::Display for ContentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why `part` cannot be one part of a logical path. Paths end up in line-based lists and in folder names, so what
/// would break either is refused where it enters.
pub fn check_path_part(part: &str) -> Result<(), &'static str> {
    match part {
        "" | "." => Err("has an empty part"),
        ".." => Err("climbs out of its folder with `..`"),
        _ if part.contains(char::is_control) => Err("holds a control character"),
        _ if part.contains('/') => Err("has a `/` inside a part"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use passnet_graph::FileName;

    #[test]
    fn the_content_key_sees_names_and_bytes_but_not_the_path() {
        let a = GraphFiles::new("a").with(FileName::Model, "x").with(FileName::WeightMeta, "y");
        let b = GraphFiles { path: "b".into(), ..a.clone() };
        assert_eq!(ContentKey::of_graph(&a), ContentKey::of_graph(&b));
        let moved = GraphFiles::new("a").with(FileName::Model, "x").with(FileName::InputMeta, "y");
        let swapped =
            GraphFiles::new("a").with(FileName::Model, "y").with(FileName::WeightMeta, "x");
        let empty = a.clone().with(FileName::InputMeta, "");
        for other in [moved, swapped, empty] {
            assert_ne!(ContentKey::of_graph(&a), ContentKey::of_graph(&other));
        }
    }
}
