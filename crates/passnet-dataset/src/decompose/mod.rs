//! Cutting whole models into pieces: where to cut.
//!
//! Everything here works on the numbered ops of a graph and answers with half-open ranges of them; taking the
//! ranges out of the graph is another module's work. Three ways to choose: every op alone ([`sole_op`]), op
//! sequences that the corpus repeats ([`typical`]), ops that a compiler fuses into one kernel ([`plateau`]).
//! [`sources`] remembers where a piece came from, [`regroup`] brings ranges of pieces back to the whole models.

pub mod plateau;
pub mod regroup;
pub mod sole_op;
pub mod sources;
pub mod typical;
