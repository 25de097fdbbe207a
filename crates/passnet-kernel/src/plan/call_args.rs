//! What a call is given.

use super::value::Value;
use passnet_graph::syntax::TextRange;

#[derive(Debug, Clone)]
pub(super) struct CallArgs<'a> {
    pub(super) positional: Vec<Value<'a>>,
    pub(super) named: Vec<(String, Value<'a>)>,
    pub(super) range: TextRange,
}

impl<'a> CallArgs<'a> {
    pub(super) fn of(positional: Vec<Value<'a>>, range: TextRange) -> Self {
        CallArgs { positional, named: Vec::new(), range }
    }

    pub(super) fn named(&self, name: &str) -> Option<Value<'a>> {
        self.named.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone())
    }

    /// By position or by name.
    pub(super) fn get(&self, index: usize, name: &str) -> Option<Value<'a>> {
        self.positional.get(index).cloned().or_else(|| self.named(name))
    }
}
