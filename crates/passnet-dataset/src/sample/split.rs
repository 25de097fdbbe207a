//! Evaluation and training tasks.
//!
//! The evaluation side should show as many different *op transitions* (one op followed by another) as possible with
//! few tasks, rare ones above all. So op sequences are chosen greedily: each time the one with the most transitions
//! not yet shown, weighted by how unusual the sequence is under a first-order Markov model of the whole corpus.
//! Everything else is for training, except tasks that share a structure with an evaluation task: those are withheld
//! from both sides, since a model trained on them would have seen the exam.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// Added to every transition count, so that nothing has probability zero.
const SMOOTHING: f64 = 0.001;

/// Identity of a graph's structure: ops and topology without shapes, literals or names.
pub type StructureDigest = [u8; 32];

/// One task, as far as the split looks at it.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// The op sequence its members share.
    pub ops: &'a [String],
    /// The structure of each member.
    pub structures: &'a [StructureDigest],
}

/// Two sides and what belongs to neither; numbers are positions in the list of tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Split {
    /// In the order given.
    pub evaluation: Vec<usize>,
    /// Ascending.
    pub training: Vec<usize>,
    /// Ascending by task.
    pub withheld: Vec<Overlap>,
}

/// A task and an evaluation task that share a structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overlap {
    pub task: usize,
    pub evaluation: usize,
    pub structure: StructureDigest,
}

/// Chooses up to `count` evaluation tasks, best first, with pairwise different op sequences.
///
/// A sequence is represented by its task with the most members. Ties between sequences go to more new transitions,
/// higher rarity, more transitions in all, and the earlier task.
pub fn choose_evaluation(tasks: &[Task<'_>], count: usize) -> Vec<usize> {
    let sequences = distinct_sequences(tasks);
    let transitions = Transitions::count(&sequences);
    let mut candidates = transitions.candidates(&sequences);

    // Lazy greedy: a candidate's worth only falls as others are chosen, so the top of the heap is the best as soon
    // as its own worth is up to date.
    let mut shown = vec![false; transitions.edges];
    let mut queue: BinaryHeap<Worth> =
        candidates.iter().enumerate().map(|(i, c)| c.worth(i, c.edges.len())).collect();
    let mut chosen = Vec::new();
    while chosen.len() < count {
        let Some(best) = queue.pop() else { break };
        let candidate = &mut candidates[best.candidate.0];
        candidate.unseen.retain(|&edge| !shown[edge as usize]);
        if candidate.unseen.len() < best.new_edges {
            let worth = candidate.worth(best.candidate.0, candidate.unseen.len());
            queue.push(worth);
            continue;
        }
        candidate.unseen.iter().for_each(|&edge| shown[edge as usize] = true);
        chosen.push(sequences[best.candidate.0].representative);
    }
    chosen
}

/// Puts every task that is not for evaluation on the training side, unless it shares a structure with one that is.
pub fn split(tasks: &[Task<'_>], evaluation: &[usize]) -> Split {
    let for_evaluation: BTreeSet<usize> = evaluation.iter().copied().collect();
    let rest = || (0..tasks.len()).filter(|task| !for_evaluation.contains(task));
    let mut withheld = overlaps(tasks, evaluation, rest());
    withheld.dedup_by_key(|overlap| overlap.task);
    let is_withheld = |task: &usize| withheld.binary_search_by_key(task, |o| o.task).is_ok();
    let training = rest().filter(|task| !is_withheld(task)).collect();
    Split { evaluation: evaluation.to_vec(), training, withheld }
}

/// Every training task that shares a structure with an evaluation task, once for each structure shared. A split
/// made by [`split`] has none.
pub fn violations(tasks: &[Task<'_>], split: &Split) -> Vec<Overlap> {
    overlaps(tasks, &split.evaluation, split.training.iter().copied())
}

/// For each task of `others` in turn, the structures it shares with an evaluation task.
fn overlaps(
    tasks: &[Task<'_>],
    evaluation: &[usize],
    others: impl Iterator<Item = usize>,
) -> Vec<Overlap> {
    let structures = |task: usize| tasks.get(task).map_or(&[][..], |task| task.structures);
    let mut owner: BTreeMap<StructureDigest, usize> = BTreeMap::new();
    for &task in evaluation {
        for structure in structures(task) {
            owner.entry(*structure).or_insert(task);
        }
    }
    let mut found = Vec::new();
    for task in others {
        let distinct: BTreeSet<StructureDigest> = structures(task).iter().copied().collect();
        for structure in distinct {
            if let Some(&evaluation) = owner.get(&structure) {
                found.push(Overlap { task, evaluation, structure });
            }
        }
    }
    found
}

/// One op sequence and the task that stands for it.
struct Sequence<'a> {
    ops: &'a [String],
    representative: usize,
}

/// The different op sequences, in order of first appearance.
fn distinct_sequences<'a>(tasks: &[Task<'a>]) -> Vec<Sequence<'a>> {
    let mut index: BTreeMap<&[String], usize> = BTreeMap::new();
    let mut sequences: Vec<Sequence<'a>> = Vec::new();
    for (number, task) in tasks.iter().enumerate() {
        let at = *index.entry(task.ops).or_insert(sequences.len());
        match sequences.get_mut(at) {
            None => sequences.push(Sequence { ops: task.ops, representative: number }),
            Some(known) => {
                let members = tasks[known.representative].structures.len();
                if task.structures.len() > members {
                    known.representative = number;
                }
            }
        }
    }
    sequences
}

/// How often each op follows each other op, over all different sequences.
struct Transitions<'a> {
    /// Count of a pair of ops, and the number it is known by.
    pairs: BTreeMap<(&'a str, &'a str), (usize, u32)>,
    /// How often an op is followed by anything.
    followed: BTreeMap<&'a str, usize>,
    /// How many different ops there are.
    vocabulary: usize,
    /// How many different pairs there are.
    edges: usize,
}

fn pairs_of(ops: &[String]) -> impl Iterator<Item = (&str, &str)> {
    ops.windows(2).map(|pair| (pair[0].as_str(), pair[1].as_str()))
}

impl<'a> Transitions<'a> {
    fn count(sequences: &[Sequence<'a>]) -> Self {
        let mut pairs = BTreeMap::new();
        let mut followed = BTreeMap::new();
        let mut vocabulary = BTreeSet::new();
        for sequence in sequences {
            vocabulary.extend(sequence.ops.iter().map(String::as_str));
            for pair in pairs_of(sequence.ops) {
                let number = pairs.len() as u32;
                pairs.entry(pair).or_insert((0, number)).0 += 1;
                *followed.entry(pair.0).or_insert(0) += 1;
            }
        }
        Self { edges: pairs.len(), pairs, followed, vocabulary: vocabulary.len() }
    }

    /// Each sequence with its transitions and its rarity.
    fn candidates(&self, sequences: &[Sequence<'a>]) -> Vec<Candidate> {
        let rarities: Vec<f64> = sequences.iter().map(|s| self.rarity(s.ops)).collect();
        let low = rarities.iter().copied().fold(f64::INFINITY, f64::min);
        let high = rarities.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let candidate = |(sequence, &rarity): (&Sequence<'a>, &f64)| {
            let numbers = pairs_of(sequence.ops).filter_map(|pair| self.pairs.get(&pair));
            let edges: BTreeSet<u32> = numbers.map(|&(_, number)| number).collect();
            let edges: Vec<u32> = edges.into_iter().collect();
            let weight = if high > low { (rarity - low) / (high - low) } else { 0.0 };
            Candidate { unseen: edges.clone(), edges, rarity, weight }
        };
        sequences.iter().zip(&rarities).map(candidate).collect()
    }

    /// Mean surprise of a sequence's transitions; 0 for a sequence without any.
    fn rarity(&self, ops: &[String]) -> f64 {
        let surprise = |pair: (&str, &str)| {
            let seen = self.pairs.get(&pair).map_or(0, |&(count, _)| count);
            let followed = self.followed.get(pair.0).copied().unwrap_or(0);
            let total = followed as f64 + SMOOTHING * self.vocabulary as f64;
            -((seen as f64 + SMOOTHING) / total).ln()
        };
        let transitions = ops.len().saturating_sub(1);
        if transitions == 0 {
            0.0
        } else {
            pairs_of(ops).map(surprise).sum::<f64>() / transitions as f64
        }
    }
}

struct Candidate {
    /// Different transitions.
    edges: Vec<u32>,
    /// Those that no chosen sequence showed when last looked at.
    unseen: Vec<u32>,
    rarity: f64,
    /// Rarity scaled to 0..1 over all sequences.
    weight: f64,
}

impl Candidate {
    fn worth(&self, index: usize, new_edges: usize) -> Worth {
        Worth {
            score: new_edges as f64 * (1.0 + self.weight),
            new_edges,
            rarity: self.rarity,
            edges: self.edges.len(),
            candidate: Reverse(index),
        }
    }
}

/// What a candidate would bring now; the fields are compared in order.
#[derive(Debug)]
struct Worth {
    score: f64,
    new_edges: usize,
    rarity: f64,
    edges: usize,
    candidate: Reverse<usize>,
}

impl Ord for Worth {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score
            .total_cmp(&other.score)
            .then(self.new_edges.cmp(&other.new_edges))
            .then(self.rarity.total_cmp(&other.rarity))
            .then(self.edges.cmp(&other.edges))
            .then(self.candidate.cmp(&other.candidate))
    }
}

impl PartialOrd for Worth {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Worth {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Worth {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Tasks written as op words (one letter, one op) and structure numbers.
    struct Written {
        ops: Vec<Vec<String>>,
        structures: Vec<Vec<StructureDigest>>,
    }

    impl Written {
        fn new(tasks: &[(&str, &[u8])]) -> Self {
            let letters = |word: &str| word.chars().map(String::from).collect();
            let digests = |numbers: &[u8]| numbers.iter().map(|&n| [n; 32]).collect();
            Self {
                ops: tasks.iter().map(|(word, _)| letters(word)).collect(),
                structures: tasks.iter().map(|(_, numbers)| digests(numbers)).collect(),
            }
        }

        fn tasks(&self) -> Vec<Task<'_>> {
            let pairs = self.ops.iter().zip(&self.structures);
            pairs.map(|(ops, structures)| Task { ops, structures }).collect()
        }
    }

    fn chosen(words: &[&str], count: usize) -> Vec<usize> {
        let tasks: Vec<(&str, &[u8])> = words.iter().map(|word| (*word, &[][..])).collect();
        choose_evaluation(&Written::new(&tasks).tasks(), count)
    }

    #[test]
    fn the_sequence_with_most_new_transitions_comes_first() {
        assert_eq!(chosen(&["ab", "abcde", "de", "xyz"], 4), [1, 3, 0, 2]);
        assert_eq!(chosen(&["ab", "cd"], 9), [0, 1]);
        assert_eq!(chosen(&[], 3), [0; 0]);
    }

    #[test]
    fn rare_transitions_outweigh_common_ones() {
        // `ab` is common, `xy` and `xq` share one predecessor: each is a surprise.
        assert_eq!(chosen(&["abab", "baba", "xyx", "xqx"], 1), [2]);
    }

    #[test]
    fn a_sequence_is_represented_by_its_largest_task() {
        let written = Written::new(&[("ab", &[1]), ("ab", &[2, 3]), ("ab", &[4, 5])]);
        assert_eq!(choose_evaluation(&written.tasks(), 5), [1]);
    }

    #[test]
    fn tasks_that_share_a_structure_with_the_exam_are_withheld() {
        let written = Written::new(&[("ab", &[1, 2]), ("ab", &[9]), ("cab", &[3, 2]), ("x", &[4])]);
        let tasks = written.tasks();
        let made = split(&tasks, &[0]);
        let overlap = Overlap { task: 2, evaluation: 0, structure: [2; 32] };
        assert_eq!(
            made,
            Split { evaluation: vec![0], training: vec![1, 3], withheld: vec![overlap] }
        );
        assert_eq!(violations(&tasks, &made), []);

        let leaky = Split { training: vec![1, 2, 3], ..made.clone() };
        assert_eq!(violations(&tasks, &leaky), [overlap]);
        let doubled = Split { training: vec![0], ..made };
        assert_eq!(violations(&tasks, &doubled).len(), 2);
    }

    /// The choice again: every worth computed anew in every round.
    fn plain_choice(words: &[Vec<String>], count: usize) -> Vec<usize> {
        let pairs = |word: &[String]| -> Vec<(String, String)> {
            word.windows(2).map(|w| (w[0].clone(), w[1].clone())).collect()
        };
        let mut distinct: Vec<usize> = Vec::new();
        for (i, word) in words.iter().enumerate() {
            if distinct.iter().all(|&j| &words[j] != word) {
                distinct.push(i);
            }
        }
        let all: Vec<_> = distinct.iter().flat_map(|&i| pairs(&words[i])).collect();
        let letters: BTreeSet<&String> = distinct.iter().flat_map(|&i| &words[i]).collect();
        let rarity = |word: &[String]| {
            let pairs = pairs(word);
            let surprise = |pair: &(String, String)| {
                let seen = all.iter().filter(|p| *p == pair).count() as f64;
                let from = all.iter().filter(|p| p.0 == pair.0).count() as f64;
                -((seen + 0.001) / (from + 0.001 * letters.len() as f64)).ln()
            };
            if pairs.is_empty() {
                0.0
            } else {
                pairs.iter().map(surprise).sum::<f64>() / pairs.len() as f64
            }
        };
        let rarities: Vec<f64> = distinct.iter().map(|&i| rarity(&words[i])).collect();
        let low = rarities.iter().copied().fold(f64::INFINITY, f64::min);
        let high = rarities.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut shown = BTreeSet::new();
        let mut chosen = Vec::new();
        while chosen.len() < count.min(distinct.len()) {
            let mut best: Option<((f64, usize, f64, usize), usize)> = None;
            for (at, &i) in distinct.iter().enumerate() {
                if chosen.contains(&i) {
                    continue;
                }
                let edges: BTreeSet<_> = pairs(&words[i]).into_iter().collect();
                let new = edges.difference(&shown).count();
                let scaled = if high > low { (rarities[at] - low) / (high - low) } else { 0.0 };
                let worth = (new as f64 * (1.0 + scaled), new, rarities[at], edges.len());
                if best.is_none_or(|(other, _)| worth > other) {
                    best = Some((worth, i));
                }
            }
            let (_, i) = best.unwrap();
            shown.extend(pairs(&words[i]));
            chosen.push(i);
        }
        chosen
    }

    proptest! {
        #[test]
        fn lazy_choice_equals_the_plain_one(
            words in prop::collection::vec("[a-e]{0,7}", 0..25),
            count in 0usize..30,
        ) {
            let listed: Vec<(&str, &[u8])> = words.iter().map(|w| (w.as_str(), &[][..])).collect();
            let written = Written::new(&listed);
            let plain = plain_choice(&written.ops, count);
            prop_assert_eq!(choose_evaluation(&written.tasks(), count), plain);
        }

        #[test]
        fn a_split_loses_nothing_and_never_overlaps(
            structures in prop::collection::vec(prop::collection::vec(0u8..30, 0..4), 1..30),
            count in 0usize..8,
        ) {
            let listed: Vec<(String, &[u8])> =
                structures.iter().enumerate().map(|(i, s)| ("ab".repeat(i + 1), s.as_slice())).collect();
            let listed: Vec<(&str, &[u8])> = listed.iter().map(|(w, s)| (w.as_str(), *s)).collect();
            let written = Written::new(&listed);
            let tasks = written.tasks();
            let made = split(&tasks, &choose_evaluation(&tasks, count));
            prop_assert_eq!(violations(&tasks, &made), vec![]);
            let withheld = made.withheld.iter().map(|overlap| overlap.task);
            let mut all: Vec<usize> =
                made.evaluation.iter().chain(&made.training).copied().chain(withheld).collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..tasks.len()).collect::<Vec<_>>());
        }
    }
}
