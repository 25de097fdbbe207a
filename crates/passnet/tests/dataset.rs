//! `passnet dataset` as people and machines see it, on ten small models; and what bad input, a full stop in the
//! middle and tables for the Hugging Face hub look like.

#[path = "../../passnet-dataset/tests/common/mod.rs"]
mod common;

use assert_cmd::Command;
use common::{corpus, model, write_graph};
use passnet_dataset::content::ContentKey;
use passnet_dataset::store::Store;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;
use tempfile::TempDir;

/// Runs `passnet` in `folder`: exit code, stdout, stderr.
fn passnet(folder: &Path, arguments: &str) -> (i32, String, String) {
    let output = Command::cargo_bin("passnet")
        .unwrap()
        .current_dir(folder)
        .args(arguments.split(' '))
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// All that the command said, in one text.
fn shown(folder: &Path, arguments: &str) -> String {
    let (code, out, err) = passnet(folder, arguments);
    let text =
        format!("$ passnet {arguments}\nexit code {code}\n--- stdout\n{out}--- stderr\n{err}");
    // How large a store is on disk is not the command's business.
    let is_size = |line: &&str| line.ends_with(" MB");
    match text.lines().find(is_size).and_then(|line| line.rsplit_once(", ")) {
        Some((_, size)) => text.replace(size, "[size]"),
        None => text,
    }
}

/// Ten models in `samples`, one of them twice.
fn workplace() -> TempDir {
    let (source, work) = (corpus(), TempDir::new().unwrap());
    fs::rename(source.path().join("samples"), work.path().join("samples")).unwrap();
    work
}

#[test]
fn each_step_says_what_it_did() {
    let work = workplace();
    for (name, arguments) in [
        ("import", "dataset import samples --store corpus.pnds"),
        ("import_again", "dataset import samples --store corpus.pnds --json"),
        ("stats", "dataset stats corpus.pnds --kind full"),
        ("dedup_dry", "dataset dedup corpus.pnds --dry-run --json"),
        ("dedup", "dataset dedup corpus.pnds"),
        ("decompose_typical", "dataset decompose corpus.pnds --kind typical"),
        ("decompose_fusible", "dataset decompose corpus.pnds --kind fusible"),
        ("decompose_sole_op", "dataset decompose corpus.pnds --kind sole-op --json"),
        ("vary", "dataset vary corpus.pnds --kind typical"),
        ("vary_again", "dataset vary corpus.pnds --kind typical --json"),
        ("sample", "dataset sample corpus.pnds"),
        ("split", "dataset split corpus.pnds --evaluation 2"),
        ("verify", "dataset verify corpus.pnds"),
        ("export", "dataset export corpus.pnds --out out --kind typical --only-tasks"),
    ] {
        insta::assert_snapshot!(name, shown(work.path(), arguments));
    }
    let (code, _, err) = passnet(work.path(), "dataset split corpus.pnds --evaluation 10000");
    assert_eq!(code, 0);
    assert!(err.contains("note: 10000 evaluation tasks were asked for, and there are "), "{err}");
    assert!(
        err.contains("of kind typical to choose from: all of them are for evaluation, 0 are left"),
        "{err}"
    );
    let (code, out, _) = passnet(work.path(), "dataset stats corpus.pnds --json");
    let stats: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &stats["kinds"]["full"]["graphs"]), (0, &9.into()));
}

#[test]
fn build_runs_every_step() {
    let work = workplace();
    let arguments = "dataset build --from samples --store s --kind typical --evaluation 2 --json";
    let (code, out, _) = passnet(work.path(), arguments);
    assert_eq!(code, 0);
    let steps: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = steps.iter().map(|step| step["step"].as_str().unwrap()).collect();
    let expected =
        ["import", "dedup full", "decompose typical", "dedup typical", "vary", "sample", "split"];
    assert_eq!(names, expected);
    assert!(steps.iter().all(|step| step["seconds"].is_f64() && !step["result"].is_null()));
}

#[test]
fn mistakes_are_explained_and_make_no_store() {
    let work = TempDir::new().unwrap();
    fs::write(work.path().join("text"), "this is no store").unwrap();
    for (name, arguments) in [
        ("no_store", "dataset stats nowhere.pnds"),
        ("not_a_store", "dataset dedup text"),
        ("no_source", "dataset import nowhere --store s"),
        ("no_counts", "dataset decompose text --kind fusible --counts nowhere"),
        ("full_is_not_varied", "dataset vary text --kind full"),
        ("bad_set", "dataset export text --out out --set ../up"),
    ] {
        insta::assert_snapshot!(name, shown(work.path(), arguments));
    }
    assert!(!work.path().join("nowhere.pnds").exists() && !work.path().join("s").exists());
}

#[test]
fn bad_graphs_cost_only_themselves() {
    let work = TempDir::new().unwrap();
    let root = work.path();
    let (text, metas) = model(2, 6, 8);
    write_graph(root, "zoo/good", &text, &metas);
    write_graph(root, "zoo/truncated", &text[..text.len() / 2], &metas);
    write_graph(root, "zoo/contradicting", &text, &metas.replace("[8, 8]", "[8, -8]"));
    write_graph(root, "zoo/no_shapes", &text, "x = 1\n");
    write_graph(
        root,
        "zoo/deep",
        &text.replace("return (", &format!("return ({}", "(".repeat(10_000))),
        &metas,
    );
    fs::create_dir_all(root.join("zoo/folder_for_file/model.py")).unwrap();
    fs::create_dir_all(root.join("zoo/noise")).unwrap();
    fs::write(root.join("zoo/noise/model.py"), [0xff, 0x00, 0x9d, 0x80]).unwrap();
    symlink("../../zoo", root.join("zoo/good/loop")).unwrap();
    symlink("nothing", root.join("zoo/nowhere")).unwrap();
    insta::assert_snapshot!("import_bad", shown(root, "dataset import zoo --store s"));
    let (code, out, _) = passnet(root, "dataset stats s --json");
    assert_eq!(code, 0);
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["graphs"], 1);
    // What can be read as a graph is checked; what cannot is on stderr, and the input as a whole is bad.
    insta::assert_snapshot!("check_bad", shown(root, "graph check zoo"));
}

#[test]
fn a_truncated_archive_gives_the_graphs_before_the_cut() {
    let work = TempDir::new().unwrap();
    let root = work.path();
    let (text, metas) = model(2, 6, 8);
    for name in ["zoo/a", "zoo/b", "zoo/c"] {
        write_graph(root, name, &text, &metas);
    }
    let tar = ["cf", "t.tar", "--sort=name", "zoo"];
    let status = std::process::Command::new("tar").current_dir(root).args(tar).status();
    assert!(status.unwrap().success());
    let whole = fs::read(root.join("t.tar")).unwrap();
    let name = b"zoo/c/weight_meta.py";
    let header = whole.windows(name.len()).position(|window| window == name).unwrap();
    // The header is whole, the text behind it is not.
    fs::write(root.join("t.tar"), &whole[..header + 600]).unwrap();
    let (code, out, err) = passnet(root, "dataset import t.tar --store s");
    assert_eq!(
        (code, out.as_str()),
        (1, "2 graphs added, 0 replaced, 0 there already, 1 failed\n")
    );
    assert!(err.contains("the archive is cut off; incomplete and left out: `zoo/c`"), "{err}");
    assert_eq!(Store::open(&root.join("s")).unwrap().len().unwrap(), 2);
}

type Content = (BTreeMap<String, ContentKey>, Vec<(String, String)>);

/// Everything a store holds that others see.
fn content(path: &Path) -> Content {
    let store = Store::open(path).unwrap();
    let entries = store.entries().map(|record| record.unwrap());
    (entries.map(|record| (record.path, record.content)).collect(), store.tasks().unwrap())
}

fn command(folder: &Path, arguments: &str) -> std::process::Command {
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("passnet"));
    command.current_dir(folder).arg("dataset").args(arguments.split(' '));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

#[test]
fn a_build_killed_in_every_step_ends_with_the_same_content() {
    let work = workplace();
    let build = |store: &str| {
        let kinds = "typical,sole-op";
        let arguments =
            format!("build --from samples --store {store} --kind {kinds} --evaluation 2");
        command(work.path(), &arguments)
    };
    assert!(build("whole").status().unwrap().success());
    // A line on stderr ends each step: the kill lands in the one after it.
    for steps in 0..9 {
        let mut child = build("killed").stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        lines.by_ref().take(steps).for_each(|line| drop(line.unwrap()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(build("killed").status().unwrap().success());
    assert_eq!(content(&work.path().join("killed")), content(&work.path().join("whole")));
}

#[test]
fn an_import_killed_between_its_batches_continues() {
    let work = TempDir::new().unwrap();
    let text = "import torch\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, x : torch.Tensor):\n        return (x + N,)\n";
    let metas = "class Program_weight_tensor_meta_x:\n    name = \"x\"\n    shape = [2]\n    dtype = \"torch.float32\"\n";
    // A batch is 512 graphs.
    let total: u64 = 1_600;
    for number in 0..total {
        let (text, path) = (text.replace('N', &number.to_string()), format!("many/g{number:04}"));
        write_graph(work.path(), &path, &text, metas);
    }
    let import = |store: &str| command(work.path(), &format!("import many --store {store}"));
    assert!(import("whole").status().unwrap().success());
    let whole = content(&work.path().join("whole"));
    assert_eq!(whole.0.len() as u64, total);
    // The kill must land between the first batch and the last; when the import was faster, another one is tried.
    let between = (0..100).any(|attempt| {
        let name = format!("killed_{attempt}");
        let path = work.path().join(&name);
        let mut child = import(&name).spawn().unwrap();
        let stored = || Store::open(&path).and_then(|store| store.len()).unwrap_or(0);
        while stored() == 0 && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let kept = stored();
        assert!(import(&name).status().unwrap().success());
        assert_eq!(content(&path), whole, "attempt {attempt}, {kept} kept");
        0 < kept && kept < total
    });
    assert!(between, "no kill landed in the middle");
}

#[test]
#[ignore = "needs datasets; tools/full-check runs it"]
fn datasets_opens_an_export_and_what_it_writes_is_imported() {
    let work = workplace();
    let root = work.path();
    let build = "dataset build --from samples --store s --kind typical --evaluation 2";
    assert_eq!(passnet(root, build).0, 0);
    let (code, out, err) = passnet(root, "dataset export s --out tables --format hub --json");
    assert_eq!(code, 0, "{err}");
    let done: Value = serde_json::from_str(&out).unwrap();
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tests/read_hub_folder.py");
    let named =
        ["PASSNET_DATASETS_PYTHON", "PASSNET_PYTHON"].into_iter().find_map(std::env::var_os);
    let mut python = std::process::Command::new(named.unwrap_or_else(|| "python3".into()));
    let read = python.arg(script).args(["tables", "again"]).current_dir(root).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let rows: Value = serde_json::from_slice(&read.stdout).unwrap();
    for config in ["graphs", "tasks"] {
        let splits = rows[config].as_object().unwrap();
        assert!(splits.contains_key("train") && splits.contains_key("test"), "{rows}");
        let sum: u64 = splits.values().filter_map(Value::as_u64).sum();
        assert_eq!(Some(sum), done[config].as_u64(), "{rows}");
    }
    // Both our own tables and those of `datasets`, which are packed and coded otherwise, give the same store.
    for folder in ["tables", "again"] {
        let (code, out, err) =
            passnet(root, &format!("dataset import {folder} --store from_{folder}"));
        assert_eq!(code, 0, "{out}{err}");
    }
    let whole = content(&root.join("from_tables"));
    let pieces = |content: Content| -> BTreeMap<String, ContentKey> {
        content.0.into_iter().filter(|(path, _)| path.starts_with("typical")).collect()
    };
    assert_eq!(content(&root.join("from_again")), whole);
    assert_eq!(whole.1, content(&root.join("s")).1, "all tasks");
    assert_eq!(pieces(whole), pieces(content(&root.join("s"))));
}

#[test]
fn tables_for_the_hub_are_written_and_read() {
    let work = workplace();
    let root = work.path();
    let build = "dataset build --from samples --store s --kind typical --evaluation 2";
    assert_eq!(passnet(root, build).0, 0);
    insta::assert_snapshot!(
        "export_hub",
        shown(root, "dataset export s --out tables --format hub")
    );
    let card = fs::read_to_string(root.join("tables/README.md")).unwrap();
    // The key that ends it is that of the store, whatever is in it.
    let (card, _) = card.split_once("Key of the content").unwrap();
    insta::assert_snapshot!("card", card);
    insta::assert_snapshot!(
        "export_hub_again",
        shown(root, "dataset export s --out tables --format hub")
    );
    insta::assert_snapshot!("import_hub", shown(root, "dataset import tables --store again"));
    let table = "dataset import tables/data/graphs/test-00000.parquet --store part";
    assert_eq!(passnet(root, table).0, 0);
    fs::write(root.join("bad.parquet"), "no table").unwrap();
    insta::assert_snapshot!(
        "import_no_table",
        shown(root, "dataset import bad.parquet --store bad")
    );
    assert!(!root.join("bad").exists());
}

#[test]
fn a_store_is_drawn_on_one_page() {
    let work = workplace();
    let root = work.path();
    let build = "dataset build --from samples --store s --kind typical --evaluation 2";
    assert_eq!(passnet(root, build).0, 0);
    assert_eq!(passnet(root, "dataset stats s --html store.html").0, 0);
    let page = fs::read_to_string(root.join("store.html")).unwrap();
    for what in [
        "Operations over families",
        "The long tail",
        "typical: operations a graph",
        "typical: depth, in operations",
        "full: structures, by the graphs that share them",
    ] {
        assert!(page.contains(what), "{what}");
    }
    assert!(!page.contains("src=") && !page.contains("href="), "it needs nothing else");
    let (code, _, err) = passnet(root, "dataset stats s --html nowhere/store.html");
    assert_eq!(code, 2);
    assert!(err.contains("nowhere/store.html cannot be written"), "{err}");
}

#[test]
fn places_of_passes_and_operations_are_found() {
    let work = workplace();
    let root = work.path();
    let build = "dataset build --from samples --store s --kind sole-op --evaluation 2";
    assert_eq!(passnet(root, build).0, 0);
    let pass = "import torch\nimport triton\nimport triton.language as tl\n\n\n\
        def pattern(x):\n    return torch.nn.functional.gelu(x)\n\n\n\
        def replacement_args(x):\n    return (x,)\n\n\n\
        @triton.jit\ndef kernel(x, y, n, BLOCK: tl.constexpr):\n    \
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    \
        tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)\n\n\n\
        @torch.fx.wrap\ndef run(x):\n    y = torch.empty_like(x)\n    \
        kernel[(1,)](x, y, x.numel(), BLOCK=1024)\n    return y\n\n\n\
        def replacement_func():\n    return run\n";
    fs::write(root.join("gelu.py"), pass).unwrap();
    for (name, arguments) in [
        ("find_pass", "dataset find s --pass gelu.py --kind full --limit 3"),
        ("find_op", "dataset find s --op torch.nn.functional.gelu,layer_norm --limit 2"),
        ("find_nothing", "dataset find s --op conv2d"),
        ("find_unknown", "dataset find s --op geluu"),
    ] {
        insta::assert_snapshot!(name, shown(root, arguments));
    }
    let (code, out, _) = passnet(root, "dataset find s --pass gelu.py --json");
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (summary, graphs) = lines.split_last().unwrap();
    let places: u64 = graphs.iter().map(|graph| graph["places"].as_u64().unwrap()).sum();
    assert_eq!((code, summary["summary"]["places"].as_u64()), (0, Some(places)));
    assert_eq!(summary["summary"]["graphs"].as_u64(), Some(graphs.len() as u64));
    // A block of every model has one: 2 to 4 of them in each of nine models, and each alone.
    let whole = graphs.iter().filter(|graph| graph["kind"] == "full");
    assert_eq!(whole.map(|graph| graph["places"].as_u64().unwrap()).sum::<u64>(), 27);
}

#[test]
fn a_piece_that_does_not_run_is_in_no_task() {
    let work = TempDir::new().unwrap();
    let root = work.path();
    let text = "import torch\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, t, i):\n        \
        y = torch.nn.functional.embedding(i, t)\n        z = y + 1.0\n        return (z,)\n";
    let meta = |most: u32| {
        format!(
            "class Program_weight_tensor_meta_t:\n    name = \"t\"\n    shape = [10, 4]\n    dtype = \"torch.float32\"\n    \
             mean = 0.0\n    std = 1.0\n    data = None\n\n\n\
             class Program_weight_tensor_meta_i:\n    name = \"i\"\n    shape = [64]\n    dtype = \"torch.int64\"\n    \
             min_val = 0\n    max_val = {most}\n    data = None\n"
        )
    };
    let piece = |name: &str| {
        format!("typical_subgraphs/float32/9/samples/zoo/{name}/_decomposed/{name}_start0_end2_0")
    };
    write_graph(&root.join("g"), &piece("good"), text, &meta(9));
    let wide = text.replace("1.0", "2.0");
    write_graph(&root.join("g"), &piece("wide"), &wide, &meta(1_000));
    assert_eq!(passnet(root, "dataset import g --store s").0, 0);
    assert_eq!(passnet(root, "dataset verify s").0, 0, "by its types it fits");
    let (code, out, _) = passnet(root, "dataset verify s --run");
    assert_eq!(code, 1);
    assert!(out.contains("wide_start0_end2_0: not runnable: does not run: "), "{out}");
    assert!(out.contains("2 graphs, 1 meet all"), "{out}");
    let graphs = |arguments: &str| {
        let (code, out, err) = passnet(root, arguments);
        assert_eq!(code, 0, "{err}");
        let tasks = out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        (tasks.map(|task| task["uids"].as_array().unwrap().len()).sum::<usize>(), err)
    };
    assert_eq!(graphs("dataset sample s --json").0, 2);
    let (count, said) = graphs("dataset sample s --run --json");
    assert_eq!(count, 1);
    assert!(
        said.contains("note: left out: typical_subgraphs/float32/9/samples/zoo/wide/"),
        "{said}"
    );
}
