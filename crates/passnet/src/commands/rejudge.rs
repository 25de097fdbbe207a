//! `passnet rejudge`: one graph of a submission, a job on standard input, its answer on standard output.

use crate::error::{CommandError, Outcome};
use std::io::{Read, Write};

/// No job is larger.
const MAX_JOB: u64 = 256 << 20;

pub fn run() -> Result<Outcome, CommandError> {
    let mut job = Vec::new();
    std::io::stdin().take(MAX_JOB).read_to_end(&mut job)?;
    let answer = passnet_web::rejudge::work(&job)?;
    std::io::stdout().write_all(&answer)?;
    Ok(Outcome::Done)
}

/// The arguments with which this program does a job.
pub const ARGUMENTS: [&str; 1] = ["rejudge"];
