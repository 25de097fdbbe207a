//! Texts that want to be more than text, in every field that an author can write.

mod support;

use passnet_bench::evaluate::Evaluation;
use passnet_bench::run::{Event, GraphEvent, RunStore};
use passnet_bench::verdict::{Evidence, Verdict, VerdictKind};
use passnet_web::bundle::{AgentSummary, AttemptRef, Draft};
use serde_json::json;
use support::{Board, HOSTILE, check_page, eager_run, open_handed};

/// A run in which this text stands wherever a text can stand.
fn everywhere(board: &Board, index: usize, text: &str) -> Draft {
    let folder = board.room.path(&format!("run {index}"));
    let mut store = RunStore::open(&folder).unwrap();
    let model = store.keep(text.as_bytes()).unwrap();
    let mut events = eager_run(1.2);
    for event in &mut events {
        match event {
            Event::Start(start) => {
                start.version = text.into();
                start.machine.processor = text.into();
                if let Some(place) = &mut start.identity {
                    place.processor = text.into();
                    place.build.commit = text.into();
                    place.build.features = vec![text.into()];
                    place.device.name = text.into();
                    place.torch = Some(text.into());
                }
            }
            Event::Graph(graph) => hostile_graph(graph, text, &model),
            Event::End { .. } => {}
        }
        store.append(event).unwrap();
    }
    let mut draft = passnet_web::bundle::draft_of_run(&folder, &Default::default()).unwrap();
    draft.manifest.name = text.into();
    draft.manifest.agent = Some(AgentSummary {
        model: text.into(),
        tasks: 1,
        attempts: 1,
        steps: 1,
        input_tokens: 1,
        output_tokens: 1,
        cost: None,
        seconds: 1.0,
    });
    let trajectory = draft.add(trajectory(text));
    draft.manifest.attempts = vec![AttemptRef { task: text.into(), attempt: 0, trajectory }];
    draft
}

fn hostile_graph(graph: &mut GraphEvent, text: &str, model: &str) {
    graph.sample = format!("{text}{}", graph.sample);
    graph.artefacts = vec![("model.py".into(), model.to_string())];
    let evaluation = &mut graph.evaluation;
    evaluation.judged.graph = format!("{text}{}", evaluation.judged.graph);
    if evaluation.judged.graph.ends_with("/1") {
        *evaluation = Evaluation::without_run(
            &evaluation.judged.graph,
            Verdict::new(VerdictKind::ReferenceFail).because(text),
        );
        return;
    }
    evaluation.dtype = text.into();
    evaluation.operations = vec![text.into()];
    evaluation.outputs[0].dtype = text.into();
    evaluation.checks[1].name = text.into();
    evaluation.checks[1].detail = text.into();
    evaluation.remarks = vec![Evidence::Message { text: text.into() }];
}

/// An attempt of a model that says nothing but this.
fn trajectory(text: &str) -> Vec<u8> {
    let usage = json!({ "input": 1, "output": 1 });
    let call = json!({ "id": text, "name": text, "arguments": text });
    let spent = json!({ "steps": 1, "usage": usage, "context": 1, "cost": null, "seconds": 1.0 });
    let events = [
        json!({ "event": "start", "format": 1, "version": text, "task": text, "sample": text, "folder": text,
                "graphs": 1, "attempt": 0, "calls": "native", "prompts": text, "time": 0.0,
                "model": { "name": text, "protocol": "open_ai", "base_url": text, "sampling": {} },
                "limits": { "steps": 5, "seconds": 10.0, "call_seconds": 10.0 } }),
        json!({ "event": "message", "message": { "role": "system", "content": text } }),
        json!({ "event": "message", "message": { "role": "user", "content": text } }),
        json!({ "event": "reply", "step": 1, "stop": "tool_calls", "usage": usage, "seconds": 0.5, "time": 0.0,
                "message": { "content": text, "reasoning": text, "tool_calls": [call] } }),
        json!({ "event": "result", "step": 1, "index": 0, "id": text, "tool": text, "content": text,
                "seconds": 0.1, "time": 0.0 }),
        json!({ "event": "end", "reason": "submitted", "detail": text, "spent": spent, "time": 0.0 }),
    ];
    events.iter().map(|event| format!("{event}\n")).collect::<String>().into_bytes()
}

#[test]
fn hostile_text_stays_text_in_every_field_of_every_page() {
    let board = Board::start(open_handed());
    let key = board.room.key("key");
    for (index, text) in HOSTILE.iter().enumerate() {
        let bundle = everywhere(&board, index, text).pack(Some(&key)).unwrap();
        let answer = board.submit(&bundle);
        assert_eq!(answer.status, 202, "{}", answer.text());
    }
    board.settle();
    let entries = board.store().all_entries().unwrap();
    assert_eq!(entries.len(), HOSTILE.len(), "{:?}", board.store().submissions(20).unwrap());
    let mut attempts = 0;
    for path in board.pages() {
        let answer = board.get(&path);
        assert_eq!(answer.status, 200, "{path}");
        let page = answer.text();
        check_page(&page, &path);
        if path.contains("/attempt/") {
            assert!(page.contains("Thoughts") && page.contains("Step 1: the model"), "{page}");
            attempts += 1;
        }
    }
    assert_eq!(attempts, HOSTILE.len());
}
