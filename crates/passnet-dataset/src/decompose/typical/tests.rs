//! Small cases by hand, then random lists against a plain restatement of the rules that counts every window.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Op sequences written as words: one letter, one op.
fn graphs(words: &[&str]) -> Vec<Vec<u32>> {
    words.iter().map(|word| word.chars().map(u32::from).collect()).collect()
}

fn pieces(words: &[&str], options: TypicalOptions) -> TypicalPieces {
    typical_pieces(&graphs(words), &options).unwrap()
}

/// Cuts each word at its ranges, so that expectations can be read.
fn cut(words: &[&str], options: TypicalOptions) -> Vec<Vec<String>> {
    let found = pieces(words, options).ranges;
    let cut_word = |(word, ranges): (&&str, Vec<Range<usize>>)| {
        ranges.into_iter().map(|range| word[range].to_string()).collect()
    };
    words.iter().zip(found).map(cut_word).collect()
}

const SMALL: TypicalOptions = TypicalOptions { window: 8, folds: 4, min_ops: 2, max_ops: 6 };

#[test]
fn a_small_graph_is_one_piece_and_a_large_one_without_repeats_gives_none() {
    assert_eq!(cut(&["abc", "a", "", "uvwxyz"], SMALL), [vec!["abc"], vec![], vec![], vec![]]);
}

#[test]
fn repeats_and_the_runs_between_them_become_pieces() {
    assert_eq!(
        cut(&["abcdxyabcdz", "abcdqrs"], SMALL),
        [vec!["abcd", "xy", "abcd"], vec!["abcd", "qrs"],]
    );
}

#[test]
fn a_repeat_that_is_too_large_is_opened() {
    // First fold: the whole of `abcabcz` twice; inside it, `abc` twice more.
    let options = TypicalOptions { max_ops: 4, ..SMALL };
    assert_eq!(cut(&["abcabczabcabcz"], options), [["abc", "abc", "abc", "abc"]]);
}

#[test]
fn windows_never_cross_a_graph_boundary() {
    let found = pieces(&["ab", "ab", "ab"], SMALL);
    assert_eq!(found.folds[0].length, 2);
    assert_eq!(cut(&["ab", "ab", "ab"], SMALL), [["ab"], ["ab"], ["ab"]]);
}

#[test]
fn equal_scores_go_to_the_shorter_window_and_then_to_the_earlier() {
    // `ab` three times and `xyz` twice both score 2.
    let shorter = pieces(&["xyz1xyz2ab3ab4ab5"], TypicalOptions { folds: 1, ..SMALL });
    assert_eq!((shorter.folds[0].length, shorter.folds[0].count), (2, 3));
    // `vw` and `ab` score alike: the one that is seen first is folded.
    let earlier = TypicalOptions { folds: 1, max_ops: 3, ..SMALL };
    assert_eq!(cut(&["vw1ab2ab3vw"], earlier)[0].first().unwrap(), "vw");
}

#[test]
fn overlapping_occurrences_count_but_only_disjoint_ones_are_replaced() {
    let found = pieces(&["aaaaa"], TypicalOptions { folds: 1, ..SMALL });
    // `aaa` three times (score 4) beats `aa` four times (score 3), but only one of the three is disjoint.
    assert_eq!(found.folds, [Fold { length: 3, count: 3, replaced_length: 2, replaced_count: 2 }]);
}

#[test]
fn folding_stops_when_no_two_occurrences_are_disjoint() {
    // `aa` overlaps itself and cannot be shortened further.
    assert_eq!(pieces(&["aaa"], SMALL).folds, []);
}

#[test]
fn nothing_is_emitted_outside_the_size_limits() {
    let options = TypicalOptions { min_ops: 4, ..SMALL };
    assert_eq!(cut(&["abcdxyabcdz"], options), [["abcd", "abcd"]]);
    let none = TypicalOptions { window: 0, folds: 0, min_ops: 0, max_ops: 0 };
    assert_eq!(cut(&["abab"], none), [Vec::<String>::new()]);
}

/// The rules again, with every window of every length counted in a map.
mod plain {
    use super::*;

    #[derive(Clone, Debug)]
    pub(super) enum Symbol {
        Op(u32),
        Boundary(usize),
        Rule(usize, Vec<Symbol>),
    }

    impl Symbol {
        fn key(&self) -> (u8, usize) {
            match self {
                Symbol::Op(name) => (0, *name as usize),
                Symbol::Boundary(graph) => (1, *graph),
                Symbol::Rule(fold, _) => (2, *fold),
            }
        }

        fn ops(&self) -> usize {
            match self {
                Symbol::Rule(_, body) => body.iter().map(Symbol::ops).sum(),
                _ => 1,
            }
        }
    }

    pub(super) fn search(graphs: &[Vec<u32>], options: &TypicalOptions) -> TypicalPieces {
        let mut text: Vec<Symbol> = Vec::new();
        for (i, graph) in graphs.iter().enumerate() {
            text.extend(graph.iter().map(|&name| Symbol::Op(name)));
            text.push(Symbol::Boundary(i));
        }
        let mut folds = Vec::new();
        while folds.len() < options.folds && fold(&mut text, options.window, &mut folds) {}
        let roots = text.split(|symbol| matches!(symbol, Symbol::Boundary(_)));
        let mut ranges: Vec<Vec<Range<usize>>> = roots
            .map(|root| {
                let mut emitted = Vec::new();
                walk(&Symbol::Rule(usize::MAX, root.to_vec()), 0, options, &mut emitted);
                emitted.retain(|range| range.len() > 1);
                emitted
            })
            .collect();
        ranges.pop();
        TypicalPieces { ranges, folds }
    }

    fn fold(text: &mut Vec<Symbol>, window: usize, folds: &mut Vec<Fold>) -> bool {
        let keys: Vec<_> = text.iter().map(Symbol::key).collect();
        let mut best: Option<(u64, Vec<usize>, usize)> = None;
        for length in 2..=window.min(keys.len()) {
            let mut windows: BTreeMap<_, Vec<usize>> = BTreeMap::new();
            for (start, content) in keys.windows(length).enumerate() {
                windows.entry(content).or_default().push(start);
            }
            let mut by_first: Vec<_> = windows.into_values().collect();
            by_first.sort();
            for starts in by_first {
                let score = ((length - 1) * (starts.len() - 1)) as u64;
                if score > best.as_ref().map_or(0, |(best, ..)| *best) {
                    best = Some((score, starts, length));
                }
            }
        }
        let Some((_, starts, found)) = best else { return false };
        let mut length = found;
        while length > 1 {
            let mut chosen: Vec<usize> = Vec::new();
            for &start in &starts {
                if chosen.iter().all(|&other| start >= other + length) {
                    chosen.push(start);
                }
            }
            if chosen.len() >= 2 {
                let symbol =
                    Symbol::Rule(folds.len(), text[chosen[0]..chosen[0] + length].to_vec());
                for &start in chosen.iter().rev() {
                    text.splice(start..start + length, [symbol.clone()]);
                }
                folds.push(Fold {
                    length: found,
                    count: starts.len(),
                    replaced_length: length,
                    replaced_count: chosen.len(),
                });
                return true;
            }
            length -= 1;
        }
        false
    }

    fn walk(node: &Symbol, start: usize, options: &TypicalOptions, out: &mut Vec<Range<usize>>) {
        let ops = node.ops();
        if ops < options.min_ops {
            return;
        }
        if ops < options.max_ops {
            out.push(start..start + ops);
            return;
        }
        let Symbol::Rule(_, body) = node else { return };
        let mut at = start;
        for child in wrap_runs(body) {
            walk(&child, at, options, out);
            at += child.ops();
        }
    }

    fn wrap_runs(body: &[Symbol]) -> Vec<Symbol> {
        let is_op = |symbol: &Symbol| matches!(symbol, Symbol::Op(_));
        if body.iter().all(is_op) {
            return body.to_vec();
        }
        let mut children = Vec::new();
        for run in body.chunk_by(|a, b| is_op(a) == is_op(b)) {
            if is_op(&run[0]) {
                children.push(Symbol::Rule(usize::MAX, run.to_vec()));
            } else {
                children.extend_from_slice(run);
            }
        }
        children
    }
}

fn any_graphs() -> impl Strategy<Value = Vec<Vec<u32>>> {
    // Few names, so that repeats, overlaps and ties are common; blocks repeated, so that folds nest.
    let random = prop::collection::vec(0u32..4, 0..40);
    let block = prop::collection::vec(0u32..6, 1..7);
    let repeated = (block, 1usize..6, prop::collection::vec(0u32..6, 0..5)).prop_map(
        |(block, times, tail)| {
            let mut graph = block.repeat(times);
            graph.extend(tail);
            graph
        },
    );
    prop::collection::vec(prop_oneof![random, repeated], 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn equals_the_plain_restatement(
        graphs in any_graphs(),
        window in 1usize..24,
        folds in 0usize..8,
        min_ops in 0usize..6,
        size in 0usize..20,
    ) {
        let options = TypicalOptions { window, folds, min_ops, max_ops: min_ops + size };
        prop_assert_eq!(typical_pieces(&graphs, &options).unwrap(), plain::search(&graphs, &options));
    }

    #[test]
    fn ranges_are_ascending_disjoint_and_of_the_right_size(graphs in any_graphs()) {
        let options = TypicalOptions { min_ops: 3, max_ops: 9, ..TypicalOptions::default() };
        let found = typical_pieces(&graphs, &options).unwrap();
        for (graph, ranges) in graphs.iter().zip(&found.ranges) {
            prop_assert!(ranges.iter().all(|range| (3..9).contains(&range.len())));
            prop_assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start));
            prop_assert!(ranges.last().is_none_or(|last| last.end <= graph.len()));
        }
    }
}
