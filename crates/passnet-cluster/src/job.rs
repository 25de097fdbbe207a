//! What a command asks of a driver, and hears from it.

use crate::message::{Hello, Reply};
use crate::scheduler::Aside;
use crate::status::Status;
use serde_json::Value;

/// What a worker needs for a unit.
#[derive(Debug)]
pub struct Input {
    /// Of the bytes: the same content travels once.
    pub digest: String,
    /// What travels.
    pub bytes: Vec<u8>,
    /// What is said besides.
    pub words: Value,
    /// Whether other units need the same content.
    pub is_shared: bool,
}

impl Input {
    /// For one unit alone.
    pub fn new(bytes: Vec<u8>, words: Value) -> Input {
        let digest = blake3::hash(&bytes).to_hex().to_string();
        Input { digest, bytes, words, is_shared: false }
    }
}

/// A command whose work is a set of units.
pub trait Job {
    /// What names a unit inside the driver.
    type Unit;
    /// What ends the whole job.
    type Error;

    /// The next unit that is not done yet. More may come later, unless [`is_over`](Self::is_over).
    fn next(&mut self) -> Option<Self::Unit>;

    /// Whether no unit will come any more.
    fn is_over(&self) -> bool;

    /// Of all units, and those of them that were done before.
    fn total(&self) -> (Option<u64>, u64);

    /// What a worker needs for a unit.
    fn input(&mut self, unit: &Self::Unit) -> Result<Input, Self::Error>;

    /// Whether results of such a worker belong into this run; the error says why not.
    fn admit(&mut self, hello: &Hello) -> Result<(), String>;

    /// Takes a result. The inner error says why it is none: the unit is tried again elsewhere.
    fn accept(
        &mut self,
        unit: &Self::Unit,
        answer: &Answer<'_>,
    ) -> Result<Result<(), String>, Self::Error>;

    /// When this returns, nothing that was accepted can be lost.
    fn commit(&mut self) -> Result<(), Self::Error>;

    /// Hears of a unit that will not be tried again.
    fn set_aside(&mut self, aside: Aside<Self::Unit>) -> Result<(), Self::Error>;

    /// Whether no unit is to be begun any more.
    fn is_stopped(&self) -> bool;

    /// Hears what a person who watches may want to know.
    fn news(&mut self, news: News<'_>);
}

/// A unit's result.
#[derive(Debug)]
pub struct Answer<'a> {
    /// Of the node that it comes from.
    pub node: &'a str,
    /// The digest of the unit's input.
    pub input: &'a str,
    /// What the worker says.
    pub reply: &'a Reply,
    /// The bytes that came with it.
    pub files: &'a [u8],
}

/// What watchers hear.
#[derive(Debug)]
#[allow(missing_docs, reason = "each variant says what its fields are about")]
pub enum News<'a> {
    /// Numbers, now and then.
    Status(&'a Status),
    /// A node is set aside, or gone.
    Node { name: &'a str, what: &'a str, reason: &'a str },
}
