//! What the program carries: the plan runner, and the bundled tasks, passes and exploits. It is unpacked into the cache folder
//! when it is asked for, under the digest of its content, so that two builds never share files.

use crate::cache::cache_folder;
use std::io;
use std::path::{Path, PathBuf};

/// Compressed; empty in a program that was built without it.
const RUNNER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/runner.zst"));
/// Names below `bench/` and contents, in the order of the names.
const MATERIAL: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/material.rs"));

/// The plan runner that was built with this program.
pub fn runner() -> Option<io::Result<PathBuf>> {
    if RUNNER.is_empty() {
        return None;
    }
    let unpack = || {
        let folder = cache_folder().join("runner").join(digest([RUNNER]));
        let path = folder.join("libpassnet_runner.so");
        let bytes = zstd::decode_all(RUNNER)?;
        // A file of this name with other bytes is broken, or somebody's trick.
        if std::fs::read(&path).is_ok_and(|there| there == bytes) {
            return Ok(path);
        }
        write_whole(&path, &bytes)?;
        Ok(path)
    };
    Some(unpack())
}

/// A folder of the bundled material: `tasks`, `passes` or `redteam`. The checkout's own where we stand in one.
pub fn material(part: &str) -> io::Result<PathBuf> {
    let here = Path::new("bench").join(part);
    if here.is_dir() {
        return Ok(here);
    }
    let all = MATERIAL.iter().flat_map(|(name, bytes)| [name.as_bytes(), bytes]);
    let root = cache_folder().join("bundled").join(digest(all));
    for (name, bytes) in MATERIAL {
        let path = root.join(name);
        if !std::fs::read(&path).is_ok_and(|there| there == *bytes) {
            write_whole(&path, bytes)?;
        }
    }
    Ok(root.join(part))
}

fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().to_hex()[..16].to_string()
}

/// Whole or not at all: another process may read it at the same time.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(named)?;
    }
    let mut partial = path.as_os_str().to_os_string();
    partial.push(format!(".{}.partial", std::process::id()));
    let partial = PathBuf::from(partial);
    std::fs::write(&partial, bytes).and_then(|()| std::fs::rename(&partial, path)).map_err(named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use passnet_bench::sample::find;

    #[test]
    fn all_of_the_bundled_material_is_carried() {
        let bench = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench");
        for (name, bytes) in MATERIAL {
            assert_eq!(std::fs::read(bench.join(name)).unwrap(), *bytes, "{name}");
        }
        let carried = |name: &str| MATERIAL.iter().any(|(known, _)| *known == name);
        for folder in find(&[bench.join("tasks")]).unwrap() {
            let name = folder.strip_prefix(&bench).unwrap().join("graph_list.txt");
            assert!(carried(&name.display().to_string()), "{}", name.display());
        }
        assert!(carried("passes/swiglu/swiglu.py"));
        assert!(
            MATERIAL
                .iter()
                .any(|(name, _)| name.starts_with("redteam/") && name.ends_with("case.json"))
        );
    }
}
