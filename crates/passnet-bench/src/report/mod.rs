//! What a stored run says, for people: tables, distributions, worst offenders, comparisons, one HTML page.
//!
//! [`RunRecord`] is a run as its store remembers it, and everything else is computed from records: [`RunReport`] for
//! one, [`Comparison`] for two, [`leaderboard`] and [`Matrix`] for more. All text in a record is foreign; whoever shows it passes it
//! through [`printable`] (terminals) or the page builder (HTML).

mod audit;
mod compare;
mod conditions;
mod graph_row;
mod histogram;
pub mod html;
mod leaderboard;
mod matrix;
mod ranks;
mod record;
mod scoring;
mod summary;
mod text;

pub use audit::Doubt;
pub use compare::{
    Change, Comparison, Conclusion, Overall, Pair, SideScore, VerdictChange, compare, overall,
};
pub use conditions::{Conditions, are_unlike, differences, sentence};
pub use graph_row::GraphRow;
pub use histogram::{Bin, Histogram};
pub use leaderboard::{RankedGroup, Standing, leaderboard};
pub use matrix::{GraphDifference, Matrix, MatrixCell, MatrixGraph, MatrixRun, MatrixTask, matrix};
pub use ranks::{is_told, ranks};
pub use record::{GraphName, GraphRecord, RunRecord};
pub use scoring::score_run;
pub use summary::{
    Decisions, Failure, FailureGroup, FastShare, RunReport, ScoreGroup, ScoreGroups, WORST,
};
pub use text::{printable, ratio_text};
