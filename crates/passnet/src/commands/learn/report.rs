//! What learning brought: numbers for machines, a page and a table for people.

use crate::error::CommandError;
use crate::output::{Output, table};
use passnet_agent::metrics::{At, Metrics, eager_fails};
use passnet_agent::run::AttemptRecord;
use passnet_agent::trajectory::Event;
use passnet_bench::report::html::markup::Markup;
use passnet_bench::report::html::{POLICY, chart, document, parts};
use passnet_bench::report::printable;
use passnet_bench::score::Parameters;
use passnet_engine::Identity;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Standard errors of a 95 % interval.
const SPREAD: f64 = 1.96;
/// Characters of an example.
const MOST_CHARS: usize = 6000;
/// Of the tables of steps.
const HEAD: [&str; 9] = [
    "step",
    "tasks",
    "set aside: eager fails",
    "AS",
    "95 % over tasks",
    "matched",
    "right",
    "faster",
    "failures",
];

/// Everything that is told.
#[derive(Debug, Serialize)]
pub(super) struct Story {
    /// The name of its file or folder.
    model: String,
    /// What was asked, as it was typed.
    command: String,
    /// Where evaluations ran.
    pub(super) identity: Option<Identity>,
    training_tasks: usize,
    /// Training tasks left out because they share a structure with an evaluation task.
    withheld: usize,
    #[serde(rename = "stages")]
    pub(super) steps: Vec<StepScore>,
    /// The second set, before and after.
    pub(super) also: Vec<StepScore>,
    pub(super) data: Vec<Data>,
    pub(super) trainings: Vec<Training>,
    pub(super) example: Option<Example>,
    /// Below the folder of the run.
    pub(super) adapter: PathBuf,
}

/// Attempts at the evaluation tasks.
pub(super) struct Step {
    name: String,
    attempts: Vec<AttemptRecord>,
}

impl Step {
    pub(super) fn new(name: &str, attempts: Vec<AttemptRecord>) -> Step {
        Step { name: name.into(), attempts }
    }
}

/// The evaluation tasks after one step.
#[derive(Debug, Serialize)]
pub(super) struct StepScore {
    name: String,
    /// That were attempted.
    tasks: usize,
    /// Of these, by name, those that eager fails on: in none of the numbers below but the tokens.
    set_aside: Vec<String>,
    /// AS of the best attempt at each task, the geometric mean over tasks, and where it lies with 95 % confidence over the
    /// choice of tasks. Nothing where every task is set aside.
    score: Option<f64>,
    interval: Option<(f64, f64)>,
    /// Share of tasks with a pass that changed a graph, that are right, and that are faster than eager.
    matched: f64,
    right: f64,
    faster: f64,
    /// AS of the best version so far after each reply.
    over_steps: Vec<At>,
    failures: BTreeMap<String, usize>,
    mean_output_tokens: f64,
}

/// Conversations that were made.
#[derive(Debug, Serialize)]
pub(super) struct Data {
    name: String,
    attempts: usize,
    right: usize,
    learned: usize,
}

impl Data {
    pub(super) fn of(name: &str, attempts: &[AttemptRecord], learned: usize) -> Data {
        let right = attempts.iter().filter(|attempt| attempt.is_correct()).count();
        Data { name: name.into(), attempts: attempts.len(), right, learned }
    }
}

/// The losses of one training.
#[derive(Debug, Serialize)]
pub(super) struct Training {
    name: String,
    losses: Vec<f64>,
}

/// One task before and after.
#[derive(Debug, Serialize)]
pub(super) struct Example {
    task: String,
    before: String,
    after: String,
}

impl Story {
    pub(super) fn new(model: &Path, training: &[PathBuf], withheld: usize) -> Story {
        Story {
            model: model.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            command: std::env::args().collect::<Vec<_>>().join(" "),
            identity: None,
            training_tasks: training.len(),
            withheld,
            steps: Vec::new(),
            also: Vec::new(),
            data: Vec::new(),
            trainings: Vec::new(),
            example: None,
            adapter: PathBuf::new(),
        }
    }
}

impl StepScore {
    /// The steps that have attempts. What eager fails on shows only where a pass came so far that it was run, so a task
    /// that one step found out is set aside in all: every step is scored on the same tasks.
    pub(super) fn of(steps: &[Step]) -> Vec<StepScore> {
        let aside = eager_fails(steps.iter().flat_map(|step| &step.attempts));
        steps.iter().filter_map(|step| StepScore::of_step(step, &aside)).collect()
    }

    fn of_step(step: &Step, aside: &BTreeSet<String>) -> Option<StepScore> {
        let parameters = Parameters::default();
        let metrics = Metrics::without(aside, &step.attempts, parameters)?;
        let counts = |attempt: &&AttemptRecord| !aside.contains(&attempt.start.task);
        let counted: Vec<&AttemptRecord> = step.attempts.iter().filter(counts).collect();
        let mut best: BTreeMap<&str, f64> = BTreeMap::new();
        for attempt in &counted {
            let score = attempt.best_score().unwrap_or(parameters.b);
            let known = best.entry(&attempt.start.task).or_insert(parameters.b);
            *known = known.max(score);
        }
        let logs: Vec<f64> = best.values().map(|score| score.ln()).collect();
        let found = mean_and_spread(&logs);
        let matched = counted.iter().filter(|attempt| attempt.best.is_some()).count();
        let last = |values: &[At]| values.last().map_or(0.0, |at| at.value);
        Some(StepScore {
            name: step.name.clone(),
            tasks: metrics.tasks,
            score: found.map(|(mean, _)| mean.exp()),
            interval: found.map(|(mean, spread)| ((mean - spread).exp(), (mean + spread).exp())),
            matched: matched as f64 / counted.len().max(1) as f64,
            right: last(&metrics.pass_at),
            faster: last(&metrics.fast_at),
            over_steps: metrics.over_steps,
            failures: metrics.failures,
            mean_output_tokens: metrics.output_tokens as f64 / step.attempts.len() as f64,
            set_aside: metrics.set_aside,
        })
    }
}

/// The mean, and how far a 95 % interval reaches to either side; `None` without values.
fn mean_and_spread(values: &[f64]) -> Option<(f64, f64)> {
    if values.is_empty() {
        return None;
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let variance = squares / (count - 1.0).max(1.0);
    Some((mean, SPREAD * (variance / count).sqrt()))
}

impl Training {
    pub(super) fn read(name: &str, folder: &Path) -> Result<Training, CommandError> {
        #[derive(Deserialize)]
        struct Loss {
            loss: f64,
        }
        let path = folder.join("losses.jsonl");
        let text = std::fs::read_to_string(&path)?;
        let loss = |(number, line): (usize, &str)| {
            serde_json::from_str::<Loss>(line).map(|loss| loss.loss).map_err(|error| {
                CommandError::input(format!("{}:{}:1: {error}", path.display(), number + 1))
            })
        };
        let losses = text.lines().enumerate().map(loss).collect::<Result<_, _>>()?;
        Ok(Training { name: name.into(), losses })
    }
}

impl Example {
    /// A task that was not solved in the first step and is in the last; else any.
    pub(super) fn find(steps: &[Step]) -> Option<Example> {
        let (before, after) = (&steps.first()?.attempts, &steps.last()?.attempts);
        let pairs = || {
            before.iter().filter_map(|old| {
                let new = after.iter().find(|new| new.start.task == old.start.task)?;
                Some((old, new))
            })
        };
        let gained = pairs().find(|(old, new)| !old.is_correct() && new.is_correct());
        let (old, new) = gained.or_else(|| pairs().next())?;
        let (before, after) = (first_reply(old), first_reply(new));
        Some(Example { task: old.start.task.clone(), before, after })
    }
}

fn first_reply(attempt: &AttemptRecord) -> String {
    let reply = attempt.events.iter().find_map(|event| match event {
        Event::Reply(reply) => Some(reply.message.content.as_str()),
        _ => None,
    });
    let text = reply.unwrap_or("");
    match text.char_indices().nth(MOST_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_string(),
    }
}

/// The table for people.
pub(super) fn print(story: &Story, out: &mut Output) -> Result<(), CommandError> {
    let mut rows = table(HEAD);
    for step in &story.steps {
        rows.add_row(step.cells());
    }
    for step in &story.also {
        let mut cells = step.cells();
        cells[0] = format!("{}, second set", step.name);
        rows.add_row(cells);
    }
    out.table(&rows)?;
    for name in set_aside(&story.steps).chain(set_aside(&story.also)) {
        out.line(format!("set aside: eager fails: {}", printable(name)))?;
    }
    Ok(())
}

/// The tasks that are set aside, which are the same in every step.
fn set_aside(steps: &[StepScore]) -> impl Iterator<Item = &String> {
    steps.first().into_iter().flat_map(|step| &step.set_aside)
}

impl StepScore {
    fn cells(&self) -> Vec<String> {
        let failures: Vec<String> =
            self.failures.iter().map(|(name, count)| format!("{count} {name}")).collect();
        vec![
            self.name.clone(),
            self.tasks.to_string(),
            self.set_aside.len().to_string(),
            self.score_text(),
            self.interval.map_or("-".into(), |(low, high)| format!("{low:.3} to {high:.3}")),
            parts::percent(self.matched),
            parts::percent(self.right),
            parts::percent(self.faster),
            failures.join(", "),
        ]
    }

    fn score_text(&self) -> String {
        self.score.map_or("-".into(), |score| format!("{score:.3}"))
    }
}

/// The page.
pub(super) fn page(story: &Story) -> String {
    document("PassNet: what learning brought", POLICY, "", |page| {
        page.element("h1", &[], "What learning brought");
        parts::facts(
            &[
                ("model", story.model.clone()),
                ("command", story.command.clone()),
                (
                    "judged on",
                    story.identity.as_ref().map_or_else(|| "-".into(), Identity::describe),
                ),
                ("training tasks", story.training_tasks.to_string()),
                (
                    "left out, as they share a structure with an evaluation task",
                    story.withheld.to_string(),
                ),
                ("adapter", story.adapter.display().to_string()),
            ],
            page,
        );
        steps(story, page);
        if !story.also.is_empty() {
            page.element("h2", &[], "The second set, greedily, one attempt each");
            results(&story.also, page);
        }
        data(story, page);
        for training in &story.trainings {
            page.element("h2", &[], &format!("Loss of {}", training.name));
            let points: Vec<f64> = training.losses.clone();
            curve(&points, "loss", page);
        }
        if let Some(example) = &story.example {
            page.element("h2", &[], &format!("The first reply to {}", example.task));
            for (title, text) in [("Before", &example.before), ("After", &example.after)] {
                page.element("h3", &[], title);
                page.element("pre", &[], text);
            }
        }
    })
}

fn steps(story: &Story, page: &mut Markup) {
    page.element(
        "h2",
        &[],
        "The evaluation tasks: greedily, one attempt each, unless a step says otherwise",
    );
    results(&story.steps, page);
    let scores: Vec<f64> = story.steps.iter().filter_map(|step| step.score).collect();
    page.element("h2", &[], "AS over the steps");
    curve(&scores, "AS", page);
    page.open_table(
        "AS after each reply of an attempt",
        &["step", "after 1", "after 2", "after 3", "in the end"],
    );
    for step in &story.steps {
        let at = |reply: usize| {
            let at = step.over_steps.get(reply - 1).or(step.over_steps.last());
            at.map_or("-".into(), |at| format!("{:.3}", at.value))
        };
        page.row(&[step.name.clone(), at(1), at(2), at(3), step.score_text()]);
    }
    page.close_table();
}

fn results(steps: &[StepScore], page: &mut Markup) {
    page.open_table("AS, pass rate and causes of failure", &HEAD);
    for step in steps {
        page.row(&step.cells());
    }
    page.close_table();
    let aside: Vec<&str> = set_aside(steps).map(String::as_str).collect();
    if !aside.is_empty() {
        page.element("p", &[], &format!("Set aside: eager fails: {}", aside.join(", ")));
    }
}

fn data(story: &Story, page: &mut Markup) {
    page.element("h2", &[], "What was learned from");
    page.open_table("Conversations", &["from", "attempts", "right", "learned"]);
    for data in &story.data {
        let numbers = [data.attempts, data.right, data.learned].map(|number| number.to_string());
        page.row(&[vec![data.name.clone()], numbers.to_vec()].concat());
    }
    page.close_table();
}

/// Values in a row, joined by lines.
fn curve(values: &[f64], what: &str, page: &mut Markup) {
    const WIDTH: f64 = 680.0;
    const HEIGHT: f64 = 220.0;
    const LEFT: f64 = 60.0;
    const EDGE: f64 = 20.0;
    let values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    let (Some(first), Some(last)) = (values.first(), values.last()) else { return };
    let high = values.iter().copied().fold(f64::MIN, f64::max);
    let low = values.iter().copied().fold(0.0, f64::min);
    let span = (high - low).max(f64::MIN_POSITIVE);
    let steps = (values.len() - 1).max(1) as f64;
    let place = |index: usize| {
        let x = LEFT + index as f64 / steps * (WIDTH - LEFT - EDGE);
        (x, HEIGHT - EDGE - (values[index] - low) / span * (HEIGHT - 2.0 * EDGE))
    };
    let description = format!("from {first:.3} to {last:.3} in {} steps", values.len());
    chart::open(page, WIDTH, HEIGHT, what, &description);
    chart::line(page, "axis", (LEFT, HEIGHT - EDGE), (WIDTH - EDGE, HEIGHT - EDGE));
    chart::line(page, "axis", (LEFT, EDGE), (LEFT, HEIGHT - EDGE));
    for index in 1..values.len() {
        chart::line(page, "curve", place(index - 1), place(index));
    }
    chart::label(page, "end", (LEFT - 6.0, EDGE + 4.0), &format!("{high:.2}"));
    chart::label(page, "end", (LEFT - 6.0, HEIGHT - EDGE + 4.0), &format!("{low:.2}"));
    page.close("svg");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_holds_every_step_and_escapes_what_models_say() {
        let step = |name: &str, score: f64| StepScore {
            name: name.into(),
            tasks: 3,
            set_aside: vec!["<refused>".into()],
            score: Some(score),
            interval: Some((score / 2.0, score * 2.0)),
            matched: 0.5,
            right: 0.5,
            faster: 0.0,
            over_steps: vec![At { k: 1, value: score }],
            failures: BTreeMap::from([("no_match".to_string(), 1)]),
            mean_output_tokens: 7.0,
        };
        let mut story = Story::new(Path::new("model.gguf"), &[], 3);
        story.steps = vec![step("baseline", 0.1), step("sft", 0.4)];
        story.trainings = vec![Training { name: "sft".into(), losses: vec![2.0, 1.0, f64::NAN] }];
        let (before, after) = ("<script>x</script>".to_string(), "right".to_string());
        story.example = Some(Example { task: "t".into(), before, after });
        let page = page(&story);
        assert!(page.contains("0.400") && page.contains("baseline") && page.contains("1 no_match"));
        assert!(page.contains("Set aside: eager fails: &lt;refused&gt;"));
        assert!(!page.contains("<script>") && page.contains("&lt;script&gt;"));
        assert_eq!(page.matches("<svg").count(), 2);
    }
}
