//! Submissions: a bundle is kept before it is looked at, and looked at until something is said about it.

use super::admit::{Admission, Readied, admit};
use super::types::{Entry, EntryState, Rejudged};
use super::{Author, Store, now, read};
use crate::Error;
use crate::bundle::Bundle;
use passnet_bench::report::RunRecord;
use rusqlite::{OptionalExtension, Row, params};
use serde::Serialize;

/// What became of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SubmissionState {
    /// Kept, to be verified.
    Queued,
    /// On the board; some of its graphs are to be judged again.
    Accepted,
    /// On the board; graphs were judged again.
    Done,
    /// Something in it does not hold.
    Refused,
}

impl SubmissionState {
    /// In the order in which a submission meets them.
    pub const ALL: [SubmissionState; 4] = [
        SubmissionState::Queued,
        SubmissionState::Accepted,
        SubmissionState::Done,
        SubmissionState::Refused,
    ];

    /// As the interface for machines says it.
    pub const fn name(self) -> &'static str {
        match self {
            SubmissionState::Queued => "queued",
            SubmissionState::Accepted => "accepted",
            SubmissionState::Done => "done",
            SubmissionState::Refused => "refused",
        }
    }

    fn parse(text: &str) -> SubmissionState {
        let found = SubmissionState::ALL.into_iter().find(|state| state.name() == text);
        found.unwrap_or(SubmissionState::Refused)
    }
}

/// A bundle that an author sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Submission {
    /// In the order in which they came.
    pub id: i64,
    /// Of the bundle.
    pub digest: String,
    /// Whose token it came with.
    pub author: String,
    /// The entry that it takes the place of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// Seconds since 1970.
    pub received: i64,
    /// Where it stands.
    pub state: SubmissionState,
    /// Why it was refused.
    pub reasons: Vec<String>,
    /// The entry that it became.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
}

/// What became of a bundle that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// It waits to be looked at.
    New(Submission),
    /// The same bundle was sent before, by the same author.
    Known(Submission),
    /// Somebody else sent it first.
    Foreign,
}

const SUBMISSION: &str = "submission.id, submission.digest, author.name, submission.replaces, submission.received,
    submission.state, submission.reasons, (SELECT entry.id FROM entry WHERE entry.digest = submission.digest)";

fn submission(row: &Row<'_>) -> rusqlite::Result<Submission> {
    let reasons: String = row.get(6)?;
    Ok(Submission {
        id: row.get(0)?,
        digest: row.get(1)?,
        author: row.get(2)?,
        replaces: row.get(3)?,
        received: row.get(4)?,
        state: SubmissionState::parse(&row.get::<_, String>(5)?),
        reasons: serde_json::from_str(&reasons).unwrap_or_default(),
        entry: row.get(7)?,
    })
}

impl Store {
    /// Keeps a bundle to be verified. When this returns, neither the death of the process nor a power cut loses it.
    pub fn receive(
        &self,
        bundle: &Bundle,
        author: &Author,
        replaces: Option<&str>,
    ) -> Result<Received, Error> {
        let digest = bundle.digest();
        self.write(|connection| {
            let sql = format!(
                "SELECT {SUBMISSION} FROM submission JOIN author ON author.id = submission.author
                 WHERE submission.digest = ?1"
            );
            let mut find = connection.prepare_cached(&sql)?;
            if let Some(known) = find.query_row([&digest], submission).optional()? {
                return Ok(match known.author == author.name {
                    true => Received::Known(known),
                    false => Received::Foreign,
                });
            }
            connection.execute(
                "INSERT OR IGNORE INTO bundle (digest, bytes) VALUES (?1, ?2)",
                params![digest, bundle.bytes()],
            )?;
            connection.execute(
                "INSERT INTO submission (digest, author, replaces, received, state) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![digest, author.id, replaces, now(), SubmissionState::Queued.name()],
            )?;
            Ok(Received::New(find.query_row([&digest], submission)?))
        })
    }

    pub(crate) fn submission(&self, id: i64) -> Result<Option<Submission>, Error> {
        let sql = format!(
            "SELECT {SUBMISSION} FROM submission JOIN author ON author.id = submission.author
             WHERE submission.id = ?1"
        );
        self.read(|connection| {
            Ok(connection.prepare_cached(&sql)?.query_row([id], submission).optional()?)
        })
    }

    /// The newest first.
    pub fn submissions(&self, limit: usize) -> Result<Vec<Submission>, Error> {
        let sql = format!(
            "SELECT {SUBMISSION} FROM submission JOIN author ON author.id = submission.author
             ORDER BY submission.id DESC LIMIT ?1"
        );
        self.read(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement.query_map([limit as i64], submission)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// The oldest submission in a state.
    pub fn next_submission(&self, state: SubmissionState) -> Result<Option<Submission>, Error> {
        let sql = format!(
            "SELECT {SUBMISSION} FROM submission JOIN author ON author.id = submission.author
             WHERE submission.state = ?1 ORDER BY submission.id LIMIT 1"
        );
        self.read(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            Ok(statement.query_row([state.name()], submission).optional()?)
        })
    }

    /// How many submissions are in each state.
    pub fn count_submissions(&self) -> Result<Vec<(SubmissionState, i64)>, Error> {
        self.read(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT count(*) FROM submission WHERE state = ?1")?;
            let mut counts = Vec::new();
            for state in SubmissionState::ALL {
                counts.push((state, statement.query_row([state.name()], |row| row.get(0))?));
            }
            Ok(counts)
        })
    }

    /// Puts a submission that holds on the board.
    pub fn accept(
        &self,
        submission: &Submission,
        bundle: &Bundle,
        run: &RunRecord,
        readied: &Readied,
    ) -> Result<String, Error> {
        let admission = Admission {
            author: submission.author.clone(),
            public_key: bundle.signature.as_ref().map(|signature| signature.public_key()),
            replaces: submission.replaces.clone(),
            added: Some(submission.received),
        };
        self.write(|connection| {
            let id = admit(connection, bundle, run, readied, &admission)?;
            connection.execute(
                "UPDATE submission SET state = ?2 WHERE id = ?1 AND state = ?3",
                params![
                    submission.id,
                    SubmissionState::Accepted.name(),
                    SubmissionState::Queued.name()
                ],
            )?;
            Ok(id)
        })
    }

    /// Says why a submission does not hold. Its bundle is not kept: only what was said about it is.
    pub fn refuse(&self, submission: &Submission, reasons: &[String]) -> Result<(), Error> {
        let reasons = serde_json::to_string(reasons).unwrap_or_default();
        self.write(|connection| {
            connection.execute(
                "UPDATE submission SET state = ?2, reasons = ?3 WHERE id = ?1",
                params![submission.id, SubmissionState::Refused.name(), reasons],
            )?;
            connection.execute(
                "DELETE FROM bundle WHERE digest = ?1
                     AND NOT EXISTS (SELECT 1 FROM entry WHERE entry.digest = bundle.digest)",
                [&submission.digest],
            )?;
            Ok(())
        })
    }

    /// Writes down what came out when graphs of an entry were judged again, and ends its submission.
    pub fn note_rejudged(&self, entry: &Entry, found: &[Rejudged]) -> Result<(), Error> {
        self.write(|connection| {
            let mut statement = connection.prepare_cached(
                "INSERT OR REPLACE INTO rejudged (entry, position, verdict, speedup, agrees, text, place, time)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?;
            for one in found {
                statement.execute(params![
                    entry.number,
                    one.position,
                    one.verdict,
                    one.speedup,
                    one.agrees,
                    one.text,
                    one.place,
                    one.time
                ])?;
            }
            connection.execute(
                "UPDATE entry SET
                     rejudged = (SELECT count(*) FROM rejudged WHERE entry = ?1 AND verdict IS NOT NULL),
                     agreed = (SELECT count(*) FROM rejudged WHERE entry = ?1 AND agrees = 1),
                     disagreed = (SELECT count(*) FROM rejudged WHERE entry = ?1 AND agrees = 0)
                 WHERE number = ?1",
                [entry.number],
            )?;
            connection.execute(
                "UPDATE submission SET state = ?2 WHERE digest = ?1 AND state = ?3",
                params![
                    entry.digest,
                    SubmissionState::Done.name(),
                    SubmissionState::Accepted.name()
                ],
            )?;
            Ok(())
        })
    }

    /// Takes an entry back; it stays visible as withdrawn. With an author, only that author's.
    pub fn withdraw(&self, id: &str, author: Option<&str>) -> Result<Entry, Error> {
        self.write(|connection| {
            connection.execute(
                "UPDATE entry SET state = ?2, place = NULL
                 WHERE id = ?1 AND state = ?3 AND (?4 IS NULL OR author = ?4)",
                params![id, EntryState::Withdrawn.name(), EntryState::Listed.name(), author],
            )?;
            match read::by_id(connection, id)? {
                Some(entry) if author.is_none_or(|author| entry.author == author) => Ok(entry),
                _ => Err(Error::input(format!(
                    "there is no entry `{}` of this author",
                    id.escape_debug()
                ))),
            }
        })
    }
}
