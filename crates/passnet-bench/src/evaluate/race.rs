//! How fast is the candidate?

use super::case::{Case, copies};
use super::verification::no_memory;
use super::{EvaluateOptions, Evaluation, candidate_failure, eager_failure};
use crate::timing::{self, InTurns, Rounds, Side, TimingOptions, Timings};
use crate::verdict::{Verdict, VerdictKind};
use passnet_engine::dump::output_tensors;
use passnet_engine::native::{Fingerprint, FingerprintKey, TensorError};
use passnet_engine::{Player, Prepared, RunOptions, Staged, Value};
use std::time::Instant;

/// Times both sides and writes the result into the evaluation. Every call of the candidate must give, bit by bit,
/// the outputs that were verified.
pub(super) fn time(
    case: &Case,
    verified: Vec<Vec<Value>>,
    options: &EvaluateOptions,
    evaluation: &mut Evaluation,
) -> Result<(), Box<Verdict>> {
    let started = Instant::now();
    let run_options = case.run_options(false);
    let staged = case
        .candidate
        .stage(&*case.eager, &case.draws, &verified, &run_options)
        .map_err(|error| candidate_failure(&error))?;
    let timings = match staged {
        Some(staged) => {
            let mut remote = Remote::new(staged, case);
            let timings = timing::race(&mut remote, &options.timing)?;
            let mut costs = |player| match remote.staged.costs(player) {
                Ok(costs) => Ok(costs.into()),
                Err(error) => Err(candidate_failure(&error)),
            };
            evaluation.eager_costs = costs(Player::Eager)?;
            evaluation.candidate_costs = costs(Player::Candidate)?;
            timings
        }
        None => {
            // Verification has called both sides already, each call by itself: that much of the warm-up is done.
            let calls = case.calls();
            let mut plan = options.timing.clone();
            plan.warmup = plan.warmup.saturating_sub(calls.of_each_side());
            evaluation.measured_seconds = calls.seconds;
            let mut eager = Runner::new(case, Player::Eager);
            let mut candidate = Runner::new(case, Player::Candidate);
            candidate.expect(verified)?;
            timing::race(&mut in_turns(&mut eager, &mut candidate), &plan)?
        }
    };
    evaluation.measured_seconds += timings.measured;
    evaluation.interval = timing::interval(&timings);
    evaluation.judged.speedup = evaluation.interval.map(|interval| interval.ratio);
    evaluation.decision = evaluation.interval.map(|interval| interval.decide(options.noise_floor));
    evaluation.spent.around_calls = started.elapsed().as_secs_f64() - timings.measured;
    let milliseconds = |seconds: &[f64]| seconds.iter().map(|s| s * 1e3).collect();
    evaluation.eager_ms = milliseconds(&timings.eager);
    evaluation.candidate_ms = milliseconds(&timings.candidate);
    Ok(())
}

/// Times eager against itself, in turns and one after the other.
pub(super) fn against_itself(
    case: &Case,
    options: &EvaluateOptions,
) -> Result<[Timings; 2], Box<Verdict>> {
    let run_options = case.run_options(false);
    let staged = case
        .eager
        .stage(&*case.eager, &case.draws, &[], &run_options)
        .map_err(|error| eager_failure(&error))?;
    if let Some(staged) = staged {
        let mut remote = Remote::new(staged, case);
        let turns = timing::race(&mut remote, &options.timing)?;
        return Ok([turns, remote.one_after_the_other(&options.timing)?]);
    }
    let side = |player| Runner { side: &*case.eager, ..Runner::new(case, player) };
    let sides = || (side(Player::Eager), side(Player::Candidate));
    let (mut one, mut two) = sides();
    let turns = timing::race(&mut in_turns(&mut one, &mut two), &options.timing)?;
    let (mut one, mut two) = sides();
    let alone = timing::one_after_the_other(&mut one, &mut two, &options.timing)?;
    Ok([turns, alone])
}

fn in_turns<'a>(
    eager: &'a mut Runner<'_>,
    candidate: &'a mut Runner<'_>,
) -> InTurns<'a, Box<Verdict>> {
    InTurns { eager, candidate }
}

/// Both sides where an engine computes elsewhere and times the calls there.
struct Remote<'a> {
    staged: Box<dyn Staged + 'a>,
    draws: usize,
    /// Seconds of a round, all told, as the last request showed.
    round: Option<f64>,
}

/// A request should take about this long: between requests the other process sleeps, and wakes up slow.
const REQUEST_SECONDS: f64 = 0.05;
const MOST_ROUNDS: usize = 25;
/// Played before anything is known.
const FIRST_ROUNDS: usize = 2;

impl<'a> Remote<'a> {
    fn new(staged: Box<dyn Staged + 'a>, case: &Case) -> Remote<'a> {
        Remote { staged, draws: case.draws.len(), round: None }
    }

    fn calls(&mut self, turns: &[(Player, usize)]) -> Result<Vec<f64>, Box<Verdict>> {
        let called = self.staged.calls(turns).map_err(|error| candidate_failure(&error))?;
        match called.iter().find_map(|call| call.different_output) {
            Some(output) => Err(unstable(output)),
            None => Ok(called.iter().map(|call| call.seconds).collect()),
        }
    }

    /// The reference's way, for comparison.
    fn one_after_the_other(&mut self, options: &TimingOptions) -> Result<Timings, Box<Verdict>> {
        let mut alone = |player| -> Result<Vec<f64>, Box<Verdict>> {
            let turns: Vec<_> =
                (0..options.warmup + options.trials).map(|n| (player, n % self.draws)).collect();
            let times = self.calls(&turns)?;
            Ok(times[options.warmup.min(times.len())..].to_vec())
        };
        let (candidate, eager) = (alone(Player::Candidate)?, alone(Player::Eager)?);
        let measured = candidate.iter().chain(&eager).sum();
        Ok(Timings::new(eager, candidate, measured))
    }
}

impl Rounds for Remote<'_> {
    type Error = Box<Verdict>;

    fn warm_up(&mut self, first: usize, count: usize) -> Result<f64, Box<Verdict>> {
        Ok(self.play(first, count)?.iter().flatten().sum())
    }

    fn play(&mut self, first: usize, count: usize) -> Result<Vec<[f64; 2]>, Box<Verdict>> {
        let rounds = first..first + count;
        // As in this process: who goes first changes.
        let order = |round: usize| match round.is_multiple_of(2) {
            true => [Player::Eager, Player::Candidate],
            false => [Player::Candidate, Player::Eager],
        };
        let turns: Vec<(Player, usize)> = rounds
            .clone()
            .flat_map(|round| {
                order(round).map(|player| (player, draw_of(player, round, self.draws)))
            })
            .collect();
        let started = Instant::now();
        let times = self.calls(&turns)?;
        self.round = Some(started.elapsed().as_secs_f64() / count.max(1) as f64);
        let pairs = rounds.zip(times.as_chunks::<2>().0);
        Ok(pairs
            .map(
                |(round, &[one, two])| {
                    if round.is_multiple_of(2) { [one, two] } else { [two, one] }
                },
            )
            .collect())
    }

    fn at_a_time(&self) -> usize {
        match self.round {
            None => FIRST_ROUNDS,
            // A round that took no time at all saturates.
            Some(seconds) => ((REQUEST_SECONDS / seconds) as usize).clamp(1, MOST_ROUNDS),
        }
    }
}

/// The draw that a side is called with in a round. No two neighbouring calls take the same one. Otherwise the second finds it in
/// the caches, which is worth less to eager: it then comes after the candidate's outputs were looked at.
fn draw_of(player: Player, round: usize, draws: usize) -> usize {
    let is_first = (player == Player::Eager) == round.is_multiple_of(2);
    match draws.is_multiple_of(2) {
        false => (2 * round + usize::from(!is_first)) % draws,
        // So counted, a side might never come to half of them.
        true => round % draws.max(1),
    }
}

/// One side, called on the draws in turn.
struct Runner<'a> {
    case: &'a Case,
    player: Player,
    side: &'a dyn Prepared,
    options: RunOptions,
    key: FingerprintKey,
    /// Of what each draw must give; empty for the side that is not under test.
    verified: Vec<Vec<Fingerprint>>,
    draw: usize,
    inputs: Vec<Value>,
    outputs: Vec<Value>,
}

impl<'a> Runner<'a> {
    fn new(case: &'a Case, player: Player) -> Self {
        Runner {
            case,
            player,
            side: match player {
                Player::Eager => &*case.eager,
                Player::Candidate => &*case.candidate,
            },
            options: case.run_options(false),
            key: FingerprintKey::random(),
            verified: Vec::new(),
            draw: 0,
            inputs: Vec::new(),
            outputs: Vec::new(),
        }
    }

    /// From now on every timed call must give what was verified.
    fn expect(&mut self, verified: Vec<Vec<Value>>) -> Result<(), Box<Verdict>> {
        let prints = verified.iter().map(|outputs| self.fingerprints(outputs));
        self.verified = prints.collect::<Result<_, _>>()?;
        Ok(())
    }

    fn fingerprints(&self, outputs: &[Value]) -> Result<Vec<Fingerprint>, Box<Verdict>> {
        let tensors = output_tensors(outputs).map_err(|error| no_memory(&error))?;
        let prints = tensors.iter().map(|tensor| tensor.fingerprint(&self.key));
        prints.collect::<Result<_, _>>().map_err(|error| no_memory(&error))
    }
}

impl Side for Runner<'_> {
    type Error = Box<Verdict>;

    fn prepare(&mut self, call: usize) -> Result<(), Box<Verdict>> {
        self.outputs.clear();
        self.draw = draw_of(self.player, call, self.case.draws.len());
        let inputs = &self.case.draws[self.draw];
        self.inputs = match self.case.writes_inputs {
            true => copies(inputs).map_err(|error| exhausted(&error))?,
            false => inputs.clone(),
        };
        Ok(())
    }

    fn call(&mut self) -> Result<(), Box<Verdict>> {
        let run = self.side.run(&self.inputs, &self.options);
        self.outputs = run.map_err(|error| match self.player {
            Player::Eager => eager_failure(&error),
            Player::Candidate => candidate_failure(&error),
        })?;
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Box<Verdict>> {
        let outputs = std::mem::take(&mut self.outputs);
        let Some(verified) = self.verified.get(self.draw) else { return Ok(()) };
        let found = self.fingerprints(&outputs)?;
        if found == *verified {
            return Ok(());
        }
        let same = found.iter().zip(verified).take_while(|(found, verified)| found == verified);
        Err(unstable(same.count()))
    }
}

fn unstable(output: usize) -> Box<Verdict> {
    let text = format!("output {output} of a timed call differs from the verified one");
    Box::new(Verdict::new(VerdictKind::Unstable).because(text))
}

fn exhausted(error: &TensorError) -> Box<Verdict> {
    Box::new(Verdict::new(VerdictKind::ReferenceFail).because(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_side_comes_to_all_draws_and_never_to_the_one_before() {
        for draws in [1, 2, 3, 4, 5] {
            let rounds = 4 * draws;
            let of = |player| (0..rounds).map(move |round| draw_of(player, round, draws));
            for draw in 0..draws {
                let times = |player| of(player).filter(|found| *found == draw).count();
                assert_eq!([Player::Eager, Player::Candidate].map(times), [4; 2], "of {draws}");
            }
            let order = |(round, (eager, candidate)): (usize, (usize, usize))| {
                if round.is_multiple_of(2) { [eager, candidate] } else { [candidate, eager] }
            };
            let both = of(Player::Eager).zip(of(Player::Candidate)).enumerate();
            let calls: Vec<usize> = both.flat_map(order).collect();
            let warm = calls.windows(2).filter(|calls| calls[0] == calls[1]).count();
            assert!(warm == 0 || draws == 1 || draws.is_multiple_of(2), "{draws}: {calls:?}");
        }
    }
}
