//! From the grammar to op ranges: walk each graph's tree from the root and stop where a node has the right size.
//!
//! A node is a graph, a rule's symbol, or a run of plain ops beside symbols. A node that is too small gives
//! nothing, one that fits is emitted whole, one that is too large is opened. Plain ops are leaves of length one and
//! never emitted, so a large body without symbols gives nothing.

use super::grammar::Grammar;
use std::ops::Range;

/// The ranges of every graph, ascending and disjoint.
pub(super) fn emit(grammar: &Grammar, min_ops: usize, max_ops: usize) -> Vec<Vec<Range<usize>>> {
    let mut walk = Walk { grammar, min_ops: min_ops.max(2), max_ops, open: Vec::new() };
    grammar.roots.iter().map(|root| walk.graph(root)).collect()
}

struct Walk<'g> {
    grammar: &'g Grammar,
    min_ops: usize,
    max_ops: usize,
    /// Bodies still to be opened, with the op each begins at. A list instead of recursion: rules may nest as deep
    /// as there are folds.
    open: Vec<(&'g [u32], usize)>,
}

impl<'g> Walk<'g> {
    fn graph(&mut self, root: &'g [u32]) -> Vec<Range<usize>> {
        let mut emitted = Vec::new();
        self.node(root, 0, self.grammar.expanded_ops(root), &mut emitted);
        while let Some((body, start)) = self.open.pop() {
            self.open_body(body, start, &mut emitted);
        }
        emitted.sort_unstable_by_key(|range| range.start);
        emitted
    }

    fn node(&mut self, body: &'g [u32], start: usize, ops: usize, emitted: &mut Vec<Range<usize>>) {
        if ops < self.min_ops {
            return;
        }
        if ops < self.max_ops {
            emitted.push(start..start + ops);
        } else {
            self.open.push((body, start));
        }
    }

    fn open_body(&mut self, body: &'g [u32], mut start: usize, emitted: &mut Vec<Range<usize>>) {
        if body.iter().all(|&symbol| self.grammar.rule(symbol).is_none()) {
            return;
        }
        // A run of plain ops, or a single symbol.
        let parts = body
            .chunk_by(|&a, &b| self.grammar.rule(a).is_none() && self.grammar.rule(b).is_none());
        for part in parts {
            let rule = part.first().and_then(|&symbol| self.grammar.rule(symbol));
            let (inner, ops) = rule.map_or((part, part.len()), |rule| (&rule.body, rule.ops));
            self.node(inner, start, ops, emitted);
            start += ops;
        }
    }
}
