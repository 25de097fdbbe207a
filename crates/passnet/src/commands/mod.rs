//! One module per command.

pub mod agent;
pub mod backend_server;
pub mod bench;
pub mod bundle;
pub mod completions;
pub mod curve;
pub mod dataset;
pub mod doctor;
pub mod engine;
pub mod extract;
pub mod graph;
pub mod init;
mod judging;
pub mod kernel;
pub mod leaderboard;
pub mod learn;
pub mod library;
pub mod model;
pub mod pass;
pub mod reference;
pub mod rejudge;
pub mod report;
pub mod score;
pub mod serve;
pub mod site;
pub mod solve;
pub mod submit;
