//! What pages ask.

use super::Store;
use super::types::{Board, Detail, Entry, EntryState, Rejudged, ResultRow};
use crate::Error;
use crate::bundle::{Bundle, Limits};
use rusqlite::{Connection, OptionalExtension, Row, params};

/// By what a ranking is sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "each is named by the column that it sorts by")]
pub enum EntryOrder {
    #[default]
    Score,
    Mean,
    Correct,
    Fast1,
    Fast15,
    Cost,
    Tokens,
    Date,
    Name,
    Author,
}

impl EntryOrder {
    /// In the order of the columns.
    pub const ALL: [EntryOrder; 10] = [
        EntryOrder::Score,
        EntryOrder::Mean,
        EntryOrder::Correct,
        EntryOrder::Fast1,
        EntryOrder::Fast15,
        EntryOrder::Cost,
        EntryOrder::Tokens,
        EntryOrder::Date,
        EntryOrder::Name,
        EntryOrder::Author,
    ];

    /// In addresses.
    pub const fn name(self) -> &'static str {
        match self {
            EntryOrder::Score => "as",
            EntryOrder::Mean => "mean",
            EntryOrder::Correct => "correct",
            EntryOrder::Fast1 => "fast_1",
            EntryOrder::Fast15 => "fast_1.5",
            EntryOrder::Cost => "cost",
            EntryOrder::Tokens => "tokens",
            EntryOrder::Date => "date",
            EntryOrder::Name => "name",
            EntryOrder::Author => "author",
        }
    }

    /// `None` for a column that there is not.
    pub fn parse(text: &str) -> Option<EntryOrder> {
        EntryOrder::ALL.into_iter().find(|order| order.name() == text)
    }

    const fn column(self) -> &'static str {
        match self {
            EntryOrder::Score => "score",
            EntryOrder::Mean => "mean",
            EntryOrder::Correct => "correct",
            EntryOrder::Fast1 => "fast_1",
            EntryOrder::Fast15 => "fast_15",
            EntryOrder::Cost => "cost",
            EntryOrder::Tokens => "tokens",
            EntryOrder::Date => "added",
            EntryOrder::Name => "name COLLATE NOCASE",
            EntryOrder::Author => "author COLLATE NOCASE",
        }
    }
}

/// Which entries of a ranking are wanted.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub(crate) order: EntryOrder,
    pub(crate) ascending: bool,
    /// Part of a name or an author.
    pub(crate) text: String,
    /// Only those whose state is this.
    pub(crate) state: Option<EntryState>,
    pub(crate) skip: usize,
    /// 0 for all of them.
    pub(crate) limit: usize,
}

/// One run on one graph.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphOnRun {
    pub(crate) entry: String,
    pub(crate) name: String,
    pub(crate) class: String,
    pub(crate) graph: String,
    pub(crate) verdict: String,
    pub(crate) speedup: Option<f64>,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
}

const ENTRY: &str = "number, id, digest, name, author, public_key, added, time, compiler, class, benchmark, state,
    replaced_by, score, low, high, mean, correct, fast_1, fast_15, task_rate, tokens, cost, rejudged, agreed,
    disagreed, place";

const BOARD: &str = "SELECT class.key, class.title, class.text, benchmark.key, benchmark.name, benchmark.tasks,
        benchmark.graphs, count(*)
    FROM entry JOIN class ON class.key = entry.class JOIN benchmark ON benchmark.key = entry.benchmark";

fn board(row: &Row<'_>) -> rusqlite::Result<Board> {
    let (class, benchmark): (String, String) = (row.get(0)?, row.get(3)?);
    Ok(Board {
        key: format!("{class}-{benchmark}"),
        class,
        device: row.get(1)?,
        conditions: row.get(2)?,
        benchmark,
        benchmark_name: row.get(4)?,
        tasks: row.get(5)?,
        graphs: row.get(6)?,
        entries: row.get(7)?,
    })
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    Ok(Entry {
        number: row.get(0)?,
        id: row.get(1)?,
        digest: row.get(2)?,
        name: row.get(3)?,
        author: row.get(4)?,
        public_key: row.get(5)?,
        added: row.get(6)?,
        time: row.get(7)?,
        compiler: row.get(8)?,
        class: row.get(9)?,
        benchmark: row.get(10)?,
        state: EntryState::parse(&row.get::<_, String>(11)?),
        replaced_by: row.get(12)?,
        score: row.get(13)?,
        low: row.get(14)?,
        high: row.get(15)?,
        mean: row.get(16)?,
        correct: row.get(17)?,
        fast_1: row.get(18)?,
        fast_15: row.get(19)?,
        task_rate: row.get(20)?,
        tokens: row.get(21)?,
        cost: row.get(22)?,
        rejudged: row.get(23)?,
        agreed: row.get(24)?,
        disagreed: row.get(25)?,
        place: row.get(26)?,
    })
}

/// Text for LIKE in which nothing is a wildcard.
fn part_of(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    format!("%{escaped}%")
}

/// What entries of a ranking must have; conditions that nobody asked for would only keep an index from being used.
fn matching(filter: &Filter) -> String {
    let mut conditions = String::from("class = ?1 AND benchmark = ?2");
    if !filter.text.is_empty() {
        conditions.push_str(" AND (name LIKE ?3 ESCAPE '\\' OR author LIKE ?3 ESCAPE '\\')");
    }
    if filter.state.is_some() {
        conditions.push_str(" AND state = ?4");
    }
    conditions
}

impl Store {
    /// All rankings, the largest first.
    pub fn boards(&self) -> Result<Vec<Board>, Error> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(&format!(
                "{BOARD} GROUP BY entry.class, entry.benchmark
                 ORDER BY benchmark.graphs DESC, count(*) DESC, class.title, class.key"
            ))?;
            let rows = statement.query_map([], board)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// One ranking by its address.
    pub fn board(&self, key: &str) -> Result<Option<Board>, Error> {
        let Some((class, benchmark)) = key.split_once('-') else { return Ok(None) };
        self.read(|connection| {
            let mut statement = connection.prepare_cached(&format!(
                "{BOARD} WHERE entry.class = ?1 AND entry.benchmark = ?2
                 GROUP BY entry.class, entry.benchmark"
            ))?;
            Ok(statement.query_row([class, benchmark], board).optional()?)
        })
    }

    /// Entries of a ranking, and how many there are in all.
    pub fn entries(&self, board: &Board, filter: &Filter) -> Result<(Vec<Entry>, usize), Error> {
        let state = filter.state.map_or("", EntryState::name);
        let (text, matching) = (part_of(&filter.text), matching(filter));
        self.read(|connection| {
            // Every parameter is named, also where no condition uses it.
            let count = format!("SELECT count(*), ?3, ?4 FROM entry WHERE {matching}");
            let all: i64 = connection
                .prepare_cached(&count)?
                .query_row(params![board.class, board.benchmark, text, state], |row| row.get(0))?;
            let direction = if filter.ascending { "ASC" } else { "DESC" };
            // What did not stand is shown below what does.
            let standing = if filter.state.is_some() { "" } else { "state != 'listed', " };
            let sql = format!(
                "SELECT {ENTRY}, ?3, ?4 FROM entry WHERE {matching}
                 ORDER BY {standing}{} {direction} NULLS LAST, number LIMIT ?5 OFFSET ?6",
                filter.order.column()
            );
            let limit = if filter.limit == 0 { -1 } else { filter.limit as i64 };
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement.query_map(
                params![board.class, board.benchmark, text, state, limit, filter.skip as i64],
                entry,
            )?;
            Ok((rows.collect::<Result<_, _>>()?, usize::try_from(all).unwrap_or(0)))
        })
    }

    /// The best standing entry of a compiler in a ranking: TorchInductor and the like, beside which others stand.
    pub fn baseline(&self, board: &Board, compiler: &str) -> Result<Option<Entry>, Error> {
        self.read(|connection| {
            let sql = format!(
                "SELECT {ENTRY} FROM entry WHERE class = ?1 AND benchmark = ?2 AND compiler = ?3
                     AND state = 'listed' ORDER BY score DESC LIMIT 1"
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let found = statement.query_row(params![board.class, board.benchmark, compiler], entry);
            Ok(found.optional()?)
        })
    }

    pub(crate) fn count_entries(&self) -> Result<i64, Error> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached("SELECT count(*) FROM entry")?;
            Ok(statement.query_row([], |row| row.get(0))?)
        })
    }

    /// Every entry, in the order in which they came.
    pub fn all_entries(&self) -> Result<Vec<Entry>, Error> {
        self.read(|connection| {
            let mut statement =
                connection.prepare_cached(&format!("SELECT {ENTRY} FROM entry ORDER BY number"))?;
            let rows = statement.query_map([], entry)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// `None` where there is no such id.
    pub fn entry(&self, id: &str) -> Result<Option<Entry>, Error> {
        self.read(|connection| by_id(connection, id))
    }

    /// What the page of a run says beyond its row.
    pub fn detail(&self, entry: &Entry) -> Result<Detail, Error> {
        self.read(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT text FROM detail WHERE entry = ?1")?;
            let text: String = statement.query_row([entry.number], |row| row.get(0))?;
            serde_json::from_str(&text)
                .map_err(|error| Error::storage(format!("entry {}: {error}", entry.id)))
        })
    }

    /// All graphs of an entry, by task and name.
    pub fn results(&self, entry: &Entry) -> Result<Vec<ResultRow>, Error> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT position, task, task_name, graph, model, verdict, decision, speedup, low, high, dtype, evidence
                 FROM result WHERE entry = ?1 ORDER BY position",
            )?;
            let rows = statement.query_map([entry.number], |row| {
                Ok(ResultRow {
                    position: row.get(0)?,
                    task: usize::try_from(row.get::<_, i64>(1)?).unwrap_or(0),
                    task_name: row.get(2)?,
                    graph: row.get(3)?,
                    model: row.get(4)?,
                    verdict: row.get(5)?,
                    decision: row.get(6)?,
                    speedup: row.get(7)?,
                    low: row.get(8)?,
                    high: row.get(9)?,
                    dtype: row.get(10)?,
                    evidence: row.get(11)?,
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// Standing runs on the graphs of a task of one benchmark set, at most `limit`.
    pub fn runs_on_task(
        &self,
        benchmark: &str,
        task: &str,
        limit: usize,
    ) -> Result<Vec<GraphOnRun>, Error> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT entry.id, entry.name, class.title, result.graph, result.verdict, result.speedup, result.low,
                     result.high
                 FROM result JOIN entry ON entry.number = result.entry JOIN class ON class.key = entry.class
                 WHERE result.task_name = ?2 AND entry.benchmark = ?1 AND entry.state = 'listed'
                 ORDER BY result.graph, class.title, entry.score DESC LIMIT ?3",
            )?;
            let rows = statement.query_map(params![benchmark, task, limit as i64], |row| {
                Ok(GraphOnRun {
                    entry: row.get(0)?,
                    name: row.get(1)?,
                    class: row.get(2)?,
                    graph: row.get(3)?,
                    verdict: row.get(4)?,
                    speedup: row.get(5)?,
                    low: row.get(6)?,
                    high: row.get(7)?,
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// What was judged again here, beside what was claimed.
    pub fn rejudged(&self, entry: &Entry) -> Result<Vec<Rejudged>, Error> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT again.position, result.task_name, result.graph, result.verdict, result.speedup, again.verdict,
                     again.speedup, again.agrees, again.text, again.place, again.time
                 FROM rejudged AS again
                     JOIN result ON result.entry = again.entry AND result.position = again.position
                 WHERE again.entry = ?1 ORDER BY again.agrees IS NOT 0, again.position",
            )?;
            let rows = statement.query_map([entry.number], |row| {
                Ok(Rejudged {
                    position: row.get(0)?,
                    task: row.get(1)?,
                    graph: row.get(2)?,
                    claimed_verdict: row.get(3)?,
                    claimed_speedup: row.get(4)?,
                    verdict: row.get(5)?,
                    speedup: row.get(6)?,
                    agrees: row.get(7)?,
                    text: row.get(8)?,
                    place: row.get(9)?,
                    time: row.get(10)?,
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// The bundle that an entry was made from, or that was submitted.
    pub fn bundle(&self, digest: &str) -> Result<Option<Bundle>, Error> {
        let bytes: Option<Vec<u8>> = self.read(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT bytes FROM bundle WHERE digest = ?1")?;
            Ok(statement.query_row([digest], |row| row.get(0)).optional()?)
        })?;
        bytes.map(|bytes| Bundle::parse(bytes, &Limits::default())).transpose()
    }
}

pub(super) fn by_id(connection: &Connection, id: &str) -> Result<Option<Entry>, Error> {
    let sql = format!("SELECT {ENTRY} FROM entry WHERE id = ?1");
    Ok(connection.prepare_cached(&sql)?.query_row([id], entry).optional()?)
}
