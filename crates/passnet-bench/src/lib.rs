//! PassBench: verification, timing statistics, verdicts and scores of rewritten graphs.
//!
//! Nothing here knows which engine ran: [`bench`](mod@bench) drives one through its trait, [`compare`] and [`score`] see plain slices and
//! numbers, [`log`] a run of the reference implementation as the text it printed. [`evaluate`] decides a verdict, [`verdict`] lists them.
//!
//! ```
//! use passnet_bench::score::{Parameters, Score, ScoredGraph};
//! use passnet_bench::tolerance::Ladder;
//! use passnet_bench::verdict::ErrorClass;
//!
//! // One graph twice as fast as eager and right at every tolerance, one that did not compile.
//! let graphs = [ScoredGraph::ran(Ladder::ALL, 2.0), ScoredGraph::failed(ErrorClass::Never)];
//! let score = Score::of(&graphs, Parameters::default()).unwrap();
//! // What fails counts as a tenth of eager's speed: the root of 2.0 * 0.1.
//! assert!((score.es.at(-5).unwrap() - 0.2f64.sqrt()).abs() < 1e-12);
//! ```
//!
//! Every timed call is a verified call. What is not the pass's fault is not its verdict: a graph that the machine kept from being judged has
//! none.

#![warn(missing_docs)]

pub mod admission;
pub mod bench;
pub mod candidate;
pub mod compare;
pub mod evaluate;
pub mod event_log;
pub mod log;
pub mod number;
pub mod pool;
pub mod redteam;
pub mod reference_format;
pub mod report;
pub mod roofline;
pub mod run;
pub mod sample;
pub mod score;
pub mod secret;
pub mod self_race;
pub mod shard;
pub mod signature;
pub mod stats;
pub mod stop;
pub mod subject;
pub mod timing;
pub mod tolerance;
pub mod verdict;
