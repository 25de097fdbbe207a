//! Links of a checkout. A sample links to the graphs of the whole checkout, to the harness and to its script. Links are kept
//! as they are; the only one that is followed is a sample's link to its graphs, and it must stay inside.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Why a link is refused, and what to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) message: String,
    pub(crate) hint: &'static str,
}

const STAY: &str =
    "a checkout is read without following links out of it; copy what they lead to, or remove them";

fn refused(message: String, hint: &'static str) -> Refused {
    Refused { message, hint }
}

/// Where a link leads by its words alone: a path from the top of the checkout.
pub(crate) fn destination(path: &str, target: &str) -> Result<String, Refused> {
    if target.starts_with('/') {
        return Err(refused(
            format!("this link leads to an absolute path, `{}`", target.escape_debug()),
            "make it relative, so that it leads to the same place in every copy: `ln -srfn`",
        ));
    }
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if parts.pop().is_none() {
                    return Err(refused(
                        format!("this link leads out of the checkout: `{}`", target.escape_debug()),
                        STAY,
                    ));
                }
            }
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

/// Checks that a link stays inside the checkout, whatever it leads to; it may lead to something that is not here.
pub(super) fn check(root: &Path, path: &str, target: &str) -> Result<(), Refused> {
    destination(path, target)?;
    match follow(root, path) {
        Ok(_) => Ok(()),
        Err(Lost::Nothing) => Ok(()),
        Err(Lost::Refused(refused)) => Err(refused),
    }
}

/// The folder of graphs that a sample's link leads to, as a path from the top of the checkout.
pub(super) fn graphs_folder(root: &Path, path: &str, target: &str) -> Result<String, Refused> {
    destination(path, target)?;
    let real = match follow(root, path) {
        Ok(real) => real,
        Err(Lost::Refused(refused)) => return Err(refused),
        Err(Lost::Nothing) => {
            let message = format!("this link leads nowhere: `{}`", target.escape_debug());
            return Err(refused(
                message,
                "a sample's `graphs` leads to the folder that its list begins with",
            ));
        }
    };
    let is_above = path.split('/').scan(PathBuf::new(), |above, part| {
        let here = above.clone();
        above.push(part);
        Some(here)
    });
    let mut is_above = is_above.map(|above| above == real);
    if !root.join(&real).is_dir() || is_above.any(|is_above| is_above) {
        let message =
            format!("this link leads to `{}`, which is no folder of graphs", real.display());
        return Err(refused(
            message,
            "a sample's `graphs` leads to the folder that its list begins with",
        ));
    }
    real.to_str().map(str::to_string).ok_or_else(|| {
        refused(format!("this link leads to `{}`, whose name is not UTF-8", real.display()), STAY)
    })
}

enum Lost {
    /// It leads to something that is not there.
    Nothing,
    Refused(Refused),
}

/// Where a link ends, all links on the way followed; `root` has none itself.
fn follow(root: &Path, path: &str) -> Result<PathBuf, Lost> {
    match std::fs::canonicalize(root.join(path)) {
        Ok(real) => match real.strip_prefix(root) {
            Ok(inside) => Ok(inside.to_path_buf()),
            Err(_) => {
                let message =
                    format!("this link leads out of the checkout, to `{}`", real.display());
                Err(Lost::Refused(refused(message, STAY)))
            }
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Err(Lost::Nothing),
        Err(error) => {
            let message = format!("this link leads in a circle or cannot be followed: {error}");
            Err(Lost::Refused(refused(message, STAY)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_links_that_stay_inside_are_accepted() {
        let outside = tempfile::tempdir().unwrap();
        let root = outside.path().canonicalize().unwrap().join("checkout");
        for folder in ["graphs/set", "samples/a", "elsewhere"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("samples/a/file"), "").unwrap();
        let lead = |target: &str| {
            let link = root.join("samples/a/graphs");
            let _ = fs::remove_file(&link);
            symlink(target, &link).unwrap();
            let folder = graphs_folder(&root, "samples/a/graphs", target);
            (
                folder.map_err(|refused| refused.message),
                check(&root, "samples/a/graphs", target).is_ok(),
            )
        };
        assert_eq!(lead("../../graphs"), (Ok("graphs".into()), true));
        assert_eq!(lead("../../elsewhere/"), (Ok("elsewhere".into()), true));
        let refusals = [
            ("../../nothing", "this link leads nowhere", true),
            ("file", "this link leads to `samples/a/file`, which is no folder of graphs", true),
            (".", "this link leads to `samples/a`, which is no folder of graphs", true),
            ("../..", "this link leads to ``, which is no folder of graphs", true),
            ("graphs", "this link leads in a circle", false),
            ("../../../", "this link leads out of the checkout", false),
            ("../../../checkout/graphs", "this link leads out of the checkout", false),
            ("/etc", "this link leads to an absolute path", false),
        ];
        for (target, message, may_be_kept) in refusals {
            let (folder, kept) = lead(target);
            let said = folder.unwrap_err();
            assert!(said.starts_with(message), "{target}: {said}");
            assert_eq!(kept, may_be_kept, "{target}");
        }
        // By its words this link stays inside; another link carries it out.
        symlink("/etc", root.join("elsewhere/way")).unwrap();
        let (folder, kept) = lead("../../elsewhere/way");
        assert!(folder.unwrap_err().starts_with("this link leads out of the checkout, to `/etc`"));
        assert!(!kept);
    }
}
