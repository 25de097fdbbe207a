//! Small models as text: transformers without attention, of several depths and widths, all in one corpus.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// A model of `depth` blocks on `[1, tokens, width]`, with sizes written into the code as extraction does.
pub fn model(depth: usize, tokens: usize, width: usize) -> (String, String) {
    let half = width / 2;
    let mut arguments = String::from("L_x_ : torch.Tensor");
    let mut body = String::new();
    let mut metas = meta("L_x_", &format!("[1, {tokens}, {width}]"));
    let mut last = "L_x_".to_string();
    for block in 0..depth {
        let name = |what: &str| format!("L_self_modules_{block}_{what}_");
        let (norm_w, norm_b) = (name("ln_parameters_weight"), name("ln_parameters_bias"));
        let (weight, bias) = (name("fc_parameters_weight"), name("fc_parameters_bias"));
        for (argument, shape) in [
            (&norm_w, format!("[{width}]")),
            (&norm_b, format!("[{width}]")),
            (&weight, format!("[{width}, {width}]")),
            (&bias, format!("[{width}]")),
        ] {
            let _ = write!(arguments, ", {argument} : torch.nn.parameter.Parameter");
            metas.push_str(&meta(argument, &shape));
        }
        let _ = write!(
            body,
            "        norm_{block} = torch.nn.functional.layer_norm({last}, ({width},), {norm_w}, {norm_b}, 1e-05)\n\
             \x20       fc_{block} = torch._C._nn.linear(norm_{block}, {weight}, {bias})\n\
             \x20       act_{block} = torch.nn.functional.gelu(fc_{block})\n\
             \x20       heads_{block} = act_{block}.view(1, {tokens}, 2, {half})\n\
             \x20       turned_{block} = heads_{block}.transpose(1, 2)\n\
             \x20       flat_{block} = turned_{block}.reshape(1, {tokens}, {width})\n\
             \x20       sum_{block} = {last} + flat_{block}\n"
        );
        last = format!("sum_{block}");
    }
    let text = format!(
        "import torch\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, {arguments}):\n{body}        return ({last},)\n"
    );
    (text, metas)
}

fn meta(name: &str, shape: &str) -> String {
    format!(
        "class Program_weight_tensor_meta_{name}:\n\tname = \"{name}\"\n\tshape = {shape}\n\tdtype = \"torch.float32\"\n\tdevice = \"cuda:0\"\n\tmean = 0.0\n\tstd = 1.0\n\tdata = None\n\n\n"
    )
}

pub fn write_graph(root: &Path, path: &str, model: &str, metas: &str) {
    let folder = root.join(path);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("model.py"), model).unwrap();
    fs::write(folder.join("weight_meta.py"), metas).unwrap();
    fs::write(folder.join("graph_net.json"), "{\"framework\": \"torch\"}").unwrap();
}

/// Nine models of three widths and depths; one of them twice.
pub fn corpus() -> TempDir {
    let dir = TempDir::new().unwrap();
    for depth in 2..5 {
        for width in [8, 12, 16] {
            let (text, metas) = model(depth, 6, width);
            write_graph(dir.path(), &format!("samples/zoo/net_{depth}_{width}"), &text, &metas);
        }
    }
    let (text, metas) = model(2, 6, 8);
    write_graph(dir.path(), "samples/zoo/twin", &text, &metas);
    dir
}
