//! Parts of a run that are made apart: which units belong to which part, and what a part says about itself.
//!
//! A unit (a task, a model) goes to a shard by the digest of its name alone, so that every machine finds the same
//! parts without asking, and a unit stays where it is when others are added. `shard.json` in a part's folder says
//! which part it is; `passnet merge` believes nothing else.

use crate::event_log::{LogError, io};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

const FORMAT: u32 = 1;
const MANIFEST: &str = "shard.json";
/// More parts than this are a mistake.
const MOST_SHARDS: u32 = 1_000_000;

/// One of several parts, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Shard {
    /// From 0.
    pub index: u32,
    /// How many parts there are.
    pub of: u32,
}

impl Shard {
    /// Whether a unit of this name belongs to the part.
    pub fn holds(self, unit: &str) -> bool {
        let digest = blake3::hash(unit.as_bytes());
        let mut first = [0; 8];
        first.copy_from_slice(&digest.as_bytes()[..8]);
        u64::from_le_bytes(first) % u64::from(self.of) == u64::from(self.index)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> String {
        shard.to_string()
    }
}

impl TryFrom<String> for Shard {
    type Error = String;

    fn try_from(text: String) -> Result<Shard, String> {
        text.parse()
    }
}

impl std::str::FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let numbers = text.split_once('/').and_then(|(index, of)| {
            Some(Shard { index: index.parse().ok()?, of: of.parse().ok()? })
        });
        match numbers {
            Some(shard) if shard.index < shard.of && shard.of <= MOST_SHARDS => Ok(shard),
            _ => Err("a shard is I/N with I from 0 to N-1, such as 0/8".into()),
        }
    }
}

/// A unit of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    /// Its place among all units of the whole run.
    pub index: usize,
    /// The sample's or the model's.
    pub name: String,
    /// How results name the sample, where the unit is one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sample: String,
    /// As it was given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub folder: String,
    /// Every one of them has a result when the part is done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub graphs: Vec<String>,
}

/// All units of the run that a part belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whole {
    /// How many all parts have together.
    pub units: usize,
    /// Of their names, in order.
    pub digest: String,
}

impl Whole {
    /// Counts the names and takes their digest.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Whole {
        let mut hasher = blake3::Hasher::new();
        let mut units = 0;
        for name in names {
            hasher.update(&(name.len() as u64).to_le_bytes());
            hasher.update(name.as_bytes());
            units += 1;
        }
        Whole { units, digest: hasher.finalize().to_hex().to_string() }
    }
}

/// What a part's folder says about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Of the file; a newer one is refused.
    pub format: u32,
    /// The command that made it: `bench`, `solve`, `extract`, `agent`.
    pub command: String,
    /// Which part this is.
    pub shard: Shard,
    /// What all parts are of.
    pub whole: Whole,
    /// What results depend on and no event says.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Those of this part.
    pub units: Vec<Unit>,
    /// Whether the command came to its end.
    pub is_done: bool,
}

impl Manifest {
    /// A part as it begins: the units of the whole run in their order, of which it keeps its own.
    pub fn new(
        command: &str,
        shard: Shard,
        settings: impl IntoIterator<Item = (&'static str, String)>,
        units: Vec<Unit>,
    ) -> Manifest {
        let whole = Whole::of(units.iter().map(|unit| &*unit.name));
        Manifest {
            format: FORMAT,
            command: command.into(),
            shard,
            whole,
            settings: settings.into_iter().map(|(name, value)| (name.into(), value)).collect(),
            units: units.into_iter().filter(|unit| shard.holds(&unit.name)).collect(),
            is_done: false,
        }
    }

    /// Where it stands in a part's folder.
    pub fn path(folder: &Path) -> PathBuf {
        folder.join(MANIFEST)
    }

    /// An error where there is none, or where it is damaged.
    pub fn read(folder: &Path) -> Result<Manifest, LogError> {
        let path = Manifest::path(folder);
        let bytes = std::fs::read(&path).map_err(io(&path))?;
        let damaged = |error: serde_json::Error| LogError::Damaged {
            path: path.clone(),
            name: "shard",
            line: error.line(),
            message: error.to_string(),
        };
        let manifest: Manifest = serde_json::from_slice(&bytes).map_err(damaged)?;
        match manifest.format {
            FORMAT => Ok(manifest),
            found => Err(LogError::Format { path, found, reads: FORMAT }),
        }
    }

    /// Whole or not at all.
    pub fn write(&self, folder: &Path) -> Result<(), LogError> {
        let path = Manifest::path(folder);
        let partial = folder.join(format!("{MANIFEST}.partial"));
        let mut text = serde_json::to_vec_pretty(self).unwrap_or_default();
        text.push(b'\n');
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&partial, text))
            .and_then(|()| std::fs::rename(&partial, &path))
            .map_err(io(&path))
    }

    /// In what two parts cannot be of one run, in words that name both.
    pub fn difference(&self, other: &Manifest) -> Option<String> {
        let differ = |what: &str, one: &str, two: &str| {
            (one != two).then(|| format!("another {what}: `{one}` and `{two}`"))
        };
        let whole = |manifest: &Manifest| {
            let Whole { units, digest } = &manifest.whole;
            format!("{units} units, {}", digest.get(..16).unwrap_or(digest))
        };
        let names = self.settings.keys().chain(other.settings.keys());
        let setting = |manifest: &Manifest, name: &str| -> String {
            manifest.settings.get(name).cloned().unwrap_or_else(|| "none".into())
        };
        differ("command", &self.command, &other.command)
            .or_else(|| {
                let parts = |manifest: &Manifest| manifest.shard.of.to_string();
                differ("number of shards", &parts(self), &parts(other))
            })
            .or_else(|| differ("set of units", &whole(self), &whole(other)))
            .or_else(|| {
                let mut names = names;
                names.find_map(|name| differ(name, &setting(self, name), &setting(other, name)))
            })
    }
}

/// A part on the disk.
#[derive(Debug, Clone)]
pub struct Part {
    /// Where it lies.
    pub folder: PathBuf,
    /// What it says of itself.
    pub manifest: Manifest,
}

impl Part {
    /// Only its manifest.
    pub fn read(folder: &Path) -> Result<Part, LogError> {
        Ok(Part { folder: folder.to_path_buf(), manifest: Manifest::read(folder)? })
    }
}

/// Names of missing shards that are shown.
const SHOWN_MISSING: usize = 8;

/// All units of the run that the parts are of, in their order, each with the place of its part. Parts of unlike runs,
/// parts that are not done, and units that are there twice or not at all are refused, in words that name them.
pub fn units_of(parts: &[Part]) -> Result<Vec<(usize, &Unit)>, String> {
    let Some(first) = parts.first() else { return Err("there is nothing to merge".into()) };
    let of = first.manifest.shard.of;
    let mut present: BTreeMap<u32, &Part> = BTreeMap::new();
    for part in parts {
        if let Some(difference) = first.manifest.difference(&part.manifest) {
            let (one, two) = (first.folder.display(), part.folder.display());
            return Err(format!("{one} and {two} are not of one run: {difference}"));
        }
        let shard = part.manifest.shard;
        if let Some(other) = present.insert(shard.index, part) {
            let (one, two) = (other.folder.display(), part.folder.display());
            return Err(format!("{one} and {two} are both shard {shard}"));
        }
        if !part.manifest.is_done {
            let folder = part.folder.display();
            return Err(format!("{folder}: shard {shard} has not come to its end"));
        }
    }
    let missing: Vec<String> = (0..of)
        .filter(|index| !present.contains_key(index))
        .take(SHOWN_MISSING)
        .map(|index| Shard { index, of }.to_string())
        .collect();
    if !missing.is_empty() {
        return Err(format!(
            "{} of {of} shards are there; missing: {}",
            present.len(),
            missing.join(", ")
        ));
    }
    let mut units: Vec<(usize, &Unit)> = parts
        .iter()
        .enumerate()
        .flat_map(|(place, part)| part.manifest.units.iter().map(move |unit| (place, unit)))
        .collect();
    units.sort_by_key(|(_, unit)| unit.index);
    for (index, (place, unit)) in units.iter().enumerate() {
        let folder = parts[*place].folder.display();
        if unit.index < index {
            return Err(format!("{folder}: unit `{}` is there twice", unit.name));
        }
        if unit.index > index {
            return Err(format!("unit {index}, before `{}` of {folder}, is missing", unit.name));
        }
    }
    match Whole::of(units.iter().map(|(_, unit)| &*unit.name)) == first.manifest.whole {
        true => Ok(units),
        false => Err("the units of these shards are not those that they say the run has".into()),
    }
}

/// Copies a folder of files and of such folders. Links are not followed: nothing of ours makes any.
pub fn copy_folder(from: &Path, to: &Path) -> Result<(), LogError> {
    std::fs::create_dir_all(to).map_err(io(to))?;
    for item in std::fs::read_dir(from).map_err(io(from))? {
        let item = item.map_err(io(from))?;
        let (path, target) = (item.path(), to.join(item.file_name()));
        let kind = item.file_type().map_err(io(&path))?;
        if kind.is_dir() {
            copy_folder(&path, &target)?;
        } else if kind.is_file() {
            std::fs::copy(&path, &target).map_err(io(&path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(names: &[&str]) -> Vec<Unit> {
        let unit = |(index, name): (usize, &&str)| Unit {
            index,
            name: name.to_string(),
            sample: String::new(),
            folder: String::new(),
            graphs: Vec::new(),
        };
        names.iter().enumerate().map(unit).collect()
    }

    #[test]
    fn every_unit_is_in_one_shard_and_stays_there_when_others_come() {
        let names: Vec<String> = (0..1000).map(|number| format!("task_{number}")).collect();
        for of in [1, 2, 8, 37] {
            let shards: Vec<Shard> = (0..of).map(|index| Shard { index, of }).collect();
            let mut sizes = vec![0; of as usize];
            for name in &names {
                let holding: Vec<usize> =
                    (0..shards.len()).filter(|i| shards[*i].holds(name)).collect();
                assert_eq!(holding.len(), 1, "{name}");
                sizes[holding[0]] += 1;
            }
            let fair = 1000 / of as usize;
            assert!(sizes.iter().all(|size| *size > fair / 3), "{sizes:?}");
        }
        // Written down: another version must find the same parts.
        let eight = |name: &str| (0..8).find(|index| Shard { index: *index, of: 8 }.holds(name));
        assert_eq!([eight("swiglu"), eight("timm/resnet18")], [Some(2), Some(0)]);
    }

    #[test]
    fn shards_are_read_as_they_are_written_and_nothing_else_is() {
        assert_eq!("3/8".parse::<Shard>().unwrap().to_string(), "3/8");
        for wrong in ["8/8", "0/0", "1", "a/b", "-1/4", "1/2/3", "", "0/99999999"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn unlike_parts_are_told_apart_by_name() {
        let part = |command, shard: &str, names: &[&str]| {
            let settings = [("depth", "quick".to_string())];
            Manifest::new(command, shard.parse().unwrap(), settings, units(names))
        };
        let one = part("bench", "0/2", &["a", "b"]);
        assert_eq!(one.difference(&part("bench", "1/2", &["a", "b"])), None);
        let says = |other: &Manifest| one.difference(other).unwrap();
        assert_eq!(
            says(&part("solve", "1/2", &["a", "b"])),
            "another command: `bench` and `solve`"
        );
        assert_eq!(
            says(&part("bench", "1/3", &["a", "b"])),
            "another number of shards: `2` and `3`"
        );
        assert!(says(&part("bench", "1/2", &["a"])).starts_with("another set of units: `2 units"));
        let mut deep = part("bench", "1/2", &["a", "b"]);
        deep.settings.insert("depth".into(), "deep".into());
        assert_eq!(says(&deep), "another depth: `quick` and `deep`");
    }

    #[test]
    fn a_damaged_manifest_is_named_by_place() {
        let folder = tempfile::tempdir().unwrap();
        let whole = Manifest::new("bench", Shard { index: 0, of: 1 }, [], units(&["a"]));
        whole.write(folder.path()).unwrap();
        assert_eq!(Manifest::read(folder.path()).unwrap(), whole);
        std::fs::write(Manifest::path(folder.path()), "{\n  !").unwrap();
        let error = Manifest::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("shard.json:2:1: not an event of a shard"), "{error}");
    }

    /// The parts of a run of ten units, all done.
    fn parts(of: u32) -> Vec<Part> {
        let names: Vec<String> = (0..10).map(|number| format!("unit {number}")).collect();
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        let part = |index| {
            let mut manifest = Manifest::new("bench", Shard { index, of }, [], units(&names));
            manifest.is_done = true;
            Part { folder: PathBuf::from(format!("part{index}")), manifest }
        };
        (0..of).map(part).collect()
    }

    #[test]
    fn the_parts_of_a_run_hold_every_unit_once_in_order() {
        let whole = parts(4);
        let names: Vec<&str> = units_of(&whole).unwrap().iter().map(|(_, u)| &*u.name).collect();
        assert_eq!(names.len(), 10);
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{names:?}");
    }

    #[test]
    fn what_is_missing_twice_there_or_not_done_is_refused_by_name() {
        let refused = |change: fn(&mut Vec<Part>)| {
            let mut parts = parts(4);
            change(&mut parts);
            units_of(&parts).unwrap_err()
        };
        assert_eq!(refused(|parts| drop(parts.remove(2))), "3 of 4 shards are there; missing: 2/4");
        let twice = refused(|parts| parts[1] = parts[0].clone());
        assert_eq!(twice, "part0 and part0 are both shard 0/4");
        let open = refused(|parts| parts[3].manifest.is_done = false);
        assert_eq!(open, "part3: shard 3/4 has not come to its end");
        let less = refused(|parts| {
            let full = parts.iter_mut().find(|part| part.manifest.units.len() > 1).unwrap();
            full.manifest.units.remove(0);
        });
        assert!(less.ends_with("is missing"), "{less}");
        let more = refused(|parts| {
            let full = parts.iter_mut().find(|part| !part.manifest.units.is_empty()).unwrap();
            let unit = full.manifest.units[0].clone();
            full.manifest.units.push(unit);
        });
        assert!(more.ends_with("is there twice"), "{more}");
        assert_eq!(refused(Vec::clear), "there is nothing to merge");
    }
}
