//! `passnet bench` as a user runs it: results, keys, and everything that is refused.

mod benched;

use benched::{QUICK, TASK, bench, bundled, events, graph_events, json, passnet};
use serde_json::Value;
use std::path::{Path, PathBuf};

#[test]
fn a_bundled_task_is_evaluated_with_every_documented_key() {
    let result = json(&mut bench(None));
    assert!(result["as"].is_f64() && result["run"].is_null());
    assert_eq!(result["es"].as_object().unwrap().len(), 15);
    let graphs = result["graphs"].as_array().unwrap();
    assert!(graphs.len() >= 3);
    for graph in graphs {
        assert_eq!(graph["verdict"], "correct", "{graph}");
        assert!(graph["speedup"].as_f64().unwrap() > 0.0);
        assert_eq!(graph["interval"].as_array().unwrap().len(), 2);
        assert!(graph["evidence"].as_array().unwrap().is_empty());
    }
}

#[test]
fn the_table_names_the_task_and_the_score() {
    let output = bench(None).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    for part in [TASK, "ES(t)", "1 = eager", "AS  ", "correct   ", "noise floor"] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
}

#[test]
fn compilers_play_against_eager_where_the_engine_has_them() {
    let verdicts = |compiler: &str| -> Vec<String> {
        let mut command = passnet();
        command.arg("bench").arg(bundled("tasks").join(TASK)).args(["--compiler", compiler]);
        let result = json(command.args(QUICK));
        let graphs = result["graphs"].as_array().unwrap().iter();
        graphs.map(|graph| graph["verdict"].as_str().unwrap().to_string()).collect()
    };
    for compiler in ["eager", "joined"] {
        let verdicts = verdicts(compiler);
        assert!(!verdicts.is_empty() && verdicts.iter().all(|it| it == "correct"), "{verdicts:?}");
    }
}

#[test]
fn a_baseline_is_measured_once_in_each_place_and_shown_beside_the_passes() {
    let folder = tempfile::tempdir().unwrap();
    let against = |arguments: &[&str]| -> Value {
        let mut command = bench(None);
        command.args(["--against", "joined", "--baselines"]).arg(folder.path()).args(arguments);
        json(&mut command)["against"][0].take()
    };
    let first = against(&[]);
    let graphs = first["graphs"].as_u64().unwrap();
    assert!(graphs >= 3 && first["kept"] == 0 && first["both"] == graphs, "{first}");
    assert_eq!((&first["compiler"], &first["correct"]), (&"joined".into(), &graphs.into()));
    assert!(first["ratio"].as_f64().unwrap() > 0.0 && first["as"].is_f64(), "{first}");
    let again = against(&[]);
    assert_eq!(again["kept"], graphs, "the same place, the same question");
    assert_eq!(again["speedup"], first["speedup"]);
    let run = PathBuf::from(first["run"].as_str().unwrap());
    assert_eq!(graph_events(&run), graphs as usize, "an ordinary run, each graph in it once");
    assert_eq!(events(&run)[0]["compiler"], "joined");
    assert_eq!(against(&["--no-rules"])["kept"], 0, "judged another way");
    let text = bench(None).args(["--against", "joined", "--baselines"]).arg(folder.path()).output();
    let text = String::from_utf8(text.unwrap().stdout).unwrap();
    assert!(text.contains("kept before") && text.contains("times as fast"), "{text}");
}

/// Nothing runs elsewhere than was asked, and nothing that was mistyped counts against a pass.
#[test]
fn what_cannot_be_done_as_asked_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    let task = bundled("tasks").join(TASK);
    let refusals = [
        (
            &["--compiler", "eager", "--device", "cuda"][..],
            "`--device cuda` needs `--engine torch`",
        ),
        (&["--compiler", "inductor"], "`--compiler inductor` needs `--engine torch`"),
        (
            &["--compiler", "joined", "--engine", "torch"],
            "`--compiler joined` needs `--engine native`",
        ),
        (&["--compiler", "cudagraph"], "needs `--engine torch --device cuda`"),
        (
            &["--compiler", "cudagraph", "--engine", "torch"],
            "`--compiler cudagraph` needs `--engine torch --device cuda`",
        ),
        (&["--compiler", "eager", "--against", "cudagraph"], "`--against cudagraph` needs"),
        (
            &["--compiler", "eager", "--mode", "max-autotune"],
            "`--mode` needs `--compiler inductor`",
        ),
        (
            &["--compiler", "eager", "--devices", "0,1"],
            "`--devices` needs `--engine torch --device",
        ),
        (
            &["--compiler", "eager", "--engine", "torch", "--devices", "0"],
            "`--devices` needs `--engine torch --device cuda`",
        ),
        (
            &["--compiler", "eager", "--engine", "torch", "--device", "cuda", "--devices", "1,1"],
            "`--devices` names GPU 1 twice",
        ),
        (&["--compiler", "eager", "--tier", "compat"], "`--tier compat` needs `--engine torch`"),
        (&["--passes", "no/such/passes"], "no/such/passes: there is no such folder of passes"),
        (&["--passes", "empty"], "empty: no passes for any of these samples"),
    ];
    for (arguments, expected) in refusals {
        let mut command = passnet();
        command.current_dir(folder.path()).arg("bench").arg(&task).args(arguments).args(QUICK);
        let output = command.args(["--out", "run"]).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{error}");
        assert!(error.contains(expected) && error.contains("hint: "), "{error}");
        assert!(!folder.path().join("run").exists(), "nothing was begun");
    }
}

/// Copies a bundled task; its graphs lie in it.
#[test]
fn empty_variables_name_nothing() {
    json(bench(None).env("PASSNET_PYTHON", "").env("PASSNET_RUNNER", ""));
}

/// A program that was built without a plan runner and moved away from where one lies says so at once, and not for every graph
/// that the machine failed.
#[test]
#[cfg_attr(not(debug_assertions), ignore = "a release build carries the plan runner")]
fn passes_are_not_begun_without_a_plan_runner() {
    let away = tempfile::tempdir().unwrap();
    let program = away.path().join("passnet");
    std::fs::copy(assert_cmd::cargo::cargo_bin("passnet"), &program).unwrap();
    let mut command = assert_cmd::Command::new(&program);
    command.arg("bench").arg(bundled("tasks").join(TASK)).arg("--passes").arg(bundled("passes"));
    command.args(["--engine", "torch"]).env("PASSNET_RUNNER", "").env("PASSNET_PYTHON", "");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("with libpassnet_runner.so, and there is none"), "{said}");
    assert!(said.contains("PASSNET_RUNNER"), "{said}");
}

fn copy_of(task: &Path, into: &Path) {
    for entry in std::fs::read_dir(task).unwrap().map(Result::unwrap) {
        let (from, to) = (entry.path(), into.join(entry.file_name()));
        std::fs::create_dir_all(into).unwrap();
        match from.is_dir() {
            true => copy_of(&from, &to),
            false => drop(std::fs::copy(&from, &to).unwrap()),
        }
    }
}

#[test]
fn samples_of_equal_names_stay_apart_and_one_named_twice_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = ["one", "two"].map(|name| folder.path().join(name).join(TASK));
    copy_of(&bundled("tasks").join(TASK), &one);
    copy_of(&bundled("tasks").join(TASK), &two);
    // One graph of the second is another one.
    let list = std::fs::read_to_string(two.join("graph_list.txt")).unwrap();
    let count = list.lines().filter(|line| !line.trim().is_empty()).count();
    let model = two.join(list.lines().next().unwrap()).join("model.py");
    let text = std::fs::read_to_string(&model).unwrap();
    std::fs::write(&model, format!("# another\n{text}")).unwrap();
    let run = folder.path().join("run");
    let mut command = passnet();
    command.arg("bench").args([&one, &two, &one]).arg(folder.path().join("one"));
    command.args(["--compiler", "eager"]).args(QUICK).arg("--out").arg(&run);
    let result = json(&mut command);
    assert_eq!(result["graphs"].as_array().unwrap().len(), 2 * count, "each graph once");
    let mut report = passnet();
    let report = json(report.arg("report").arg(&run));
    let tasks: Vec<&str> = report["groups"]["task"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["name"].as_str().unwrap())
        .collect();
    assert_eq!(tasks, [format!("{TASK}@one"), format!("{TASK}@two")]);
}

#[test]
fn every_result_says_where_it_comes_from() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = passnet();
    command.arg("bench").arg(bundled("tasks").join(TASK)).args(["--compiler", "eager"]);
    let result = json(command.args(QUICK).arg("--out").arg(folder.path()));
    let place = &result["identity"];
    assert_eq!((&place["engine"], &place["device"]["kind"]), (&"native".into(), &"cpu".into()));
    for key in ["version", "commit", "profile"] {
        assert!(!place["build"][key].as_str().unwrap().is_empty(), "{key} in {place}");
    }
    assert!(place["cores"].as_u64().unwrap() > 0 && place["processor"].is_string());
    assert_eq!(&events(folder.path())[0]["identity"], place, "in the run");
    let report = json(passnet().arg("report").arg(folder.path()));
    assert_eq!(&report["conditions"][0]["identity"], place, "in reports");
    let score = json(passnet().arg("score").arg(folder.path()));
    assert_eq!(&score["conditions"][0]["identity"], place, "in scores");
    assert_eq!(score["seal"]["state"], "sealed");
    // A store that was written elsewhere answers nothing here.
    let text = std::fs::read_to_string(folder.path().join("events.jsonl")).unwrap();
    let known = graph_events(folder.path());
    let elsewhere = tempfile::tempdir().unwrap();
    let forged: Vec<String> = text
        .lines()
        .map(|line| {
            let mut event: Value = serde_json::from_str(line).unwrap();
            event.as_object_mut().unwrap().remove("seal");
            if event["event"] == "graph" {
                event["key"] = "0".repeat(64).into();
            }
            event.to_string()
        })
        .collect();
    std::fs::write(elsewhere.path().join("events.jsonl"), forged.join("\n") + "\n").unwrap();
    let mut command = passnet();
    command.arg("bench").arg(bundled("tasks").join(TASK)).args(["--compiler", "eager"]);
    json(command.args(QUICK).arg("--out").arg(elsewhere.path()));
    assert_eq!(graph_events(elsewhere.path()), 2 * known, "all were judged again");
}

/// One case of the red team, by name: what stopped it, and that eager is not raced for it.
#[test]
fn a_filter_asks_for_some_cases_of_the_self_check() {
    let self_check = |filter: &str| {
        let mut command = passnet();
        command.args(["bench", "--self-check", "--filter", filter]);
        command.arg("--suite").arg(bundled("redteam")).arg(bundled("tasks"));
        command
    };
    let result = json(&mut self_check("framework_getattr"));
    let cases = result["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 1);
    assert_eq!(cases[0]["exploit_with_rules"]["layer"], "rules", "{result}");
    assert_eq!(cases[0]["exploit_without_rules"]["layer"], "plan", "{result}");
    assert_eq!(cases[0]["control"]["verdict"]["verdict"], "correct", "{result}");
    assert_eq!(result["attacks_succeeded"], 0);
    assert!(result["eager_against_itself"].is_null());
    let none = self_check("no such case").output().unwrap();
    assert_eq!(none.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&none.stderr).contains("no case of"), "{none:?}");
}

#[test]
fn a_build_server_gets_an_exit_code_and_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let run = |least: &str| {
        let mut command = bench(None);
        command.args(["--filter", "graphs/float16", "--fail-below", least]);
        command.arg("--junit").arg(file("junit.xml")).arg("--markdown").arg(file("page.md"));
        command.output().unwrap()
    };
    let reached = run("0");
    let text = String::from_utf8(reached.stdout).unwrap();
    assert_eq!(reached.status.code(), Some(0), "{text}");
    assert!(text.contains("correct   1 of 1 graphs"), "the filter leaves one graph: {text}");
    for part in ["junit.xml", "page.md", "1 is as fast as eager", "how far outputs may differ"] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    let missed = run("1000");
    let text = String::from_utf8(missed.stdout).unwrap();
    assert_eq!(missed.status.code(), Some(1));
    assert!(text.contains("is below the 1000 asked for"), "{text}");
    let junit = std::fs::read_to_string(file("junit.xml")).unwrap();
    assert!(
        junit.contains("<testsuite name=\"swiglu\" tests=\"1\" failures=\"0\" errors=\"0\">"),
        "{junit}"
    );
    assert!(junit.contains("name=\"AS is at least 1000\"><failure message=\"AS is "), "{junit}");
    let page = std::fs::read_to_string(file("page.md")).unwrap();
    assert!(page.contains("| swiglu | graphs/float16\\_2x96x4096 | correct |"), "{page}");
    let mut nothing = bench(None);
    let output = nothing.args(["--filter", "no such graph"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_failed_graph_has_a_next_step() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = passnet();
    command
        .arg("bench")
        .arg(bundled("tasks/swiglu"))
        .arg("--passes")
        .arg(bundled("passes/geglu_tanh"));
    command.args(QUICK).arg("--out").arg(folder.path());
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("next: passnet pass explain PASSES --in "), "{text}");
    assert!(text.contains("next: passnet report "), "{text}");
    assert!(text.contains("events.jsonl"), "{text}");
}

#[test]
fn the_bundled_tasks_are_found_from_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = passnet();
    command.current_dir(folder.path()).env("XDG_CACHE_HOME", folder.path().join("cache"));
    command.args(["bench", "--bundled", "--filter", "swiglu/graphs/float16"]).args(QUICK);
    let result = json(&mut command);
    assert_eq!(result["graphs"][0]["verdict"], "correct", "{result}");
    let mut command = passnet();
    command.current_dir(folder.path()).env("XDG_CACHE_HOME", folder.path().join("cache"));
    let output = command.args(["bench", "--self-check", "--filter", "constant_output"]).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}
