//! Eager against itself: whatever the timing finds is noise. Both ways of timing are tried on the same graphs.

use crate::evaluate::{EvaluateOptions, race_itself};
use crate::sample::Sample;
use crate::stats::{Decision, median};
use crate::timing;
use passnet_engine::Engine;
use serde::Serialize;

/// How far two timings of the same thing were apart, as a share of their ratio.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Of all graphs.
    pub median: f64,
    /// Of one graph.
    pub worst: f64,
}

/// What racing eager against itself showed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SelfRace {
    /// How many were raced.
    pub graphs: usize,
    /// Graphs that were called faster or slower, though they are the same.
    pub called: usize,
    /// Both sides timed in turns, as a run does it.
    pub interleaved: Spread,
    /// The reference's way: one side after the other.
    pub sequential: Spread,
}

/// Races every graph against itself, both ways.
pub fn race(
    engine: &dyn Engine,
    samples: &[Sample],
    options: &EvaluateOptions,
    each: &mut dyn FnMut(),
) -> SelfRace {
    let (mut graphs, mut called) = (0, 0);
    let (mut interleaved, mut sequential) = (Vec::new(), Vec::new());
    for sample in samples {
        for graph in &sample.graphs {
            each();
            let Ok(files) = sample.graph_files(graph) else { continue };
            let Some([turns, alone]) = race_itself(engine, &files, options) else { continue };
            let (Some(turns), Some(alone)) = (timing::interval(&turns), timing::interval(&alone))
            else {
                continue;
            };
            graphs += 1;
            called += usize::from(turns.decide(options.noise_floor) != Decision::Tie);
            interleaved.push(turns.ratio.ln().abs().exp_m1());
            sequential.push(alone.ratio.ln().abs().exp_m1());
        }
    }
    SelfRace {
        graphs,
        called,
        interleaved: Spread::of(&interleaved),
        sequential: Spread::of(&sequential),
    }
}

impl Spread {
    fn of(differences: &[f64]) -> Spread {
        Spread {
            median: median(differences).unwrap_or(0.0),
            worst: differences.iter().copied().fold(0.0, f64::max),
        }
    }
}
