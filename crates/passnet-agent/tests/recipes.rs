//! The recipes that this machine can start, on what the exports write: a dry run of each, with a model of random weights.

mod support;

use passnet_agent::export::{ChatFilter, Framework, PairFilter, framework_lines};
use passnet_agent::model::{Protocol, SolverModel};
use passnet_agent::prompt::{CallStyle, Prompts};
use passnet_agent::run::read_attempts;
use passnet_agent::server::{Server, ServerLimits};
use passnet_agent::trajectory::Source;
use std::ffi::OsString;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::tasks::small_task;
use support::{agent, evaluator, run_in};

fn python() -> OsString {
    std::env::var_os("PASSNET_PYTHON").unwrap_or_else(|| "python3".into())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn succeeds(command: &mut Command) {
    let output =
        command.env("HF_HUB_OFFLINE", "1").env("CUDA_VISIBLE_DEVICES", "").output().unwrap();
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", said(&output.stdout), said(&output.stderr));
}

#[test]
#[ignore = "needs PyTorch and TRL; tools/full-check runs it"]
fn recipes_for_trl_start() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let task = small_task(place.path(), "relu");
    let evaluator = evaluator();
    let mut solver = agent("http://127.0.0.1:1", Protocol::OpenAi);
    solver.info.source = Source::SolverWithMistakes;
    solver.model = Box::new(SolverModel::new(evaluator.clone(), true));
    solver.evaluator = evaluator.clone();
    solver.calls = CallStyle::Text;
    run_in(&at("run"), &solver, std::slice::from_ref(&task), 2, 1);
    let attempts = read_attempts(&at("run")).unwrap();
    for framework in [Framework::TrlPromptCompletion, Framework::TrlPrompt] {
        let lines =
            framework_lines(&attempts, framework, &ChatFilter::default(), PairFilter::default());
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(at(&format!("{}.jsonl", framework.name())), text).unwrap();
    }
    let make = "import sys, pathlib; from tests.test_learn import write_model; write_model(pathlib.Path(sys.argv[1]))";
    let mut command = Command::new(python());
    succeeds(command.current_dir(root().join("python")).args(["-B", "-c", make]).arg(at("model")));
    let mut command = Command::new(python());
    let recipe = root().join("recipes/trl_sft.py");
    let data = at("trl-prompt-completion.jsonl");
    succeeds(command.arg(recipe).arg(at("model")).arg(data).arg(at("sft")).arg("--dry-run"));
    assert!(at("sft/adapter_model.safetensors").is_file());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let limits = ServerLimits::default();
    let server =
        Server::start(listener, vec![task], evaluator, &Prompts::built_in(), limits, None).unwrap();
    let mut command = Command::new(python());
    command
        .arg(root().join("recipes/trl_grpo.py"))
        .arg(at("model"))
        .arg(at("trl-prompt.jsonl"))
        .arg(at("grpo"))
        .args(["--dry-run", "--server", &format!("http://{}", server.address())]);
    succeeds(&mut command);
    assert!(at("grpo/adapter_model.safetensors").is_file());
    assert_eq!(server.open_episodes(), 0, "rewards leave no episode behind");
}
