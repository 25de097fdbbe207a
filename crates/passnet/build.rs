//! Tells the program what it is built from: results must not be taken for those of another build. Puts into it what it
//! needs beside itself: the plan runner, the bundled tasks, passes and exploits.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    // Asked when this runs: a build script may have been compiled in another checkout that shares its target folder.
    let crate_folder =
        std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo names the crate's folder");
    let root = Path::new(&crate_folder).join("../..");
    for source in sources(&root) {
        tell(&format!("rerun-if-changed={}", root.join(source).display()));
    }
    for file in ["HEAD", "logs/HEAD"] {
        let path = git(&root, &["rev-parse", "--git-path", file]).map(|path| root.join(path));
        // A file that is not there would count as changed each time.
        if let Some(path) = path.filter(|path| path.exists()) {
            tell(&format!("rerun-if-changed={}", path.display()));
        }
    }
    tell("rerun-if-env-changed=PASSNET_COMMIT");
    tell(&format!("rustc-env=PASSNET_COMMIT={}", commit(&root)));
    tell(&format!("rustc-env=PASSNET_PROFILE={}", profile()));
    tell(&format!("rustc-env=PASSNET_FEATURES={}", features().join(" ")));
    let out =
        PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo names a folder for what is made"));
    write(&out.join("runner.zst"), &compressed(&runner(&root, &out)));
    write(&out.join("material.rs"), material(&root).as_bytes());
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    match bytes {
        [] => Vec::new(),
        bytes => zstd::encode_all(bytes, 19).expect("memory takes all that is written"),
    }
}

/// The plan runner as a library, or nothing. `cargo install` keeps only the program, and cargo hands no crate the library of
/// another, so this builds it in a folder of its own, where it waits for nobody's lock. A program that is not optimised is
/// built often, and finds the runner beside itself. A packager names a library that is there by PASSNET_RUNNER_LIBRARY; an
/// empty name embeds none.
fn runner(root: &Path, out: &Path) -> Vec<u8> {
    tell("rerun-if-env-changed=PASSNET_RUNNER_LIBRARY");
    let read = |path: &Path| {
        std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    match std::env::var_os("PASSNET_RUNNER_LIBRARY") {
        Some(named) if named.is_empty() => return Vec::new(),
        Some(named) => {
            tell(&format!("rerun-if-changed={}", Path::new(&named).display()));
            return read(Path::new(&named));
        }
        None if std::env::var("PROFILE").as_deref() != Ok("release") => return Vec::new(),
        None => {}
    }
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let (target, is_cross) = (variable("TARGET"), variable("TARGET") != variable("HOST"));
    let folder = out.join("runner");
    let mut cargo = Command::new(variable("CARGO"));
    cargo.current_dir(root).args(["build", "--release", "-p", "passnet-runner", "--target-dir"]);
    cargo.arg(&folder);
    if is_cross {
        cargo.args(["--target", &target]);
    }
    // What cargo tells this script is not meant for another cargo.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        let is_ours = name.starts_with("CARGO_PKG_")
            || name.starts_with("CARGO_FEATURE_")
            || name.starts_with("CARGO_CFG_")
            || name.starts_with("DEP_");
        if is_ours {
            cargo.env_remove(name);
        }
    }
    let status = cargo.status().unwrap_or_else(|error| panic!("cargo does not start: {error}"));
    assert!(status.success(), "the plan runner does not build; the reason stands above");
    let built = if is_cross { folder.join(target) } else { folder };
    read(&built.join("release/libpassnet_runner.so"))
}

/// The bundled files as a list of names and contents, in Rust.
fn material(root: &Path) -> String {
    let mut files = Vec::new();
    for part in ["tasks", "passes", "redteam"] {
        let folder = root.join("bench").join(part);
        tell(&format!("rerun-if-changed={}", folder.display()));
        let known = files.len();
        collect(&folder, &mut files);
        assert!(files.len() > known, "{}: nothing is there to be bundled", folder.display());
    }
    files.sort();
    let mut text = String::from("&[\n");
    for file in files {
        let name =
            file.strip_prefix(root.join("bench")).unwrap_or(&file).to_string_lossy().into_owned();
        let path = file.canonicalize().unwrap_or(file);
        let _ = writeln!(text, "({name:?}, include_bytes!({:?})),", path.display().to_string());
    }
    text.push(']');
    text
}

/// Everything that the program is made of, from the repository's root; tests are not.
fn sources(root: &Path) -> Vec<String> {
    let crates = std::fs::read_dir(root.join("crates")).into_iter().flatten().flatten();
    let mut sources: Vec<String> = crates
        .filter_map(|entry| entry.file_name().into_string().ok())
        .flat_map(|name| ["src", "Cargo.toml"].map(|part| format!("crates/{name}/{part}")))
        .chain(["python/passnet", "Cargo.toml", "Cargo.lock"].map(str::to_string))
        .filter(|source| root.join(source).exists())
        .collect();
    sources.sort();
    sources
}

#[allow(clippy::print_stdout, reason = "this is how a build script speaks")]
fn tell(what: &str) {
    println!("cargo:{what}");
}

/// The commit with a mark of what was changed since; where there is no git, what the packager says or the sources' digest.
fn commit(root: &Path) -> String {
    if let Some(named) = std::env::var("PASSNET_COMMIT").ok().filter(|named| !named.is_empty()) {
        return named;
    }
    let Some(commit) = git(root, &["rev-parse", "HEAD"]) else {
        return format!("sources {:016x}", digest_of_sources(root));
    };
    let sources = sources(root);
    let mut changes = vec!["status", "--porcelain", "--"];
    changes.extend(sources.iter().map(String::as_str));
    match git(root, &changes) {
        Some(changes) if !changes.is_empty() => {
            format!("{commit}+{:016x}", digest_of_sources(root))
        }
        _ => commit,
    }
}

fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").current_dir(root).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_string())
}

/// Of all files, by name.
fn digest_of_sources(root: &Path) -> u64 {
    let mut files = Vec::new();
    sources(root).iter().for_each(|source| collect(&root.join(source), &mut files));
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        let name = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().into_owned();
        hasher.write(name.as_bytes());
        hasher.write(&std::fs::read(&file).unwrap_or_default());
    }
    hasher.finish()
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(path) else {
        if path.is_file() {
            files.push(path.to_path_buf());
        }
        return;
    };
    for entry in entries.flatten().map(|entry| entry.path()) {
        let is_cache = entry.file_name().is_some_and(|name| name == "__pycache__");
        if !is_cache {
            collect(&entry, files);
        }
    }
}

/// Cargo's own profiles of one kind build alike.
fn profile() -> String {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    format!("{}, opt-level {}", variable("PROFILE"), variable("OPT_LEVEL"))
}

fn features() -> Vec<String> {
    let mut features: Vec<String> = std::env::vars()
        .filter_map(|(name, _)| name.strip_prefix("CARGO_FEATURE_").map(str::to_lowercase))
        .collect();
    features.sort();
    features
}
