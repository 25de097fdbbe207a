//! What CUDA needs of a machine: NVIDIA's device files, what its library reads in `/proc` and `/sys`, the library itself.

use super::Devices;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Besides the numbered ones. The last speaks for parts of a GPU and is a folder.
const DEVICES: &[&str] = &["nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-caps"];
/// The right to cut a GPU into parts, which no computation needs.
const CONFIGURATION: &str = "nvidia-cap1";
/// Without these CUDA does not start.
const NEEDED: &[&str] = &["nvidiactl", "nvidia-uvm"];

/// Read by the library when it starts; none of it says anything of other processes.
const SEEN: &[&str] = &[
    "/proc/cpuinfo",
    "/proc/devices",
    "/proc/driver/nvidia",
    "/proc/driver/nvidia-caps",
    "/proc/driver/nvidia-uvm",
    "/proc/meminfo",
    "/proc/modules",
    "/proc/sys/vm/mmap_min_addr",
    "/proc/sys/vm/overcommit_memory",
    "/sys/bus/pci/devices",
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
    "/sys/module/nvidia",
    "/sys/module/nvidia_uvm",
];

/// The library that everything else of CUDA is reached through.
const LIBRARY: &str = "libcuda.so.1";
/// Where the sandbox shows libraries anyway.
const SYSTEM: &[&str] = &["/lib", "/lib64", "/usr/lib", "/usr/lib64"];

/// The NVIDIA devices of this machine, or what is missing of them.
pub fn nvidia() -> Result<Devices, String> {
    let files = device_files(Path::new("/dev"))?;
    let mut seen: Vec<PathBuf> = SEEN.iter().map(PathBuf::from).collect();
    seen.extend(buses(Path::new("/sys/bus/pci/devices")));
    let folder = library_folder().ok_or_else(|| {
        format!("`{LIBRARY}` is neither in LD_LIBRARY_PATH nor where `ldconfig -p` looks")
    })?;
    let is_shown = SYSTEM.iter().any(|shown| folder.starts_with(shown));
    let libraries = if is_shown { Vec::new() } else { libraries_in(&folder) };
    Ok(Devices { files, seen, libraries })
}

fn device_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let names = |folder: &Path| -> BTreeSet<String> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    };
    let is_numbered = |name: &str| {
        let number = name.strip_prefix("nvidia").unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    let found = names(folder);
    let missing = |name: &str| format!("{} is not there", folder.join(name).display());
    if let Some(needed) = NEEDED.iter().find(|needed| !found.contains(**needed)) {
        return Err(missing(needed));
    }
    let mut files = Vec::new();
    for name in found.iter().filter(|name| is_numbered(name) || DEVICES.contains(&name.as_str())) {
        let path = folder.join(name);
        if path.is_dir() {
            let inner = names(&path).into_iter().filter(|name| name != CONFIGURATION);
            files.extend(inner.map(|name| path.join(name)));
        } else {
            files.push(path);
        }
    }
    match found.iter().any(|name| is_numbered(name)) {
        true => Ok(files),
        false => Err(missing("nvidia0")),
    }
}

/// The buses that NVIDIA's devices hang on: links of the first folder lead there.
fn buses(devices: &Path) -> Vec<PathBuf> {
    const NVIDIA: &str = "0x10de";
    let entries = std::fs::read_dir(devices).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| {
        let vendor = std::fs::read_to_string(entry.path().join("vendor"));
        vendor.is_ok_and(|vendor| vendor.trim() == NVIDIA)
    });
    let buses: BTreeSet<PathBuf> = ours
        .filter_map(|entry| {
            let path = entry.path().canonicalize().ok()?;
            let is_bus = |path: &&Path| {
                path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("pci"))
            };
            path.ancestors().find(is_bus).map(Path::to_path_buf)
        })
        .collect();
    buses.into_iter().collect()
}

/// Where the library lies for programs that a person starts here.
fn library_folder() -> Option<PathBuf> {
    let named = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let named = std::env::split_paths(&named).filter(|folder| folder.is_absolute());
    let listed = ["/sbin/ldconfig", "/usr/sbin/ldconfig", "ldconfig"].iter().find_map(|program| {
        let output = Command::new(program).arg("-p").stdin(Stdio::null()).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    });
    let listed = listed.unwrap_or_default();
    let found = named.chain(listed_folders(&listed)).find(|folder| folder.join(LIBRARY).is_file());
    found.and_then(|folder| folder.canonicalize().ok())
}

/// The folders that the list of the system's libraries names, of this machine's kind first.
fn listed_folders(list: &str) -> Vec<PathBuf> {
    let lines = list.lines().filter(|line| line.trim_start().starts_with(LIBRARY));
    let mut lines: Vec<&str> = lines.collect();
    lines.sort_by_key(|line| !line.contains("64"));
    let path =
        |line: &str| Some(Path::new(line.split(" => ").nth(1)?.trim()).parent()?.to_path_buf());
    lines.into_iter().filter_map(path).collect()
}

/// The driver's files in a folder that may hold others.
fn libraries_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_ours = |name: &str| {
        (name.starts_with("libcuda.so") || name.starts_with("libnvidia-")) && name.contains(".so")
    };
    let ours = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_ours));
    let mut found: Vec<PathBuf> = ours.map(|entry| entry.path()).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_files_are_nvidias_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let dev = folder.path();
        for name in ["nvidia0", "nvidia12", "nvidia-uvm", "nvidia-modeset", "nvidiax", "sda", "kvm"]
        {
            std::fs::write(dev.join(name), "").unwrap();
        }
        assert!(device_files(dev).unwrap_err().ends_with("nvidiactl is not there"));
        std::fs::write(dev.join("nvidiactl"), "").unwrap();
        std::fs::create_dir(dev.join("nvidia-caps")).unwrap();
        for name in ["nvidia-cap1", "nvidia-cap12"] {
            std::fs::write(dev.join("nvidia-caps").join(name), "").unwrap();
        }
        let found = device_files(dev).unwrap();
        let names: Vec<&str> =
            found.iter().map(|path| path.strip_prefix(dev).unwrap().to_str().unwrap()).collect();
        let expected =
            ["nvidia-caps/nvidia-cap12", "nvidia-uvm", "nvidia0", "nvidia12", "nvidiactl"];
        assert_eq!(names, expected);
    }

    #[test]
    fn a_machine_without_a_gpu_is_told_what_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("nvidiactl"), "").unwrap();
        std::fs::write(folder.path().join("nvidia-uvm"), "").unwrap();
        assert!(device_files(folder.path()).unwrap_err().ends_with("nvidia0 is not there"));
    }

    #[test]
    fn the_library_is_found_in_the_systems_list() {
        let list = "3 libs found in cache `/etc/ld.so.cache'\n\
            \tlibcuda.so.1 (libc6) => /usr/lib/i386-linux-gnu/libcuda.so.1\n\
            \tlibcuda.so.1 (libc6,x86-64) => /usr/local/nvidia/lib64/libcuda.so.1\n\
            \tlibcudart.so.12 (libc6,x86-64) => /opt/libcudart.so.12\n";
        let folders = listed_folders(list);
        let expected = ["/usr/local/nvidia/lib64", "/usr/lib/i386-linux-gnu"];
        assert_eq!(folders, expected.map(PathBuf::from));
    }

    #[test]
    fn only_the_drivers_libraries_are_shown() {
        let folder = tempfile::tempdir().unwrap();
        for name in
            ["libcuda.so.1", "libnvidia-ptxjitcompiler.so.580.1", "libsecret.so", "notes.txt"]
        {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let names: Vec<String> = libraries_in(folder.path())
            .iter()
            .map(|path| path.file_name().unwrap().to_str().unwrap().to_string())
            .collect();
        assert_eq!(names, ["libcuda.so.1", "libnvidia-ptxjitcompiler.so.580.1"]);
    }
}
