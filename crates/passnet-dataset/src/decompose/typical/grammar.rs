//! Folding: from op sequences to a grammar whose symbols stand for repeated windows.
//!
//! All graphs are laid end to end with a separator of its own after each, so that no window can cross a boundary
//! and repeat. A rule's body may use the symbols of earlier rules, never of later ones.

use super::repeat::{Repeat, best_repeat};
use super::{Fold, TooManyOps};

/// Positions and symbols are 32-bit numbers.
pub(super) const MAX_SYMBOLS: usize = u32::MAX as usize / 2;

/// Symbols below `first_rule` are plain ops; symbol `first_rule + i` stands for `rules[i]`.
#[derive(Debug)]
pub(super) struct Grammar {
    first_rule: u32,
    rules: Vec<Rule>,
    /// One body for each graph.
    pub(super) roots: Vec<Vec<u32>>,
}

#[derive(Debug)]
pub(super) struct Rule {
    pub(super) body: Vec<u32>,
    /// Plain ops in the full expansion.
    pub(super) ops: usize,
}

impl Grammar {
    /// The rule a symbol stands for, or `None` for a plain op.
    pub(super) fn rule(&self, symbol: u32) -> Option<&Rule> {
        symbol.checked_sub(self.first_rule).and_then(|i| self.rules.get(i as usize))
    }

    /// Plain ops in the full expansion of a body.
    pub(super) fn expanded_ops(&self, body: &[u32]) -> usize {
        body.iter().map(|&symbol| self.rule(symbol).map_or(1, |rule| rule.ops)).sum()
    }
}

pub(super) fn fold_graphs(
    graphs: &[Vec<u32>],
    window: usize,
    max_folds: usize,
) -> Result<(Grammar, Vec<Fold>), TooManyOps> {
    let symbols = graphs.iter().map(Vec::len).sum::<usize>() + graphs.len();
    if symbols.saturating_add(max_folds) > MAX_SYMBOLS {
        return Err(TooManyOps { symbols });
    }
    let names = distinct_names(graphs);
    let first_separator = names.len() as u32;
    let first_rule = first_separator + graphs.len() as u32;

    let mut text = Vec::with_capacity(symbols);
    for (graph, separator) in graphs.iter().zip(first_separator..) {
        text.extend(graph.iter().map(|name| names.partition_point(|known| known < name) as u32));
        text.push(separator);
    }

    let mut grammar = Grammar { first_rule, rules: Vec::new(), roots: Vec::new() };
    let mut folds = Vec::new();
    while folds.len() < max_folds {
        let Some(repeat) = best_repeat(&text, window) else { break };
        let Some((length, chosen)) = choose_disjoint(&repeat) else { break };
        let Some(&first) = chosen.first() else { break };
        folds.push(Fold {
            length: repeat.length,
            count: repeat.starts.len(),
            replaced_length: length,
            replaced_count: chosen.len(),
        });
        let body = text[first as usize..first as usize + length].to_vec();
        let ops = grammar.expanded_ops(&body);
        let symbol = first_rule + grammar.rules.len() as u32;
        grammar.rules.push(Rule { body, ops });
        text = replace(&text, &chosen, length, symbol);
    }

    let is_separator = |symbol: &u32| (first_separator..first_rule).contains(symbol);
    grammar.roots = text.split(is_separator).take(graphs.len()).map(<[u32]>::to_vec).collect();
    Ok((grammar, folds))
}

/// All names used, ascending; the index in this list is the name's symbol.
fn distinct_names(graphs: &[Vec<u32>]) -> Vec<u32> {
    let mut names = graphs.concat();
    names.sort_unstable();
    names.dedup();
    names
}

/// Occurrences taken greedily from the left so that none overlap. When fewer than two remain, the window is
/// shortened at its end until two fit; `None` when even two symbols do not.
fn choose_disjoint(repeat: &Repeat) -> Option<(usize, Vec<u32>)> {
    for length in (2..=repeat.length).rev() {
        let mut chosen: Vec<u32> = Vec::new();
        for &start in &repeat.starts {
            if chosen.last().is_none_or(|&last| start as usize >= last as usize + length) {
                chosen.push(start);
            }
        }
        if chosen.len() >= 2 {
            return Some((length, chosen));
        }
    }
    None
}

/// The text with every window that starts at one of `starts` (ascending, disjoint) replaced by `symbol`.
fn replace(text: &[u32], starts: &[u32], length: usize, symbol: u32) -> Vec<u32> {
    let mut folded = Vec::with_capacity(text.len() - starts.len() * (length - 1));
    let mut done = 0;
    for &start in starts {
        folded.extend_from_slice(&text[done..start as usize]);
        folded.push(symbol);
        done = start as usize + length;
    }
    folded.extend_from_slice(&text[done..]);
    folded
}
