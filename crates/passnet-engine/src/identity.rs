//! Where a result comes from: everything about a place and a build that a timing or a verdict may depend on.
//!
//! A result of one identity answers no question that is asked under another one.

use crate::engine::tier::Tier;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The engine, what it computes on and with, and the program that judges.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The name that `--engine` takes.
    pub engine: String,
    /// What computed.
    pub device: DeviceIdentity,
    /// The version, where Python was involved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// The version, where PyTorch was involved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub torch: Option<String>,
    /// The version, where Triton was involved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triton: Option<String>,
    /// The CUDA that PyTorch was built for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda: Option<String>,
    /// Digest of the library that replays plans; `None` where they are replayed in this process, or not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<String>,
    /// How wrappers ran.
    #[serde(default)]
    pub tier: Tier,
    /// The program that judged.
    pub build: Build,
    /// The processor's own name.
    pub processor: String,
    /// Cores that this process may use.
    pub cores: usize,
}

/// What computes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceIdentity {
    /// `cpu` or `cuda`; empty where a record does not say.
    pub kind: String,
    /// As the device calls itself.
    pub name: String,
    /// The version of its driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// NVIDIA's compute capability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<[u32; 2]>,
}

/// The program that judges.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// The version of the program.
    pub version: String,
    /// Of the sources, with a mark of what was changed since; empty where the program does not know.
    pub commit: String,
    /// How it was compiled: `release` or `debug`.
    pub profile: String,
    /// Features it was compiled with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
}

/// One thing in which two identities are not the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Which part of the identity.
    pub what: &'static str,
    /// What one side has there.
    pub one: String,
    /// What the other side has there.
    pub two: String,
    /// Whether timings of the two must not be ranked side by side.
    pub separates: bool,
}

static BUILD: OnceLock<Build> = OnceLock::new();

impl Build {
    /// What the program's own build script found; the first word counts.
    pub fn register(build: Build) {
        let _ = BUILD.set(build);
    }

    /// Of the running program; where it registered nothing, what this library knows.
    pub fn this() -> Build {
        BUILD.get().cloned().unwrap_or_else(|| Build {
            version: env!("CARGO_PKG_VERSION").into(),
            commit: String::new(),
            profile: if cfg!(debug_assertions) { "debug" } else { "release" }.into(),
            features: Vec::new(),
        })
    }
}

impl Identity {
    /// The part that every engine in this process shares, on the processor.
    pub fn here(engine: &str) -> Identity {
        let processor = processor().to_string();
        Identity {
            engine: engine.into(),
            device: DeviceIdentity {
                kind: "cpu".into(),
                name: processor.clone(),
                ..DeviceIdentity::default()
            },
            build: Build::this(),
            processor,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            ..Identity::default()
        }
    }

    /// For keys of stored results.
    pub fn digest(&self) -> String {
        blake3::hash(&serde_json::to_vec(self).unwrap_or_default()).to_hex().to_string()
    }

    /// Everything that differs, in the order of the fields. Another commit of the same version is named, but two such
    /// runs may be held against each other: that is how a change of the program itself is looked at.
    pub fn differences(&self, other: &Identity) -> Vec<Difference> {
        let mut found = Vec::new();
        let mut differ = |what, one: String, two: String, separates| {
            if one != two {
                found.push(Difference { what, one, two, separates });
            }
        };
        let optional = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".into());
        differ("engine", self.engine.clone(), other.engine.clone(), true);
        differ("device", self.device.describe(), other.device.describe(), true);
        differ("Python", optional(&self.python), optional(&other.python), true);
        differ("PyTorch", optional(&self.torch), optional(&other.torch), true);
        differ("Triton", optional(&self.triton), optional(&other.triton), true);
        differ("CUDA", optional(&self.cuda), optional(&other.cuda), true);
        differ("runner", optional(&self.runner), optional(&other.runner), true);
        differ("tier", self.tier.name().into(), other.tier.name().into(), true);
        differ("processor", self.describe_processor(), other.describe_processor(), true);
        let (one, two) = (&self.build, &other.build);
        differ("version", one.version.clone(), two.version.clone(), true);
        differ("profile", one.profile.clone(), two.profile.clone(), true);
        differ("features", one.features.join(" "), two.features.join(" "), true);
        differ("commit", one.commit.clone(), two.commit.clone(), false);
        found
    }

    /// `x86 with 2 cores`.
    pub fn describe_processor(&self) -> String {
        let cores = if self.cores == 1 { "core" } else { "cores" };
        format!("{} with {} {cores}", self.processor, self.cores)
    }

    /// One line for people: the engine, its device, the versions that it works with.
    pub fn describe(&self) -> String {
        let mut parts = vec![format!("{} engine", self.engine)];
        if self.device.kind != "cpu" {
            parts.push(self.device.describe());
        }
        parts.push(self.describe_processor());
        let versions = [("PyTorch", &self.torch), ("Triton", &self.triton), ("CUDA", &self.cuda)];
        for (name, version) in versions {
            parts.extend(version.as_ref().map(|version| format!("{name} {version}")));
        }
        if !self.tier.is_plan() {
            parts.push(format!("{} tier", self.tier.name()));
        }
        parts.push(self.build.describe());
        parts.join(", ")
    }
}

impl DeviceIdentity {
    /// The name, with the driver where there is one.
    pub fn describe(&self) -> String {
        let kind = if self.kind.is_empty() { "unknown device" } else { &self.kind };
        let mut text = kind.to_string();
        if !self.name.is_empty() {
            text.push_str(&format!(" ({})", self.name));
        }
        if let Some([major, minor]) = self.capability {
            text.push_str(&format!(", compute capability {major}.{minor}"));
        }
        if let Some(driver) = &self.driver {
            text.push_str(&format!(", driver {driver}"));
        }
        text
    }
}

impl Build {
    /// `PassNet 0.1.0 (1a2b3c4d5e6f, release)`.
    pub fn describe(&self) -> String {
        let commit: String = self.commit.chars().take(SHOWN_COMMIT).collect();
        let commit = match self.commit.split_once('+') {
            Some((_, changes)) => format!("{commit}+{changes}"),
            None => commit,
        };
        let known = [commit, self.profile.clone(), self.features.join(" ")];
        let known: Vec<String> = known.into_iter().filter(|text| !text.is_empty()).collect();
        format!("PassNet {} ({})", self.version, known.join(", "))
    }
}

/// Characters of a commit that people see.
const SHOWN_COMMIT: usize = 12;

/// The processor's own name, or the kind of processor where the system does not tell.
pub fn processor() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let mut names = text
            .lines()
            .filter_map(|line| line.strip_prefix("model name")?.split_once(':'))
            .map(|(_, name)| name.trim());
        names.next().unwrap_or(std::env::consts::ARCH).to_string()
    })
}

/// The version of NVIDIA's driver, from its own file or its own tool.
pub(crate) fn nvidia_driver() -> Option<String> {
    let file = std::fs::read_to_string("/proc/driver/nvidia/version").ok();
    file.as_deref().and_then(driver_version).or_else(|| {
        let question = ["--query-gpu=driver_version", "--format=csv,noheader"];
        let answer =
            Command::new("nvidia-smi").args(question).stdin(Stdio::null()).output().ok()?;
        let text = String::from_utf8_lossy(&answer.stdout).into_owned();
        let version = text.lines().next()?.trim().to_string();
        is_version(&version).then_some(version)
    })
}

/// The version among the words of `NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar 5 …`.
fn driver_version(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("NVRM version"))?;
    line.split_whitespace().find(|word| is_version(word)).map(str::to_string)
}

fn is_version(word: &str) -> bool {
    word.contains('.') && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// The first digits of a file's digest; `None` where it cannot be read.
pub(crate) fn file_digest(path: &Path) -> Option<String> {
    const SHOWN: usize = 16;
    let mut hasher = blake3::Hasher::new();
    let mut file = File::open(path).ok()?;
    let mut piece = vec![0; 1 << 16];
    loop {
        match file.read(&mut piece).ok()? {
            0 => break,
            count => hasher.update(&piece[..count]),
        };
    }
    Some(hasher.finalize().to_hex().as_str().chars().take(SHOWN).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_part_of_the_digest_and_of_the_differences() {
        let base = Identity::here("torch");
        let device = DeviceIdentity { kind: "cuda".into(), ..base.device.clone() };
        let driver = DeviceIdentity { driver: Some("550.54".into()), ..base.device.clone() };
        let gpu = DeviceIdentity { capability: Some([9, 0]), ..base.device.clone() };
        let build = |change: fn(&mut Build)| {
            let mut build = base.build.clone();
            change(&mut build);
            build
        };
        let some = |text: &str| Some(text.to_string());
        let others = [
            ("engine", Identity { engine: "native".into(), ..base.clone() }),
            ("device", Identity { device, ..base.clone() }),
            ("device", Identity { device: driver, ..base.clone() }),
            ("device", Identity { device: gpu, ..base.clone() }),
            ("Python", Identity { python: some("3.12"), ..base.clone() }),
            ("PyTorch", Identity { torch: some("2.9"), ..base.clone() }),
            ("Triton", Identity { triton: some("3.5"), ..base.clone() }),
            ("CUDA", Identity { cuda: some("12.8"), ..base.clone() }),
            ("runner", Identity { runner: some("00"), ..base.clone() }),
            ("tier", Identity { tier: Tier::Compat, ..base.clone() }),
            ("processor", Identity { processor: "another".into(), ..base.clone() }),
            ("processor", Identity { cores: base.cores + 1, ..base.clone() }),
            ("version", Identity { build: build(|b| b.version.push('1')), ..base.clone() }),
            ("profile", Identity { build: build(|b| b.profile.push('1')), ..base.clone() }),
            (
                "features",
                Identity { build: build(|b| b.features.push("x".into())), ..base.clone() },
            ),
            ("commit", Identity { build: build(|b| b.commit.push('1')), ..base.clone() }),
        ];
        for (what, other) in others {
            assert_ne!(base.digest(), other.digest(), "{what}");
            let found = base.differences(&other);
            assert_eq!(found.iter().map(|found| found.what).collect::<Vec<_>>(), [what]);
            assert_eq!(found[0].separates, what != "commit");
            let text = serde_json::to_string(&other).unwrap();
            assert_eq!(serde_json::from_str::<Identity>(&text).unwrap(), other);
        }
        assert!(base.differences(&base.clone()).is_empty());
    }

    #[test]
    fn people_see_device_versions_and_build_in_one_line() {
        let identity = Identity {
            engine: "torch".into(),
            device: DeviceIdentity {
                kind: "cuda".into(),
                name: "NVIDIA H200".into(),
                driver: Some("550.54.15".into()),
                capability: Some([9, 0]),
            },
            torch: Some("2.9.0".into()),
            triton: Some("3.5.0".into()),
            cuda: Some("12.8".into()),
            processor: "a processor".into(),
            cores: 16,
            build: Build {
                version: "0.1.0".into(),
                commit: "0123456789abcdef+77aa".into(),
                profile: "release".into(),
                features: vec!["parquet".into()],
            },
            ..Identity::default()
        };
        assert_eq!(
            identity.describe(),
            "torch engine, cuda (NVIDIA H200), compute capability 9.0, driver 550.54.15, a processor with 16 cores, \
             PyTorch 2.9.0, Triton 3.5.0, CUDA 12.8, PassNet 0.1.0 (0123456789ab+77aa, release, parquet)"
        );
    }

    #[test]
    fn the_drivers_version_is_found_among_its_words() {
        let closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\nGCC version:  gcc version 11.4.0";
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (dvs-builder)";
        assert_eq!(driver_version(closed).as_deref(), Some("550.54.15"));
        assert_eq!(driver_version(open).as_deref(), Some("570.86.15"));
        assert_eq!(driver_version("GCC version: 11.4.0"), None);
    }

    #[test]
    fn a_file_is_known_by_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runner.so");
        assert_eq!(file_digest(&path), None);
        std::fs::write(&path, b"one").unwrap();
        let one = file_digest(&path).unwrap();
        assert_eq!(one.len(), 16);
        std::fs::write(&path, b"two").unwrap();
        assert_ne!(file_digest(&path).unwrap(), one);
    }
}
