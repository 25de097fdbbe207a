//! What is compared with eager.

use passnet_engine::GraphCompiler;

/// What is compared with eager. `P` is what is known of the passes: nothing yet, a candidate, a rewritten graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject<P = ()> {
    /// Graphs rewritten by passes.
    Passes(P),
    /// Eager itself: whatever differs is noise.
    Eager,
    /// The graph as a compiler makes it, where the engine has that compiler.
    Compiled(GraphCompiler),
}

impl Subject {
    /// The passes of a folder.
    pub const PASSES: Subject = Subject::Passes(());

    /// The word of `--compiler` and of stored runs.
    pub const fn name(self) -> &'static str {
        match self {
            Subject::Passes(()) => "pass",
            Subject::Eager => "eager",
            Subject::Compiled(compiler) => compiler.name(),
        }
    }

    /// `None` for a compiler that is not known.
    pub fn from_name(name: &str) -> Option<Subject> {
        let known = [Subject::PASSES, Subject::Eager].into_iter();
        let compilers = GraphCompiler::ALL.into_iter().map(Subject::Compiled);
        known.chain(compilers).find(|subject| subject.name() == name)
    }

    /// Whether a run of this name was made without passes.
    pub fn is_baseline(name: &str) -> bool {
        Subject::from_name(name).is_some_and(|subject| subject != Subject::PASSES)
    }
}

impl<P> Subject<P> {
    /// The same with its passes borrowed.
    pub fn as_ref(&self) -> Subject<&P> {
        match self {
            Subject::Passes(passes) => Subject::Passes(passes),
            Subject::Eager => Subject::Eager,
            Subject::Compiled(compiler) => Subject::Compiled(*compiler),
        }
    }

    /// The same without its passes.
    pub fn kind(&self) -> Subject {
        self.as_ref().map(|_| ())
    }

    /// Whether passes are under test, and no compiler.
    pub fn has_passes(&self) -> bool {
        matches!(self, Subject::Passes(_))
    }

    /// What rewrites graphs, if anything does.
    pub fn passes(self) -> Option<P> {
        match self {
            Subject::Passes(passes) => Some(passes),
            Subject::Eager | Subject::Compiled(_) => None,
        }
    }

    /// The same subject with more known of its passes.
    pub fn map<Q>(self, of: impl FnOnce(P) -> Q) -> Subject<Q> {
        match self {
            Subject::Passes(passes) => Subject::Passes(of(passes)),
            Subject::Eager => Subject::Eager,
            Subject::Compiled(compiler) => Subject::Compiled(compiler),
        }
    }

    /// As [`map`](Self::map), where that may fail.
    pub fn try_map<Q, E>(self, of: impl FnOnce(P) -> Result<Q, E>) -> Result<Subject<Q>, E> {
        Ok(match self.map(of) {
            Subject::Passes(passes) => Subject::Passes(passes?),
            Subject::Eager => Subject::Eager,
            Subject::Compiled(compiler) => Subject::Compiled(compiler),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_found_again_by_its_name() {
        let compilers = GraphCompiler::ALL.into_iter().map(Subject::Compiled);
        for subject in [Subject::PASSES, Subject::Eager].into_iter().chain(compilers) {
            assert_eq!(Subject::from_name(subject.name()), Some(subject));
        }
        assert_eq!(Subject::from_name("nothing"), None);
    }

    #[test]
    fn a_baseline_is_what_has_no_passes() {
        assert!(!Subject::is_baseline("pass") && !Subject::is_baseline("nothing"));
        assert!(Subject::is_baseline("eager") && Subject::is_baseline("inductor"));
    }
}
