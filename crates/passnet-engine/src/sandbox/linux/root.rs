//! The file system that a program sees: a root in memory with the folders it may read bound into it.
//!
//! Worked out beforehand as a list of steps, because the child that takes them may not allocate.

use super::landlock::Access;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// Where the machine's own root stays while the new one is filled.
pub(super) const OLD_ROOT: &CStr = c"/.old";
/// The program's own folder.
pub(super) const SCRATCH: &CStr = c"/tmp";

/// Needed by every program that is linked dynamically; those that a machine lacks are left out.
const SYSTEM: &[&str] = &["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache"];
/// The C locale's data and the rest of `/dev` are not needed.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/urandom"];

/// As many links as the kernel itself follows.
const MAX_LINKS: usize = 40;

/// One step of filling the new root; paths are absolute there.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Folder(CString),
    EmptyFile(CString),
    Link {
        at: CString,
        to: CString,
    },
    /// `from` lies below the old root.
    Bind {
        from: CString,
        to: CString,
        device: bool,
    },
}

#[derive(Debug, Default)]
pub(super) struct Root {
    pub(super) steps: Vec<Step>,
    pub(super) rules: Vec<(CString, Access)>,
    made: BTreeSet<PathBuf>,
}

impl Root {
    pub(super) fn new(readable: &[PathBuf]) -> io::Result<Root> {
        let mut wanted = Wanted::default();
        for path in SYSTEM.iter().map(Path::new).filter(|path| path.exists()) {
            wanted.add(path)?;
        }
        for path in readable {
            wanted.add(path)?;
        }
        let mut root = Root::default();
        root.made.insert("/tmp".into());
        root.rules.push((SCRATCH.into(), Access::OwnFolder));
        let covered = |path: &Path, binds: &BTreeSet<PathBuf>| {
            path.ancestors().skip(1).any(|above| binds.contains(above))
        };
        for path in &wanted.binds {
            if !covered(path, &wanted.binds) {
                root.bind(path, false)?;
            }
        }
        for (at, to) in &wanted.links {
            if !covered(at, &wanted.binds) {
                root.parents(at)?;
                root.steps.push(Step::Link { at: terminated(at)?, to: terminated(to)? });
            }
        }
        for device in DEVICES.iter().map(Path::new).filter(|path| path.exists()) {
            root.bind(device, true)?;
        }
        Ok(root)
    }

    fn bind(&mut self, path: &Path, device: bool) -> io::Result<()> {
        let access = match (device, path.is_dir()) {
            (true, _) => Access::UseDevice,
            (false, true) => Access::ReadFolder,
            (false, false) => Access::ReadFile,
        };
        if access == Access::ReadFolder {
            self.folder(path)?;
        } else {
            self.parents(path)?;
            self.steps.push(Step::EmptyFile(terminated(path)?));
        }
        let mut from = OsString::from_vec(OLD_ROOT.to_bytes().to_vec());
        from.push(path);
        let (from, to) = (terminated(Path::new(&from))?, terminated(path)?);
        self.rules.push((to.clone(), access));
        self.steps.push(Step::Bind { from, to, device });
        Ok(())
    }

    fn parents(&mut self, path: &Path) -> io::Result<()> {
        path.parent().map_or(Ok(()), |parent| self.folder(parent))
    }

    fn folder(&mut self, path: &Path) -> io::Result<()> {
        if path.parent().is_none() || !self.made.insert(path.to_path_buf()) {
            return Ok(());
        }
        self.parents(path)?;
        self.steps.push(Step::Folder(terminated(path)?));
        Ok(())
    }
}

/// Real files and folders to bind, and the links that lead to them.
#[derive(Debug, Default)]
struct Wanted {
    binds: BTreeSet<PathBuf>,
    links: BTreeSet<(PathBuf, PathBuf)>,
}

impl Wanted {
    /// Follows a path as the kernel does and keeps every link on the way.
    fn add(&mut self, path: &Path) -> io::Result<()> {
        let refused = |text: &str| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {text}", path.display()))
        };
        if !path.is_absolute() {
            return Err(refused("not an absolute path"));
        }
        let mut rest: Vec<OsString> = reversed_names(path);
        let mut at = PathBuf::from("/");
        let mut links = 0;
        while let Some(name) = rest.pop() {
            if name == ".." {
                at.pop();
                continue;
            }
            let next = at.join(&name);
            let kind = next.symlink_metadata().map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", next.display()))
            })?;
            if !kind.is_symlink() {
                at = next;
                continue;
            }
            links += 1;
            if links > MAX_LINKS {
                return Err(refused("too many links"));
            }
            let target = next.read_link()?;
            if target.is_absolute() {
                at = PathBuf::from("/");
            }
            rest.extend(reversed_names(&target));
            self.links.insert((next, target));
        }
        // The whole file system is never bound, and /proc, /sys, /dev and /tmp are what this is about.
        let hidden = ["/proc", "/sys", "/dev", "/run"];
        if at.parent().is_none()
            || at == Path::new("/tmp")
            || hidden.iter().any(|h| at.starts_with(h))
        {
            return Err(refused("cannot be shown to a sandboxed program"));
        }
        self.binds.insert(at);
        Ok(())
    }
}

fn reversed_names(path: &Path) -> Vec<OsString> {
    let names = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_os_string()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    });
    names.collect::<Vec<_>>().into_iter().rev().collect()
}

fn terminated(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a path holds a zero byte"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_kept_and_folders_inside_folders_are_bound_once() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("real/inner")).unwrap();
        std::os::unix::fs::symlink("real", base.join("link")).unwrap();
        let root = Root::new(&[base.join("link/inner"), base.join("real")]).unwrap();
        let text = |path: &CString| path.to_str().unwrap().to_string();
        let binds: Vec<String> = root
            .steps
            .iter()
            .filter_map(|step| match step {
                Step::Bind { to, .. } => Some(text(to)),
                _ => None,
            })
            .filter(|path| path.starts_with(base.to_str().unwrap()))
            .collect();
        assert_eq!(binds, [base.join("real").to_str().unwrap()]);
        let link = terminated(&base.join("link")).unwrap();
        assert!(root.steps.contains(&Step::Link { at: link, to: c"real".into() }));
    }

    #[test]
    fn what_must_stay_hidden_is_refused() {
        for path in ["/", "/proc", "/proc/self", "/dev", "/tmp", "relative", "/usr/.."] {
            assert!(Root::new(&[PathBuf::from(path)]).is_err(), "{path}");
        }
        assert!(Root::new(&[PathBuf::from("/no/such/path")]).is_err());
    }
}
