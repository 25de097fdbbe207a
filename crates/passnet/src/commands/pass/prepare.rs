//! From the paths a user names to traced passes.

use super::{Matching, Passes, Semantics};
use crate::error::CommandError;
use crate::output::{warn, warn_located};
use passnet_graph::Diagnostic;
use passnet_graph::read;
use passnet_graph::syntax::Source;
use passnet_graph::{FileName, GraphFiles, GraphFolder};
use passnet_pass::limits::{self, ReferenceLimits};
use passnet_pass::load::{Bindings, LoadOptions, PassSet, load};
use passnet_pass::matcher::MatchOptions;
use passnet_pass::trace::{Dialect, Pass, trace};

impl Passes {
    /// Loads every named folder or file; an error if there is no pass at all.
    pub fn load(&self) -> Result<Vec<PassSet>, CommandError> {
        let options =
            LoadOptions { input_dir: self.input_passes.clone(), ..LoadOptions::default() };
        let sets: Vec<PassSet> = self.passes.iter().map(|path| load(path, &options)).collect();
        require_some(&sets)?;
        Ok(sets)
    }

    /// The passes of a set that can be traced; errors of the others go to stderr.
    pub fn traced(&self, set: &PassSet, dialect: Dialect) -> Traced {
        let bindings = Bindings::of(&set.program);
        let mut failed = !set.errors.is_empty();
        warn_located(&set.errors);
        set.notes.iter().for_each(|note| warn(&format!("note: {note}")));
        let mut passes = Vec::new();
        for file in &set.passes {
            match trace(&set.program, &bindings, file, dialect) {
                Ok(pass) => passes.push(pass),
                Err(errors) => {
                    failed = true;
                    warn_located(&errors);
                }
            }
        }
        let limits =
            ReferenceLimits { patterns: self.pattern_limit, functions: self.function_limit };
        let (passes, dropped) = limits::apply(passes, limits);
        dropped.iter().for_each(|text| warn(&format!("note: {text}")));
        Traced { passes, failed }
    }

    /// The passes of all sets, each with the set that has it, and whether one could not be loaded or traced.
    pub fn traced_with_sets<'s>(
        &self,
        sets: &'s [PassSet],
        dialect: Dialect,
    ) -> (Vec<(&'s PassSet, Pass)>, bool) {
        let (mut passes, mut failed) = (Vec::new(), false);
        for set in sets {
            let traced = self.traced(set, dialect);
            failed |= traced.failed;
            passes.extend(traced.passes.into_iter().map(|pass| (set, pass)));
        }
        (passes, failed)
    }
}

pub struct Traced {
    pub passes: Vec<Pass>,
    /// Whether a pass could not be loaded or traced.
    pub failed: bool,
}

impl Matching {
    pub fn options(&self) -> MatchOptions {
        MatchOptions { commutative: self.commutative, ..MatchOptions::default() }
    }

    pub fn dialect(&self) -> Dialect {
        match self.semantics {
            Semantics::Default => Dialect::Plain,
            Semantics::Reference => Dialect::Fx,
        }
    }
}

/// A graph with the text it was read from.
pub fn read_graph(files: &GraphFiles) -> Result<(GraphFolder, Option<Source>), Vec<Diagnostic>> {
    let folder = read::read_folder(files)?;
    let source = files.source(FileName::Model).and_then(Result::ok);
    Ok((folder, source))
}

/// An error unless some pass was found.
pub fn require_some(sets: &[PassSet]) -> Result<(), CommandError> {
    if sets.iter().any(|set| !set.passes.is_empty()) {
        return Ok(());
    }
    // Without an error, a note says why a folder has no pass.
    let said = |set: &PassSet| match set.errors.is_empty() {
        true => set.notes.clone(),
        false => set.errors.clone(),
    };
    let errors: Vec<Diagnostic> = sets.iter().flat_map(said).collect();
    match errors.is_empty() {
        false => Err(CommandError::Located(errors)),
        true => Err(CommandError::input("no pass to work with")
            .with_hint("a pass folder lists its passes in `sorted_output_pass_rule_names.json`")),
    }
}
