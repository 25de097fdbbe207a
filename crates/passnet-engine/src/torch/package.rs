//! Python files carried in this binary and laid out where Python can import them; the worker's among them.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Files of the repository's folder `python`, named by their paths below it: names and texts, which the binary carries.
#[macro_export]
macro_rules! python_files {
    ($($name:literal),* $(,)?) => {
        [$((
            $name,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/", $name)),
        )),*]
    };
}

/// The worker's own files.
pub const WORKER: [(&str, &str); 15] = python_files![
    "passnet/__init__.py",
    "passnet/worker/__init__.py",
    "passnet/worker/__main__.py",
    "passnet/worker/asking.py",
    "passnet/worker/clock.py",
    "passnet/worker/compilers.py",
    "passnet/worker/frames.py",
    "passnet/worker/contents.py",
    "passnet/worker/graphs.py",
    "passnet/worker/plans.py",
    "passnet/worker/quick.py",
    "passnet/worker/rates.py",
    "passnet/worker/serve.py",
    "passnet/worker/tensors.py",
    "passnet/worker/tuning.py",
];

/// A folder of our own with the package in it, removed in the end.
#[derive(Debug)]
pub struct Package {
    folder: PathBuf,
}

impl Package {
    /// Writes files, named by their paths below the folder.
    pub fn lay_out(files: &[(&str, &str)]) -> io::Result<Package> {
        let folder = private_folder()?;
        let package = Package { folder };
        for (name, text) in files {
            let path = package.folder.join(name);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(path, text)?;
        }
        Ok(package)
    }

    /// Where it was unpacked.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Package {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A new folder that only we can enter: a name someone else made first is not taken.
fn private_folder() -> io::Result<PathBuf> {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos());
    for attempt in 0..16u32 {
        let name = format!("passnet-python-{}-{time:x}-{attempt}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        match builder.create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}
