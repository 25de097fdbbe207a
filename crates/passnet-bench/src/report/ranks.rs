//! Ranks, for `passnet report` and for the leaderboard alike.
//!
//! The first run of a rank is its best; whatever follows and cannot be told from it shares its rank, and the first run that
//! can be told from it begins the next. Every run is so compared once, graph by graph, however many there are.

use super::Conclusion;
use super::compare::overall;

/// The ranks, from 1, of runs that come best first. The first error of a run ends it.
pub fn ranks<R, E>(
    best_first: impl IntoIterator<Item = Result<R, E>>,
    is_told: impl Fn(&R, &R) -> bool,
) -> Result<Vec<usize>, E> {
    let mut ranks = Vec::new();
    let mut best: Option<(usize, R)> = None;
    for (index, run) in best_first.into_iter().enumerate() {
        let run = run?;
        let rank = match &best {
            Some((rank, first)) if !is_told(first, &run) => *rank,
            _ => {
                best = Some((index + 1, run));
                index + 1
            }
        };
        ranks.push(rank);
    }
    Ok(ranks)
}

/// Whether the tasks show that two runs differ. Of every graph that both have: its task, and how far apart the two are in
/// what it adds to AS; graphs by task and name, so that the same two runs are always told in the same way.
pub fn is_told<'a>(apart: impl Iterator<Item = (&'a str, f64)>) -> bool {
    let told = overall(apart).map(|found| found.conclusion);
    matches!(told, Some(Conclusion::Better | Conclusion::Worse))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Ranks of numbers that are told apart from two on.
    fn of(numbers: &[i32]) -> Vec<usize> {
        let runs = numbers.iter().map(|number| Ok::<_, ()>(*number));
        ranks(runs, |one, two| (one - two).abs() >= 2).unwrap()
    }

    #[test]
    fn runs_that_are_not_told_from_the_best_of_a_rank_share_it() {
        assert_eq!(of(&[]), [0; 0]);
        assert_eq!(of(&[9]), [1]);
        assert_eq!(of(&[9, 9, 9]), [1, 1, 1]);
        assert_eq!(of(&[9, 7, 5]), [1, 2, 3]);
        // 8 is told neither from 9 nor from 7: the best of the rank decides, and a chain does not swallow everything.
        assert_eq!(of(&[9, 8, 7, 6, 5]), [1, 1, 3, 3, 5]);
    }

    #[test]
    fn every_run_is_compared_once() {
        let asked = Cell::new(0);
        let runs = (0..1000).map(Ok::<_, ()>);
        let told = |_: &i32, _: &i32| {
            asked.set(asked.get() + 1);
            asked.get() % 3 == 0
        };
        assert_eq!(ranks(runs, told).unwrap().len(), 1000);
        assert_eq!(asked.get(), 999);
    }

    #[test]
    fn a_run_that_cannot_be_read_ends_it() {
        assert_eq!(ranks([Ok(1), Err("gone"), Ok(2)], |_, _| true), Err("gone"));
    }

    #[test]
    fn tasks_tell_runs_apart_and_too_few_do_not() {
        let names: Vec<String> = (0..12).map(|task| format!("task {task}")).collect();
        let apart = |by: f64, tasks: usize| {
            is_told(names.iter().take(tasks).map(|name| (name.as_str(), by)))
        };
        assert!(apart(0.5, 12) && apart(-0.5, 12));
        assert!(!apart(0.0, 12), "equal runs");
        assert!(!apart(0.005, 12), "less than one percent");
        assert!(!apart(0.5, 5), "too few");
        assert!(!apart(f64::NAN, 12), "no numbers");
    }
}
