//! Ranks of a ranking's entries, by the rule of `passnet report`.

use super::types::{Board, Entry};
use super::{EntryOrder, Filter, Store};
use crate::Error;
use passnet_bench::report::{is_told, ranks};
use rusqlite::params;

/// A graph's task, and what it adds to AS.
type Scores = Vec<(String, f64)>;

impl Store {
    /// Gives every standing entry of a ranking its rank.
    pub fn rank(&self, board: &Board) -> Result<(), Error> {
        let filter = Filter {
            order: EntryOrder::Score,
            state: Some(super::EntryState::Listed),
            ..Filter::default()
        };
        let (entries, _) = self.entries(board, &filter)?;
        let places = ranks(entries.iter().map(|entry| self.scores(entry)), are_told)?;
        self.write(|connection| {
            connection.execute(
                "UPDATE entry SET place = NULL WHERE class = ?1 AND benchmark = ?2",
                params![board.class, board.benchmark],
            )?;
            let mut statement =
                connection.prepare_cached("UPDATE entry SET place = ?2 WHERE number = ?1")?;
            for (entry, place) in entries.iter().zip(&places) {
                statement.execute(params![entry.number, *place as i64])?;
            }
            Ok(())
        })
    }

    fn scores(&self, entry: &Entry) -> Result<Scores, Error> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT task_name, log_score FROM result WHERE entry = ?1 ORDER BY position",
            )?;
            let rows = statement.query_map([entry.number], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }
}

/// Whether the tasks show that two runs over the same graphs differ.
fn are_told(one: &Scores, two: &Scores) -> bool {
    is_told(one.iter().zip(two).map(|((task, one), (_, two))| (task.as_str(), one - two)))
}
