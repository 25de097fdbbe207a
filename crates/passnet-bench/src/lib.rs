//! PassBench: verification, timing statistics, verdicts and scores of rewritten graphs.
//!
//! Nothing here knows which engine ran: `bench` drives one through its trait, `compare` and `score` see plain slices and
//! numbers, `log` a run of the reference implementation as the text it printed.

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
