//! What the jobs of all commands have in common: the journal, who may join, what people hear.

use crate::error::CommandError;
use crate::output::warn;
use passnet_bench::stop;
use passnet_cluster::{Answer, Aside, Hello, Journal, JournalEvent, News, Status};
use passnet_engine::identity::Build;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::Path;

/// Of a run that is spread over a cluster.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) journal: Journal,
    command: &'static str,
    /// What results depend on besides the content of units.
    settings: String,
    program: String,
    device: Option<String>,
    is_json: bool,
    /// Units that are set aside, with the reasons.
    pub(super) aside: BTreeMap<String, String>,
    pub(super) status: Option<Status>,
}

/// Units in their order: which is next, and how many of those passed over were done before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order {
    next: usize,
    count: usize,
    done_before: u64,
}

impl Order {
    pub(super) fn of(count: usize) -> Order {
        Order { next: 0, count, done_before: 0 }
    }

    /// The next unit that is not done.
    pub(super) fn next(&mut self, is_done: impl Fn(usize) -> bool) -> Option<usize> {
        while self.next < self.count {
            let place = self.next;
            self.next += 1;
            if !is_done(place) {
                return Some(place);
            }
            self.done_before += 1;
        }
        None
    }

    pub(super) fn is_over(&self) -> bool {
        self.next >= self.count
    }

    /// All units, and those that were done before.
    pub(super) fn total(&self) -> (Option<u64>, u64) {
        (Some(self.count as u64), self.done_before)
    }
}

impl Shared {
    pub(super) fn open(
        folder: &Path,
        command: &'static str,
        settings: String,
        device: Option<&str>,
        is_json: bool,
    ) -> Result<Shared, CommandError> {
        Ok(Shared {
            journal: Journal::open(folder)?,
            command,
            settings,
            program: program_digest()?,
            device: device.map(str::to_string),
            is_json,
            aside: BTreeMap::new(),
            status: None,
        })
    }

    /// What a unit's input is known by: its content, and how it is worked on.
    pub(super) fn input_key(&self, digest: &str) -> String {
        let all = format!("{digest} {}", self.settings);
        blake3::hash(all.as_bytes()).to_hex().to_string()
    }

    pub(super) fn admit(&mut self, hello: &Hello) -> Result<(), String> {
        admit(hello, &self.program, self.device.as_deref())?;
        self.journal
            .begin(self.command, &hello.class)
            .unwrap_or_else(|error| Err(error.to_string()))
    }

    /// Notes that a unit is done; it counts from the next commit on.
    pub(super) fn done(&mut self, unit: &str, answer: &Answer<'_>) {
        self.journal.note(JournalEvent::Unit {
            unit: unit.into(),
            input: self.input_key(answer.input),
            node: answer.node.into(),
            seconds: answer.reply.seconds,
            waited: answer.reply.waited,
            words: answer.reply.words.clone(),
        });
    }

    pub(super) fn set_aside(&mut self, aside: Aside<String>) -> Result<(), CommandError> {
        let Aside { unit, reasons } = aside;
        let reason = reasons.join("; then ");
        warn(&format!("{unit} is set aside: {reason}"));
        self.aside.insert(unit.clone(), reason);
        self.journal.note(JournalEvent::Aside { unit, reasons });
        Ok(self.journal.commit()?)
    }

    pub(super) fn is_stopped(&self) -> bool {
        stop::is_asked()
    }

    /// Tells people, and machines where they asked, on stderr: stdout is for results.
    pub(super) fn news(&mut self, news: News<'_>) {
        match news {
            News::Status(status) => {
                if self.is_json {
                    let line = serde_json::json!({ "progress": status });
                    warn(&line.to_string());
                } else if std::io::stderr().is_terminal() {
                    warn(&status.to_string());
                }
                self.status = Some(status.clone());
            }
            News::Node { name, what, reason } => {
                warn(&format!("node {name} is {what}: {reason}"));
                let (node, what, reason) = (name.into(), what.into(), reason.into());
                self.journal.note(JournalEvent::Node { node, what, reason });
            }
        }
    }
}

/// Refuses workers of another program, and devices that nobody asked for.
pub(super) fn admit(hello: &Hello, program: &str, device: Option<&str>) -> Result<(), String> {
    if hello.program != program {
        let short = |digest: &str| digest.chars().take(12).collect::<String>();
        return Err(format!(
            "another version of the program: {} (digest {}) there, {} (digest {}) here",
            hello.build,
            short(&hello.program),
            Build::this().describe(),
            short(program)
        ));
    }
    let found = hello.identity["device"]["name"].as_str().unwrap_or_default();
    match device {
        Some(wanted) if !found.contains(wanted) => {
            Err(format!("another device: `{found}`, where `{wanted}` is asked for"))
        }
        _ => Ok(()),
    }
}

/// Digest of the running program.
pub(super) fn program_digest() -> Result<String, CommandError> {
    let mut hasher = blake3::Hasher::new();
    std::io::copy(&mut std::fs::File::open(std::env::current_exe()?)?, &mut hasher)?;
    Ok(hasher.finalize().to_hex().to_string())
}
