//! From a bundle to rows: everything that pages ask for is computed here, once.

use super::types::{Detail, EntryState, GroupScore, ResultRow};
use super::{Store, now};
use crate::Error;
use crate::bundle::{Bundle, Manifest};
use passnet_bench::report::html::parts::count;
use passnet_bench::report::{
    Conditions, GraphRecord, RunRecord, RunReport, ScoreGroup, are_unlike, leaderboard, printable,
};
use passnet_bench::score::{Parameters, graph_log_score};
use passnet_engine::identity::Build;
use passnet_graph::FileName;
use rusqlite::{Connection, OptionalExtension, params};

/// Digits of the digests that are addresses on the site.
const ID_DIGITS: usize = 16;
const KEY_DIGITS: usize = 12;
const MAX_EVIDENCE: usize = 300;

/// Who puts a bundle on the board.
#[derive(Debug, Clone, Default)]
pub struct Admission {
    /// As the entry names them.
    pub author: String,
    /// That the bundle is signed with.
    pub public_key: Option<String>,
    /// The id of an entry of the same author that this one takes the place of.
    pub replaces: Option<String>,
    /// Seconds since 1970; now where there is none.
    pub added: Option<i64>,
}

/// A run made ready to be written.
#[derive(Debug)]
pub struct Readied {
    class: Named,
    benchmark: Named,
    report: RunReport,
    interval: (f64, f64),
    detail: Detail,
}

/// A key, a title, and more words.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    key: String,
    title: String,
    text: String,
}

/// Computes what is written; `None` for a run without results.
pub fn readied(run: &RunRecord, manifest: Option<&Manifest>) -> Option<Readied> {
    let parameters = Parameters::default();
    let report = RunReport::of(run, parameters)?;
    let ranked = leaderboard(std::slice::from_ref(run), parameters);
    let standing = ranked.first()?.standings.first()?;
    let interval = (standing.interval.low, standing.interval.high);
    let class = class_named(run);
    let noise = run.graphs.iter().map(|graph| graph.noise_floor).fold(0.0, f64::max);
    let conditions = run.conditions();
    let detail = Detail {
        es: report.score.es.iter().collect(),
        reference: report.reference_as,
        fast_2: report.fast.iter().find(|fast| fast.p == 2.0).map_or(0.0, |fast| fast.share),
        faster: report.decisions.faster,
        tied: report.decisions.tie,
        slower: report.decisions.slower,
        seconds: report.seconds,
        noise,
        conditions: conditions.iter().map(|it| it.describe()).collect(),
        command: command(run),
        seal: run.seal.state().into(),
        doubts: run.doubts.iter().map(ToString::to_string).collect(),
        tasks: report.groups.task.iter().map(group_score).collect(),
        dtypes: report.groups.dtype.iter().map(group_score).collect(),
        agent: manifest.and_then(|manifest| manifest.agent.clone()),
        attempts: manifest.map_or(Vec::new(), |manifest| {
            let attempts = manifest.attempts.iter();
            attempts.map(|attempt| (attempt.task.clone(), attempt.attempt)).collect()
        }),
    };
    Some(Readied { class, benchmark: benchmark_named(run), report, interval, detail })
}

fn group_score(group: &ScoreGroup) -> GroupScore {
    GroupScore {
        name: group.name.clone(),
        graphs: group.summary.graphs,
        correct: group.summary.correct,
        score: group.aggregated,
        fast_1: group.summary.fast_1,
        mean: group.summary.geometric_mean,
    }
}

/// How somebody else would make such a run.
fn command(run: &RunRecord) -> String {
    let Some(start) = &run.start else { return String::new() };
    let device =
        run.conditions().first().map_or(String::new(), |it| it.identity.device.kind.clone());
    let mut words = vec!["passnet bench TASKS".to_string()];
    match start.compiler.as_str() {
        "pass" | "agent" => words.push("--passes PASSES".into()),
        other => words.push(format!("--compiler {other}")),
    }
    if start.engine != "native" {
        words.push(format!("--engine {}", start.engine));
        words.push(format!("--device {device}"));
    }
    if !start.options.thorough {
        words.push("--quick".into());
    }
    words.push("--out RUN".into());
    words.join(" ")
}

fn digest_of(parts: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex().as_str().chars().take(KEY_DIGITS).collect()
}

/// Runs of one class differ in nothing that separates; one that comes from several places is alone in its class.
fn class_named(run: &RunRecord) -> Named {
    let places = run.conditions();
    let is_alone =
        |first: &Conditions| places.iter().any(|other| are_unlike(&first.differences(other)));
    let Some(first) = places.first().filter(|first| !is_alone(first)) else {
        let words: Vec<String> = places.iter().map(|it| it.describe()).collect();
        let names = run.graphs.iter().map(|graph| graph.event.key.as_str());
        let key = digest_of(&names.chain(["several places"]).collect::<Vec<_>>());
        return Named { key, title: "Results from several places".into(), text: words.join("; ") };
    };
    // Another commit of the same version does not separate.
    let mut identity = first.identity.clone();
    identity.build = Build { commit: String::new(), ..identity.build };
    let key = digest_of(&[&identity.digest(), &first.depth]);
    let device = match identity.device.kind.as_str() {
        "cpu" | "" => identity.describe_processor(),
        _ => identity.device.name.clone(),
    };
    let title = format!("{device}, {} engine", identity.engine);
    let like = Conditions { identity, depth: first.depth.clone() };
    Named { key, title, text: like.describe() }
}

/// The benchmark set: which graphs were judged, by name and model.
fn benchmark_named(run: &RunRecord) -> Named {
    let model = FileName::Model.as_str();
    let mut parts: Vec<String> = Vec::with_capacity(run.graphs.len());
    for graph in &run.graphs {
        let name = graph.name();
        let digest = graph.artefact(model).unwrap_or_default();
        parts.push(format!("{}\0{}\0{digest}", name.sample, name.graph));
    }
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let (tasks, graphs) = (run.samples().len(), run.graphs.len());
    let title = format!("{}, {}", count(tasks, "task"), count(graphs, "graph"));
    Named { key: digest_of(&parts), title, text: String::new() }
}

impl Store {
    /// Puts a bundle on the board. The same bundle a second time changes nothing; its id is given again.
    pub fn admit(
        &self,
        bundle: &Bundle,
        run: &RunRecord,
        readied: &Readied,
        admission: &Admission,
    ) -> Result<String, Error> {
        self.write(|connection| admit(connection, bundle, run, readied, admission))
    }

    /// Gives a benchmark set the name that people know it by.
    pub fn name_benchmark(&self, key: &str, name: &str) -> Result<bool, Error> {
        self.write(|connection| {
            let named = connection
                .execute("UPDATE benchmark SET name = ?2 WHERE key = ?1", params![key, name])?;
            Ok(named > 0)
        })
    }
}

pub(super) fn admit(
    connection: &Connection,
    bundle: &Bundle,
    run: &RunRecord,
    readied: &Readied,
    admission: &Admission,
) -> Result<String, Error> {
    let digest = bundle.digest();
    let known: Option<String> = connection
        .query_row("SELECT id FROM entry WHERE digest = ?1", [&digest], |row| row.get(0))
        .optional()?;
    if let Some(id) = known {
        return Ok(id);
    }
    let id: String = digest.chars().take(ID_DIGITS).collect();
    let insert = "INSERT OR IGNORE INTO bundle (digest, bytes) VALUES (?1, ?2)";
    connection.execute(insert, params![digest, bundle.bytes()])?;
    let class = &readied.class;
    connection.execute(
        "INSERT OR IGNORE INTO class (key, title, text) VALUES (?1, ?2, ?3)",
        params![class.key, class.title, class.text],
    )?;
    let benchmark = &readied.benchmark;
    connection.execute(
        "INSERT OR IGNORE INTO benchmark (key, name, tasks, graphs) VALUES (?1, ?2, ?3, ?4)",
        params![
            benchmark.key,
            benchmark.title,
            readied.report.tasks as i64,
            run.graphs.len() as i64
        ],
    )?;
    insert_entry(connection, bundle, run, readied, admission, &id)?;
    let number = connection.last_insert_rowid();
    let detail = serde_json::to_string(&readied.detail)
        .map_err(|error| Error::storage(format!("an entry cannot be written: {error}")))?;
    connection
        .execute("INSERT INTO detail (entry, text) VALUES (?1, ?2)", params![number, detail])?;
    insert_results(connection, run, number)?;
    if let Some(replaced) = &admission.replaces {
        connection.execute(
            "UPDATE entry SET state = ?3, replaced_by = ?2 WHERE id = ?1 AND author = ?4 AND state = ?5",
            params![
                replaced,
                id,
                EntryState::Superseded.name(),
                admission.author,
                EntryState::Listed.name()
            ],
        )?;
    }
    Ok(id)
}

fn insert_entry(
    connection: &Connection,
    bundle: &Bundle,
    run: &RunRecord,
    readied: &Readied,
    admission: &Admission,
    id: &str,
) -> Result<(), Error> {
    let Readied { class, benchmark, report, interval, .. } = readied;
    let (score, summary) = (&report.score, &report.score.summary);
    let fast = |p: f64| report.fast.iter().find(|fast| fast.p == p).map_or(0.0, |fast| fast.share);
    let start = run.start.as_ref();
    let agent = bundle.manifest.agent.as_ref();
    let tokens = agent.map(|agent| agent.input_tokens.saturating_add(agent.output_tokens));
    connection.execute(
        "INSERT INTO entry (id, digest, name, author, public_key, added, time, compiler, class, benchmark, state,
             score, low, high, mean, correct, fast_1, fast_15, task_rate, tokens, cost)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)",
        params![
            id,
            bundle.digest(),
            bundle.manifest.name,
            admission.author,
            admission.public_key,
            admission.added.unwrap_or_else(now),
            start.map_or(0, |start| i64::try_from(start.time).unwrap_or(i64::MAX)),
            start.map_or("", |start| start.compiler.as_str()),
            class.key,
            benchmark.key,
            EntryState::Listed.name(),
            score.aggregated,
            interval.0,
            interval.1,
            summary.geometric_mean,
            summary.correctness_rate,
            fast(1.0),
            fast(1.5),
            report.task_correctness_rate,
            tokens.map(|tokens| i64::try_from(tokens).unwrap_or(i64::MAX)),
            agent.and_then(|agent| agent.cost),
        ],
    )?;
    Ok(())
}

/// The graphs of a run as rows, in the order of its record.
pub fn result_rows(run: &RunRecord) -> Vec<ResultRow> {
    let mut rows = Vec::with_capacity(run.graphs.len());
    for (task, (name, graphs)) in run.samples().into_iter().enumerate() {
        for graph in graphs {
            let evaluation = &graph.event.evaluation;
            let judged = &evaluation.judged;
            rows.push(ResultRow {
                position: rows.len() as i64,
                task,
                task_name: name.to_string(),
                graph: judged.graph.clone(),
                model: graph.artefact(FileName::Model.as_str()).map(String::from),
                verdict: judged.verdict.kind.name().into(),
                decision: evaluation.decision.map(|decision| decision.name().into()),
                speedup: judged.speedup,
                low: evaluation.interval.map(|interval| interval.low),
                high: evaluation.interval.map(|interval| interval.high),
                dtype: evaluation.dtype.clone(),
                evidence: evidence(graph),
            });
        }
    }
    rows
}

fn insert_results(connection: &Connection, run: &RunRecord, number: i64) -> Result<(), Error> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO result (entry, position, task, task_name, graph, model, verdict, decision, speedup, low, high,
             dtype, log_score, evidence)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )?;
    for (row, graph) in result_rows(run).into_iter().zip(&run.graphs) {
        statement.execute(params![
            number,
            row.position,
            row.task as i64,
            row.task_name,
            row.graph,
            row.model,
            row.verdict,
            row.decision,
            row.speedup,
            row.low,
            row.high,
            row.dtype,
            graph_log_score(&graph.scored(), Parameters::default()),
            row.evidence,
        ])?;
    }
    Ok(())
}

/// The first of it, short.
fn evidence(graph: &GraphRecord) -> String {
    let first = graph.event.evaluation.judged.verdict.evidence.first();
    let text = first.map(ToString::to_string).unwrap_or_default();
    printable(&text).chars().take(MAX_EVIDENCE).collect()
}
