//! The files a model writes: texts in memory under plain names, never paths of this machine.
//!
//! Because nothing here touches the disk, a path cannot lead out, a link cannot be followed and a half-written file
//! cannot exist. Edits are pure functions of the files before, so a trajectory replayed gives the same files.

use std::collections::BTreeMap;
use std::fmt;

/// The folder that passes live in.
pub const FOLDER: &str = "pass_dir";
/// The list of passes in order of application.
pub const MANIFEST: &str = "sorted_output_pass_rule_names.json";
pub(crate) const MAX_FILE_BYTES: usize = 128 << 10;
const MAX_FILES: usize = 64;
const MAX_TOTAL_BYTES: usize = 1 << 20;
/// Changes that can be undone; memory for older ones is given back.
const MAX_HISTORY: usize = 200;
const MAX_NAME_CHARS: usize = 100;

/// A change that was refused, in words for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused(pub String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn refuse<T>(text: impl Into<String>) -> Result<T, Refused> {
    Err(Refused(text.into()))
}

/// The pass folder of one attempt.
#[derive(Debug, Clone, Default)]
pub struct Workspace {
    files: BTreeMap<String, String>,
    /// What each change replaced, newest last.
    history: Vec<(String, Option<String>)>,
}

impl Workspace {
    /// By path.
    pub fn files(&self) -> &BTreeMap<String, String> {
        &self.files
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.files.get(name).map(String::as_str)
    }

    /// A new file; an existing one is not overwritten, as in the reference.
    pub fn create(&mut self, path: &str, text: String) -> Result<String, Refused> {
        let name = plain_name(path)?;
        if self.files.contains_key(&name) {
            return refuse(format!(
                "{FOLDER}/{name} exists; change it with `str_replace` or `insert`, or choose another name"
            ));
        }
        self.write(name, text)
    }

    /// Replaces a text that occurs exactly once.
    pub fn replace(&mut self, path: &str, old: &str, new: &str) -> Result<String, Refused> {
        let name = plain_name(path)?;
        let text = self.existing(&name)?;
        if old.is_empty() {
            return refuse("`old_str` is empty");
        }
        match text.matches(old).count() {
            0 => refuse(format!("`old_str` does not occur in {FOLDER}/{name}")),
            1 => {
                let text = text.replacen(old, new, 1);
                self.write(name, text)
            }
            count => {
                refuse(format!("`old_str` occurs {count} times; include more of its surroundings"))
            }
        }
    }

    /// Inserts a text after a line; 0 is the beginning.
    pub fn insert(&mut self, path: &str, line: usize, new: &str) -> Result<String, Refused> {
        let name = plain_name(path)?;
        let text = self.existing(&name)?;
        let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
        if line > lines.len() {
            return refuse(format!("line {line} is beyond the end ({} lines)", lines.len()));
        }
        let ended = match line.checked_sub(1).and_then(|before| lines.get(before)) {
            Some(before) if !before.ends_with('\n') => format!("\n{new}"),
            _ => new.to_string(),
        };
        let ended = if ended.ends_with('\n') { ended } else { ended + "\n" };
        lines.insert(line, &ended);
        let text = lines.concat();
        self.write(name, text)
    }

    /// Takes the last change of a file back.
    pub fn undo(&mut self, path: &str) -> Result<String, Refused> {
        let name = plain_name(path)?;
        let Some(last) = self.history.iter().rposition(|(changed, _)| *changed == name) else {
            return refuse(format!("{FOLDER}/{name} has no change to take back"));
        };
        match self.history.remove(last).1 {
            Some(before) => self.files.insert(name.clone(), before),
            None => self.files.remove(&name),
        };
        Ok(name)
    }

    fn existing(&self, name: &str) -> Result<&str, Refused> {
        match self.get(name) {
            Some(text) => Ok(text),
            None => refuse(format!("there is no {FOLDER}/{name}; {}", self.listing())),
        }
    }

    /// The files there are, in one line.
    pub fn listing(&self) -> String {
        if self.files.is_empty() {
            return format!("{FOLDER} is empty");
        }
        let names: Vec<String> = self
            .files
            .iter()
            .map(|(name, text)| format!("{name} ({} bytes)", text.len()))
            .collect();
        format!("{FOLDER} holds {}", names.join(", "))
    }

    fn write(&mut self, name: String, text: String) -> Result<String, Refused> {
        if text.len() > MAX_FILE_BYTES {
            return refuse(format!("{} bytes; a file may have {MAX_FILE_BYTES}", text.len()));
        }
        if text.contains('\0') {
            return refuse("the text holds a zero byte");
        }
        let others: usize = self
            .files
            .iter()
            .filter(|(other, _)| **other != name)
            .map(|(_, text)| text.len())
            .sum();
        if others + text.len() > MAX_TOTAL_BYTES {
            return refuse(format!("all files together may have {MAX_TOTAL_BYTES} bytes"));
        }
        if self.files.len() >= MAX_FILES && !self.files.contains_key(&name) {
            return refuse(format!("there are {MAX_FILES} files already"));
        }
        let before = self.files.insert(name.clone(), text);
        self.history.push((name.clone(), before));
        if self.history.len() > MAX_HISTORY {
            self.history.remove(0);
        }
        Ok(name)
    }
}

/// The name of a file in the pass folder from what a model calls it. Everything else is refused, not repaired.
pub fn plain_name(path: &str) -> Result<String, Refused> {
    let name = path.trim();
    let name = name.strip_prefix("./").unwrap_or(name);
    let name = name.strip_prefix(FOLDER).and_then(|rest| rest.strip_prefix('/')).unwrap_or(name);
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    let is_kind = name.ends_with(".py") || name.ends_with(".json");
    if !is_plain || !is_kind || name.starts_with('.') || name.len() > MAX_NAME_CHARS {
        return refuse(format!(
            "files are `{FOLDER}/NAME.py` or `{FOLDER}/NAME.json`, nothing else can be written"
        ));
    }
    Ok(name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside_the_folder() {
        for (path, name) in
            [("a.py", "a.py"), ("pass_dir/a.py", "a.py"), ("./pass_dir/b.json", "b.json")]
        {
            assert_eq!(plain_name(path).unwrap(), name);
        }
        let long = format!("{}.py", "x".repeat(200));
        for hostile in [
            "../a.py",
            "/etc/passwd",
            "/tmp/a.py",
            "pass_dir/../a.py",
            "pass_dir/../../a.py",
            "a/b.py",
            "..",
            ".py",
            "pass_dir/.hidden.py",
            "a.sh",
            "a.py\0",
            "a.py/..",
            "C:\\a.py",
            "~/a.py",
            "pass_dir//a.py",
            "",
            &long,
            "a\n.py",
            "naïve.py",
        ] {
            assert!(plain_name(hostile).is_err(), "{hostile:?}");
        }
    }

    #[test]
    fn edits_do_what_they_say_and_can_be_taken_back() {
        let mut work = Workspace::default();
        work.create("a.py", "one\ntwo\n".into()).unwrap();
        assert!(work.create("a.py", "x".into()).unwrap_err().0.contains("exists"));
        work.insert("a.py", 1, "middle").unwrap();
        assert_eq!(work.get("a.py"), Some("one\nmiddle\ntwo\n"));
        work.replace("a.py", "two", "three").unwrap();
        assert!(work.replace("a.py", "e", "").unwrap_err().0.contains("times"));
        assert!(work.replace("a.py", "zzz", "").is_err() && work.replace("a.py", "", "").is_err());
        assert!(work.insert("a.py", 9, "x").is_err() && work.insert("b.py", 0, "x").is_err());
        work.undo("a.py").unwrap();
        work.undo("a.py").unwrap();
        assert_eq!(work.get("a.py"), Some("one\ntwo\n"));
        work.undo("a.py").unwrap();
        assert!(work.files().is_empty() && work.undo("a.py").is_err());
        work.create("b.py", "no newline".into()).unwrap();
        work.insert("b.py", 1, "next").unwrap();
        assert_eq!(work.get("b.py"), Some("no newline\nnext\n"));
    }

    #[test]
    fn sizes_and_numbers_have_limits() {
        let mut work = Workspace::default();
        assert!(work.create("a.py", "x".repeat(MAX_FILE_BYTES + 1)).is_err());
        assert!(work.create("a.py", "x\0".into()).is_err());
        let mut made = 0;
        while work.create(&format!("f{made}.py"), "x".repeat(MAX_FILE_BYTES)).is_ok() {
            made += 1;
        }
        assert_eq!(made, MAX_TOTAL_BYTES / MAX_FILE_BYTES);
        let mut work = Workspace::default();
        let many =
            (0..200).filter(|n| work.create(&format!("f{n}.py"), "x".into()).is_ok()).count();
        assert_eq!(many, MAX_FILES);
        for n in 0..1000 {
            work.replace("f0.py", "x", &format!("{n}x")).ok();
        }
        assert!(work.history.len() <= MAX_HISTORY);
    }
}
