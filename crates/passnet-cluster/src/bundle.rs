//! Folders as bytes, on their way to another machine and back.

use std::io::{Error, Read, Result};
use std::path::{Component, Path};

/// More files than this are no unit's.
const MAX_FILES: usize = 1_000_000;

/// Files by path below a folder; the same files give the same bytes, whenever and wherever they were written.
pub struct Packer {
    tar: tar::Builder<Vec<u8>>,
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packer").finish_non_exhaustive()
    }
}

impl Default for Packer {
    fn default() -> Self {
        Packer { tar: tar::Builder::new(Vec::new()) }
    }
}

impl Packer {
    /// Adds a file below a relative path.
    pub fn file(&mut self, path: &str, bytes: &[u8]) -> Result<()> {
        if !is_inside(Path::new(path)) {
            return Err(Error::other(format!("`{path}` does not lie in its folder")));
        }
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        self.tar.append_data(&mut header, path, bytes)
    }

    /// All files at and below a folder, under `path`, in the order of their names. Links are left out.
    pub fn folder(&mut self, path: &str, folder: &Path) -> Result<()> {
        let mut items = std::fs::read_dir(folder)?.collect::<Result<Vec<_>>>()?;
        items.sort_by_key(std::fs::DirEntry::file_name);
        for item in items {
            let name = item.file_name();
            let name = name.to_str().ok_or_else(|| Error::other("a name that is no text"))?;
            let inside = if path.is_empty() { name.to_string() } else { format!("{path}/{name}") };
            let kind = item.file_type()?;
            if kind.is_dir() {
                self.folder(&inside, &item.path())?;
            } else if kind.is_file() {
                self.file(&inside, &std::fs::read(item.path())?)?;
            }
        }
        Ok(())
    }

    /// The bytes that `unpack` takes.
    pub fn finish(self) -> Result<Vec<u8>> {
        self.tar.into_inner()
    }
}

/// All files of a folder.
pub fn pack(folder: &Path) -> Result<Vec<u8>> {
    let mut packer = Packer::default();
    packer.folder("", folder)?;
    packer.finish()
}

/// Writes the files of a bundle below a folder. Whatever is no plain file inside of it is refused.
pub fn unpack(bundle: &[u8], folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut archive = tar::Archive::new(bundle);
    for (count, entry) in archive.entries()?.enumerate() {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let is_plain = entry.header().entry_type() == tar::EntryType::Regular;
        if !is_plain || !is_inside(&path) || count >= MAX_FILES {
            return Err(Error::other(format!("`{}` is no file of a unit", path.display())));
        }
        let target = folder.join(&path);
        if let Some(above) = target.parent() {
            std::fs::create_dir_all(above)?;
        }
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes)?;
        std::fs::write(&target, bytes)?;
    }
    Ok(())
}

fn is_inside(path: &Path) -> bool {
    let mut parts = path.components();
    path.file_name().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_comes_out_as_it_went_in_and_has_one_digest() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        std::fs::create_dir_all(from.join("b/c")).unwrap();
        std::fs::write(from.join("b/c/long name"), "text").unwrap();
        std::fs::write(from.join("a"), "").unwrap();
        let bytes = pack(&from).unwrap();
        unpack(&bytes, &to).unwrap();
        assert_eq!(std::fs::read(to.join("b/c/long name")).unwrap(), b"text");
        assert_eq!(pack(&to).unwrap(), bytes);
    }

    #[test]
    fn nothing_is_written_outside() {
        let place = tempfile::tempdir().unwrap();
        for path in ["../x", "/x", "a/../../x", ".", ""] {
            assert!(Packer::default().file(path, b"").is_err(), "{path}");
        }
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        tar.append_link(&mut header, "link", "/etc").unwrap();
        let error = unpack(&tar.into_inner().unwrap(), place.path()).unwrap_err();
        assert_eq!(error.to_string(), "`link` is no file of a unit");
        assert!(unpack(b"no archive, but long enough to be looked at", place.path()).is_err());
    }
}
