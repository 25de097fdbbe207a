//! A PassNet checkout in small: every layout of graphs, samples and lists, as the published one has them.

use passnet_dataset::sample::identity::{SampleId, Uid};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

/// An honest pass for `relu(x * y)`.
pub const PASS: &str = include_str!("relu_product.py");

/// The two ways in which published graphs are written.
const RENAMED: &str = "import torch

class GraphModule(torch.nn.Module):

    def forward(self, in_0, in_1):
        tmp_0 = in_0 * in_1
        in_0 = in_1 = None
        tmp_1 = torch.nn.functional.relu(tmp_0, inplace=False)
        tmp_0 = None
        return (tmp_1,)
";
const PRINTED: &str = "import torch

class GraphModule(torch.nn.Module):
    
    
    
    def forward(self, in_0 : torch.Tensor, in_1 : torch.Tensor):
        tmp_0 = in_0 * in_1;  in_0 = in_1 = None
        tmp_1 = torch.nn.functional.relu(tmp_0, inplace = False);  tmp_0 = None
        return (tmp_1,)
        ";
const SOLE: &str = "import torch

class GraphModule(torch.nn.Module):
    
    
    
    def forward(self, in_0 : torch.Tensor):
        tmp_0 = in_0.sigmoid();  in_0 = None
        return (tmp_0,)
        ";

pub const V2: &str = "graphs/hf_subgraphs_v2";
pub const LEGACY: &str = "graphs/hf_subgraphs";
pub const DEMO_GRAPH: &str = "graphs/fusible_subgraphs/net/net_0_start3_end5_0";
pub const DEMO_SAMPLE: &str = "samples/fusible_subgraphs/net/net_0_start3_end5_0";

/// What was written, by what tests want to know.
#[derive(Debug)]
pub struct Written {
    /// Paths of samples by the kind of their set: `v2_fusible`, `v2_typical`, `v2_sole_op`, `legacy_fusible`, `demo`.
    pub samples: BTreeMap<&'static str, String>,
}

fn text(root: &Path, path: &str, content: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn metas(names: &[&str], dtype: &str, shape: &str) -> String {
    let one = |name: &&str| {
        format!(
            "class Program_weight_tensor_meta_{name}_of_model:\n\tname = \"{name}\"\n\toriginal_name = \"{name}_of_model\"\n\
             \tshape = {shape}\n\tdtype = \"torch.{dtype}\"\n\tdevice = \"cuda:0\"\n\tmean = 0.000\n\tstd = 1.000\n\
             \tdata = None\n"
        )
    };
    names.iter().map(one).collect::<Vec<_>>().join("\n\n")
}

fn graph(root: &Path, path: &str, model: &str, dtype: &str, shape: &str) {
    let names: &[&str] = if model == SOLE { &["in_0"] } else { &["in_0", "in_1"] };
    text(root, &format!("{path}/model.py"), model);
    text(root, &format!("{path}/weight_meta.py"), &metas(names, dtype, shape));
    for empty in ["input_meta.py", "input_tensor_constraints.py"] {
        text(root, &format!("{path}/{empty}"), "");
    }
    let json = "{\n    \"framework\": \"torch\",\n    \"num_devices_required\": 1,\n    \"model_name\": \"net\"\n}";
    text(root, &format!("{path}/graph_net.json"), json);
    // Published hashes are often those of an earlier text.
    text(root, &format!("{path}/graph_hash.txt"), &"0f".repeat(32));
}

/// A uid like the published ones: 32 digits that nothing can be computed from.
pub fn uid(number: u8) -> String {
    format!("{number:02x}").repeat(16)
}

fn sample(root: &Path, path: &str, graphs: &[&str], uids: Option<&[String]>) {
    let list: String = graphs.iter().map(|graph| format!("{graph}\n")).collect();
    text(root, &format!("{path}/graph_list.txt"), &list);
    if let Some(uids) = uids {
        text(root, &format!("{path}/sample_uids.txt"), &uids.join(","));
    }
    text(root, &format!("{path}/pass_dir/.ignore"), "");
    let up = path.split('/').map(|_| "..").collect::<Vec<_>>().join("/");
    for (name, target) in
        [("entry.sh", "entry_scripts/entry.sh"), ("graphs", "graphs"), ("pass_bench", "pass_bench")]
    {
        symlink(format!("{up}/{target}"), root.join(path).join(name)).unwrap();
    }
}

/// The folder of a sample of the second set.
fn hashed(kind: &str, uids: &[String]) -> String {
    let members: Vec<Uid> = uids.iter().map(|uid| uid.parse().unwrap()).collect();
    let id = SampleId::of(&members).to_string();
    format!("samples/hf_subgraphs_v2/{kind}_subgraphs/{}/{}/{id}", &id[..2], &id[2..4])
}

/// Writes the checkout to `root`.
pub fn write(root: &Path) -> Written {
    let piece = |number: usize| format!("samples/timm/net/_decomposed/net_start3_end5_{number}");
    let fusible = [format!("float32/9/{}", piece(0)), format!("float16/3/{}", piece(0))];
    let typical = format!("bfloat16/0/{}", piece(1));
    let sole = format!("float16/{}", piece(2));
    let legacy = piece(3);
    let v2 = |kind: &str, path: &str| format!("{V2}/{kind}_subgraphs/{path}");
    graph(root, &v2("fusible", &fusible[0]), RENAMED, "float32", "[32, 48]");
    graph(root, &v2("fusible", &fusible[1]), PRINTED, "float16", "[8, 48]");
    graph(root, &v2("typical", &typical), PRINTED, "bfloat16", "[4, 48]");
    graph(root, &v2("sole_op", &sole), SOLE, "float16", "[4, 40]");
    let legacy_path = format!("{LEGACY}/fusible_subgraphs/{legacy}");
    graph(root, &legacy_path, RENAMED, "float32", "[16, 16]");
    graph(root, DEMO_GRAPH, RENAMED, "float32", "[64, 64]");
    // A file that is none of a graph's stays where it is.
    text(root, &format!("{DEMO_GRAPH}/notes.md"), "cut by hand\n");

    let fusible_uids = [uid(0x2b), uid(0x7b)];
    let paths = [v2("fusible", &fusible[0]), v2("fusible", &fusible[1])];
    let v2_fusible = hashed("fusible", &fusible_uids);
    sample(root, &v2_fusible, &[&paths[0], &paths[1]], Some(&fusible_uids));
    let v2_typical = hashed("typical", &[uid(0x11)]);
    sample(root, &v2_typical, &[&v2("typical", &typical)], Some(&[uid(0x11)]));
    let v2_sole = hashed("sole_op", &[uid(0x33)]);
    sample(root, &v2_sole, &[&v2("sole_op", &sole)], Some(&[uid(0x33)]));
    let legacy_sample = format!("samples/hf_subgraphs/fusible_subgraphs/{}", uid(0x44));
    sample(root, &legacy_sample, &[&legacy_path], Some(&[uid(0x44)]));
    sample(root, DEMO_SAMPLE, &[DEMO_GRAPH], None);
    text(root, &format!("{DEMO_SAMPLE}/pass_dir/FuseMulRelu.py"), PASS);
    let manifest = "[\"FuseMulRelu\"]\n";
    text(root, &format!("{DEMO_SAMPLE}/pass_dir/sorted_output_pass_rule_names.json"), manifest);

    let list = |name: &str, lines: &[String]| {
        let content: String = lines.iter().map(|line| format!("{line}\n")).collect();
        text(root, name, &content);
    };
    let listed = |uid: &str, path: &str| format!("{uid}\t{path}");
    list("graph_lists/fusible_subgraphs.txt", &[listed(&uid(0x55), "net/net_0_start3_end5_0")]);
    list("graph_lists/hf_fusible_subgraphs.txt", &[listed(&uid(0x44), &legacy)]);
    let lines = [listed(&fusible_uids[0], &fusible[0]), listed(&fusible_uids[1], &fusible[1])];
    list("graph_lists/hf_fusible_subgraphs_v2.txt", &lines);
    list("graph_lists/hf_typical_subgraphs_v2.txt", &[listed(&uid(0x11), &typical)]);
    list("graph_lists/hf_sole_op_subgraphs_v2.txt", &[listed(&uid(0x33), &sole)]);
    list("graph_lists/hf_grouped_fusible_subgraph_uids.txt", &[uid(0x44)]);
    list("graph_lists/hf_grouped_fusible_subgraph_uids_v2.txt", &[fusible_uids.join(",")]);
    list("graph_lists/hf_grouped_typical_subgraph_uids_v2.txt", &[uid(0x11)]);
    list("graph_lists/hf_grouped_sole_op_subgraph_uids_v2.txt", &[uid(0x33)]);

    list("sample_lists/demo_fusible_samples.txt", &[DEMO_SAMPLE.to_string()]);
    list("sample_lists/hf_fusible_samples_v2.txt", std::slice::from_ref(&v2_fusible));
    list("sample_lists/eval/hf_fusible_eval_samples_v2.txt", std::slice::from_ref(&v2_fusible));
    let rows = ["sample_path".to_string(), v2_fusible.clone()];
    list("sample_lists/eval/hf_fusible_eval_samples_v2.csv", &rows);
    list("sample_lists/eval/test_empty_samples.txt", &[]);
    let graphs = [
        "sample_id,graph_path,dtype".to_string(),
        format!("0,{},bfloat16", v2("typical", &typical)),
    ];
    list("sample_lists/eval/hf_typical_eval_graph_lists_v2.csv", &graphs);
    let rows = ["sample_path".to_string(), v2_typical.clone()];
    list("sample_lists/train/hf_typical_train_samples_v2.csv", &rows);
    // No newline at the end, and a path with the list's name: both occur.
    text(
        root,
        "sample_lists/train/hf_sole_op_train_samples.txt",
        &format!("{v2_sole}/graph_list.txt"),
    );

    text(root, "entry_scripts/entry.sh", "#!/bin/bash\necho the harness of the checkout\n");
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(root.join("entry_scripts/entry.sh"), executable).unwrap();
    text(root, "README.md", "A small checkout.\n");
    text(root, "pass_bench/__init__.py", "");
    let samples = BTreeMap::from([
        ("v2_fusible", v2_fusible),
        ("v2_typical", v2_typical),
        ("v2_sole_op", v2_sole),
        ("legacy_fusible", legacy_sample),
        ("demo", DEMO_SAMPLE.to_string()),
    ]);
    Written { samples }
}

/// Everything below `root` in the folders that hold data: files with their content, links with where they lead.
pub fn tree(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for top in ["graph_lists", "graphs", "sample_lists", "samples"] {
        if root.join(top).exists() {
            look(root, top, &mut found);
        }
    }
    found
}

fn look(root: &Path, path: &str, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(root.join(path)).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{path}/{}", entry.file_name().to_str().unwrap());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            look(root, &path, found);
        } else if kind.is_symlink() {
            let target = fs::read_link(entry.path()).unwrap();
            found.insert(path, format!("-> {}", target.display()));
        } else {
            let mode = entry.metadata().unwrap().permissions().mode() & 0o111 != 0;
            let content = String::from_utf8(fs::read(entry.path()).unwrap()).unwrap();
            found.insert(path, format!("{}{content}", if mode { "x " } else { "" }));
        }
    }
}
