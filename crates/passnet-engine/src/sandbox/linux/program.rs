//! Everything a child needs, prepared where memory may still be taken.

use super::root::Root;
use super::seccomp;
use crate::sandbox::{Job, Layers, Limits, Refusal};
use std::ffi::{CString, c_char};
use std::os::unix::ffi::OsStrExt;

/// The user and group inside: nobody, and no capability survives `exec`.
const INSIDE: u32 = 65534;

#[derive(Debug)]
pub(in crate::sandbox) struct Program {
    /// Program and arguments; empty for a trial, which ends where a program would begin.
    pub(super) arguments: Vec<CString>,
    pub(super) environment: Vec<CString>,
    pub(super) root: Root,
    pub(super) filter: Vec<libc::sock_filter>,
    pub(super) landlock: Option<u32>,
    pub(super) has_devices: bool,
    pub(super) user_map: CString,
    pub(super) group_map: CString,
    pub(super) scratch_options: CString,
    pub(super) limits: Limits,
}

impl Program {
    pub(in crate::sandbox) fn new(job: &Job, layers: &Layers) -> Result<Program, Refusal> {
        let mut arguments = vec![terminated(job.program.as_os_str().as_bytes())?];
        for argument in &job.arguments {
            arguments.push(terminated(argument.as_bytes())?);
        }
        let mut environment = Vec::new();
        for (name, value) in &job.environment {
            environment.push(terminated(format!("{name}={value}").as_bytes())?);
        }
        let root = Root::new(&job.readable, job.devices.as_ref()).map_err(|error| Refusal {
            layer: "files",
            reason: error.to_string(),
            hint: "name existing files and folders outside /proc, /sys, /dev and /tmp, and devices that are there",
        })?;
        // SAFETY: these two calls take nothing and cannot fail.
        let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
        Ok(Program {
            arguments,
            environment,
            root,
            filter: seccomp::filter(job.devices.is_some()),
            landlock: layers.landlock,
            has_devices: job.devices.is_some(),
            user_map: terminated(format!("{INSIDE} {user} 1").as_bytes())?,
            group_map: terminated(format!("{INSIDE} {group} 1").as_bytes())?,
            scratch_options: terminated(
                format!("size={},nr_inodes=65536,mode=700", job.limits.scratch).as_bytes(),
            )?,
            limits: job.limits,
        })
    }

    /// All of the set-up, and no program.
    pub(in crate::sandbox) fn trial(layers: &Layers) -> Result<Program, Refusal> {
        let job = Job {
            program: "/".into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            readable: Vec::new(),
            devices: None,
            input: Vec::new(),
            limits: Limits::default(),
        };
        Ok(Program { arguments: Vec::new(), ..Program::new(&job, layers)? })
    }
}

/// Pointers to strings, ended by null, as `execve` takes them.
pub(super) fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect()
}

fn terminated(bytes: &[u8]) -> Result<CString, Refusal> {
    CString::new(bytes).map_err(|_| Refusal {
        layer: "program",
        reason: "an argument holds a zero byte".into(),
        hint: "arguments and environment are text",
    })
}
