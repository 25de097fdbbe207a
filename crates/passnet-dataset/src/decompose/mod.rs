//! Cutting whole models into pieces: where to cut.
//!
//! Everything here works on the numbered ops of a graph and answers with half-open ranges of them; taking the
//! ranges out of the graph is another module's work.

pub mod typical;
