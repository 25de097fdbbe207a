//! The file system that a program sees: a root in memory with the folders it may read bound into it.
//!
//! Worked out beforehand as a list of steps, because the child that takes them may not allocate.

use super::landlock::Access;
use crate::sandbox::Devices;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileTypeExt;
use std::path::{Component, Path, PathBuf};

/// Where the machine's own root stays while the new one is filled.
pub(super) const OLD_ROOT: &CStr = c"/.old";
/// The program's own folder.
pub(super) const SCRATCH: &CStr = c"/tmp";

/// Needed by every program that is linked dynamically; those that a machine lacks are left out.
const SYSTEM: &[&str] = &["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache"];
/// The C locale's data and the rest of `/dev` are not needed.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/urandom"];

/// Where the program's own processes are listed, with devices only; the rest of `/proc` is what is bound there.
const PROCESSES: &CStr = c"/proc/own";
/// The names that a program knows them by. The last is its first process: the one that sets up is number 1.
const OWN_NAMES: &[&str] = &["self", "thread-self", "2"];

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
    /// The processes of the namespace.
    OwnProcesses(CString),
}

#[derive(Debug, Default)]
pub(super) struct Root {
    pub(super) steps: Vec<Step>,
    pub(super) rules: Vec<(CString, Access)>,
    made: BTreeSet<PathBuf>,
}

impl Root {
    pub(super) fn new(readable: &[PathBuf], devices: Option<&Devices>) -> io::Result<Root> {
        let mut wanted = Wanted::default();
        let libraries = devices.map_or(&[][..], |devices| &devices.libraries);
        for path in SYSTEM.iter().map(Path::new).filter(|path| path.exists()) {
            wanted.add(path)?;
        }
        for path in readable.iter().chain(libraries) {
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
                root.bind(path, Access::of_path(path))?;
            }
        }
        for (at, to) in &wanted.links {
            if !covered(at, &wanted.binds) {
                root.parents(at)?;
                root.steps.push(Step::Link { at: terminated(at)?, to: terminated(to)? });
            }
        }
        for device in DEVICES.iter().map(Path::new).filter(|path| path.exists()) {
            root.bind(device, Access::UseDevice)?;
        }
        if let Some(devices) = devices {
            root.add_devices(devices)?;
        }
        Ok(root)
    }

    fn add_devices(&mut self, devices: &Devices) -> io::Result<()> {
        for file in &devices.files {
            let refused = |text: &str| {
                let text = format!("{}: {text}", file.display());
                io::Error::new(io::ErrorKind::InvalidInput, text)
            };
            let kind = file.symlink_metadata().map_err(|error| refused(&error.to_string()))?;
            if !file.starts_with("/dev") || !kind.file_type().is_char_device() {
                return Err(refused("not a character device"));
            }
            self.bind(file, Access::ControlDevice)?;
        }
        let mut bound = BTreeSet::new();
        for path in &devices.seen {
            let is_below = |top| path.starts_with(top) && path != Path::new(top);
            let is_plain = path.components().all(|part| part != Component::ParentDir);
            if !is_plain || !["/proc", "/sys"].into_iter().any(is_below) {
                let text = format!("{}: not below /proc or /sys", path.display());
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
            let is_covered = path.ancestors().any(|above| bound.contains(above));
            if path.exists() && !path.is_symlink() && !is_covered {
                self.bind(path, Access::of_path(path))?;
                bound.insert(path.as_path());
            }
        }
        let own = Path::new(std::ffi::OsStr::from_bytes(PROCESSES.to_bytes()));
        self.folder(own)?;
        self.steps.push(Step::OwnProcesses(PROCESSES.into()));
        self.rules.push((PROCESSES.into(), Access::OwnProcesses));
        // A driver's library looks round for what is there.
        for top in ["/dev", "/proc", "/sys"] {
            if self.made.contains(Path::new(top)) {
                self.rules.push((terminated(Path::new(top))?, Access::List));
            }
        }
        for name in OWN_NAMES {
            let at = terminated(&Path::new("/proc").join(name))?;
            self.steps.push(Step::Link { at, to: terminated(&own.join(name))? });
        }
        Ok(())
    }

    fn bind(&mut self, path: &Path, access: Access) -> io::Result<()> {
        if access == Access::ReadFolder {
            self.folder(path)?;
        } else {
            self.parents(path)?;
            self.steps.push(Step::EmptyFile(terminated(path)?));
        }
        let mut from = OsString::from_vec(OLD_ROOT.to_bytes().to_vec());
        from.push(path);
        let (from, to) = (terminated(Path::new(&from))?, terminated(path)?);
        let device = matches!(access, Access::UseDevice | Access::ControlDevice);
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

impl Access {
    /// What may be done with a path that is only read.
    fn of_path(path: &Path) -> Access {
        if path.is_dir() { Access::ReadFolder } else { Access::ReadFile }
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
        let root = Root::new(&[base.join("link/inner"), base.join("real")], None).unwrap();
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

    /// What is bound below the folders that hide the machine, and how it may be used.
    fn machine_paths(root: &Root) -> Vec<(String, Access)> {
        let is_machine =
            |path: &str| ["/dev", "/proc", "/sys"].iter().any(|top| path.starts_with(top));
        let rules =
            root.rules.iter().map(|(path, access)| (path.to_str().unwrap().into(), *access));
        rules.filter(|(path, _): &(String, Access)| is_machine(path)).collect()
    }

    #[test]
    fn devices_bring_exactly_what_they_name() {
        let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect();
        let usual = ["/dev/null", "/dev/zero", "/dev/urandom"];
        let usual = usual.map(|path| (path.to_string(), Access::UseDevice));
        assert_eq!(machine_paths(&Root::new(&[], None).unwrap()), usual);
        let devices = Devices {
            files: paths(&["/dev/full"]),
            // One inside the other, and one that no machine has.
            seen: paths(&[
                "/proc/sys/vm",
                "/proc/sys/vm/overcommit_memory",
                "/sys/none",
                "/proc/stat",
            ]),
            libraries: Vec::new(),
        };
        let root = Root::new(&[], Some(&devices)).unwrap();
        let named = [
            ("/dev/full", Access::ControlDevice),
            ("/proc/sys/vm", Access::ReadFolder),
            ("/proc/stat", Access::ReadFile),
            ("/proc/own", Access::OwnProcesses),
            ("/dev", Access::List),
            ("/proc", Access::List),
        ];
        let named = named.map(|(path, access)| (path.to_string(), access));
        assert_eq!(machine_paths(&root), [&usual[..], &named].concat());
        let mounted = |step: &&Step| matches!(step, Step::OwnProcesses(_));
        assert_eq!(root.steps.iter().filter(mounted).count(), 1);
        // Devices keep their writes, everything else is bound read-only.
        for step in &root.steps {
            if let Step::Bind { to, device, .. } = step {
                assert_eq!(*device, to.to_bytes().starts_with(b"/dev/"), "{to:?}");
            }
        }
    }

    #[test]
    fn what_must_stay_hidden_is_refused() {
        for path in ["/", "/proc", "/proc/self", "/dev", "/tmp", "relative", "/usr/.."] {
            assert!(Root::new(&[PathBuf::from(path)], None).is_err(), "{path}");
        }
        assert!(Root::new(&[PathBuf::from("/no/such/path")], None).is_err());
    }
}
