//! Entries judged on this machine, by PassBench, on the graphs that are kept with them.

use crate::entry::Evidence;
use crate::folder::{Library, evidence_of};
use passnet_bench::bench::Bench;
use passnet_bench::evaluate::EvaluateOptions;
use passnet_bench::run::Event;
use passnet_bench::subject::Subject;
use passnet_engine::Engine;
use passnet_graph::FileName;

/// What PassBench says of an entry on an engine. An error where there is nothing to judge it on, or the machine failed.
pub fn judge(
    library: &Library,
    name: &str,
    engine: &dyn Engine,
    options: &EvaluateOptions,
) -> Result<Vec<Evidence>, String> {
    let sample = library.graphs(name).ok_or(
        "there are no graphs with it to judge it on; `passnet library add --graphs` keeps some",
    )?;
    let bench = Bench::new(engine, Subject::PASSES, options.clone(), true);
    let Event::Start(start) = bench.start() else { return Err("a run begins otherwise".into()) };
    let judged = bench
        .sample(&sample, &library.pass_folder(name), None)
        .map_err(|error| error.to_string())?;
    if let Some(lost) = judged.not_judged.first() {
        return Err(format!("{} could not be judged: {}", lost.graph, lost.reason));
    }
    let evidence = judged.events.into_iter().map(|mut event| {
        let model = sample.graph_files(&event.evaluation.judged.graph).ok();
        let model = model.and_then(|files| files.get(FileName::Model).map(blake3::hash));
        let digest = model.map(|digest| digest.to_hex().to_string()).unwrap_or_default();
        event.artefacts = vec![(FileName::Model.as_str().to_string(), digest)];
        evidence_of(&start, &event)
    });
    Ok(evidence.collect())
}
