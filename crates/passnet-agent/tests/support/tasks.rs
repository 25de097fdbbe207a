//! Small tasks and passes for them.

use passnet_agent::task::Task;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub const MANIFEST: &str = "pass_dir/sorted_output_pass_rule_names.json";

const MODEL: &str = "
import torch

class GraphModule(torch.nn.Module):
    def forward(self, x, y):
        tmp_0 = x * y
        tmp_1 = torch.nn.functional.relu(tmp_0, inplace=False)
        return (tmp_1,)
";

/// An honest pass for `relu(x * y)`; tests change one thing at a time.
pub const PASS: &str = include_str!("../../../passnet-dataset/tests/common/relu_product.py");

fn meta(shape: &str) -> String {
    ["x", "y"]
        .map(|name| {
            format!(
                "class Program_weight_tensor_meta_{name}:\n    name = \"{name}\"\n    shape = {shape}\n    \
                 dtype = \"torch.float32\"\n    device = \"cpu\"\n    mean = 0.0\n    std = 1.0\n    data = None\n\n"
            )
        })
        .concat()
}

/// Writes a task of graphs `relu(x * y)` with these shapes.
pub fn write_task(folder: &Path, graphs: &[(&str, &str)]) {
    let mut list = String::new();
    for (name, shape) in graphs {
        let graph = folder.join("graphs").join(name);
        std::fs::create_dir_all(&graph).unwrap();
        std::fs::write(graph.join("model.py"), MODEL).unwrap();
        std::fs::write(graph.join("weight_meta.py"), meta(shape)).unwrap();
        std::fs::write(graph.join("graph_net.json"), "{\"framework\": \"torch\"}").unwrap();
        list.push_str(&format!("graphs/{name}\n"));
    }
    std::fs::write(folder.join("graph_list.txt"), list).unwrap();
}

/// A task of two small graphs.
pub fn small_task(root: &Path, name: &str) -> Arc<Task> {
    let folder = root.join(name);
    write_task(&folder, &[("small", "[3, 5]"), ("large", "[64, 100]")]);
    Arc::new(Task::read(&folder).unwrap())
}

/// A task of the repository.
pub fn bundled(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/tasks").join(name)
}

/// The pass of the repository for a task of the same name.
pub fn bundled_pass(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/passes").join(name);
    std::fs::read_to_string(folder.join(format!("{name}.py"))).unwrap()
}
