//! Ranks: a rank never says more than the tasks do.
//!
//! The first run of a rank is its best; whatever cannot be told from it shares its rank, and the first run that can be
//! told from it begins the next. Every run is so compared once, graph by graph, however many there are.

use super::types::{Board, Entry};
use super::{EntryOrder, Filter, Store};
use crate::Error;
use passnet_bench::report::{Conclusion, overall};
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
        let mut places: Vec<(i64, usize)> = Vec::with_capacity(entries.len());
        let mut best: Option<(usize, Scores)> = None;
        for (index, entry) in entries.iter().enumerate() {
            let scores = self.scores(entry)?;
            let place = match &best {
                Some((place, first)) if !is_told(first, &scores) => *place,
                _ => {
                    best = Some((index + 1, scores));
                    index + 1
                }
            };
            places.push((entry.number, place));
        }
        self.write(|connection| {
            connection.execute(
                "UPDATE entry SET place = NULL WHERE class = ?1 AND benchmark = ?2",
                params![board.class, board.benchmark],
            )?;
            let mut statement =
                connection.prepare_cached("UPDATE entry SET place = ?2 WHERE number = ?1")?;
            for (number, place) in &places {
                statement.execute(params![number, *place as i64])?;
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
fn is_told(one: &Scores, two: &Scores) -> bool {
    let pairs = one.iter().zip(two).map(|((task, one), (_, two))| (task.as_str(), one - two));
    let told = overall(pairs).map(|found| found.conclusion);
    matches!(told, Some(Conclusion::Better | Conclusion::Worse))
}
