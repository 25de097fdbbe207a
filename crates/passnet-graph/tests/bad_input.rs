//! Hostile texts: every one gives a located error or a graph, none a panic, a hang or an overflow.

use passnet_graph::syntax::Source;
use passnet_graph::{FileName, GraphFiles, read};
use proptest::prelude::*;

const MODEL: &str = "import torch\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, x, w):\n        \
     y = torch.nn.functional.linear(x, w, None);  w = None\n        \
     z = y.view(1, -1, 4)[(slice(None, None, None), 0)]\n        \
     z += x\n        r = z\n        return (r, y)\n";

const META: &str = "class Program_weight_tensor_meta_x:\n\tname = \"x\"\n\tshape = [4, 4]\n\t\
     dtype = \"torch.float32\"\n\tdevice = \"cpu\"\n\tmean = 0.0\n\tstd = float('nan')\n\tdata = None\n";

fn model(body: &str) -> String {
    format!("import torch\nclass GraphModule(torch.nn.Module):\n    def forward(self, x):\n{body}")
}

fn read_text(text: impl Into<String>) -> Result<(), String> {
    let source = Source::new("model.py", text);
    read::read_model(&source).map(|_| ()).map_err(|error| error.to_string())
}

fn assert_refused(text: impl Into<String>, message: &str) {
    let error = read_text(text).expect_err("this must be refused");
    assert!(error.contains(message), "{error}");
}

#[test]
fn deep_nesting_is_refused_before_it_costs_anything() {
    let deep = 10_000;
    for expression in [
        format!("{}x{}", "(".repeat(deep), ")".repeat(deep)),
        format!("{}x", "-".repeat(deep)),
        format!("x{}", "[0]".repeat(deep)),
        format!("x{}", ".T".repeat(deep)),
        format!("x{}", " + x".repeat(deep)),
        format!("{}x{}", "torch.relu(".repeat(deep), ")".repeat(deep)),
        format!("{}1{}", "[".repeat(deep), "]".repeat(deep)),
    ] {
        assert_refused(model(&format!("        y = {expression}\n")), "nested more than");
    }
}

#[test]
fn long_lines_are_read_and_their_errors_are_shown_short() {
    let numbers = "1.25, ".repeat(700_000);
    let text = model(&format!("        y = torch.tensor([{numbers}])\n        return (y,)\n"));
    assert!(text.len() > 4 << 20);
    assert_eq!(read_text(text), Ok(()));
    let text = model(&format!("        y = torch.tensor([{numbers} oops])\n        return (y,)\n"));
    let error = read::read_model(&Source::new("model.py", text)).expect_err("undefined name");
    assert!(error.source_line.expect("a source line").text.len() <= 200);
}

#[test]
fn a_truncated_model_is_located_wherever_it_ends() {
    for end in (0..MODEL.len()).filter(|&end| MODEL.is_char_boundary(end)) {
        // Cutting inside the last line can leave a whole, smaller graph.
        if let Err(error) = read_text(&MODEL[..end]) {
            assert!(error.starts_with("model.py"), "{error}");
        }
    }
    assert_eq!(read_text(MODEL), Ok(()));
}

#[test]
fn metadata_that_contradicts_the_model_is_reported() {
    let read = |meta: &str| {
        let files =
            GraphFiles::new("g").with(FileName::Model, MODEL).with(FileName::WeightMeta, meta);
        read::read_folder(&files).expect_err("incomplete metadata")
    };
    let messages =
        |meta: &str| -> Vec<String> { read(meta).into_iter().map(|e| e.message).collect() };
    assert_eq!(messages(META), ["no class describes argument `w`"]);
    let other = META.replace("_x:", "_q:").replace("\"x\"", "\"q\"");
    assert!(
        messages(&format!("{META}{other}")).contains(&"`q` is not an argument of `forward`".into())
    );
    let twice = META.replace("_x:", "_x2:").replace("[4, 4]", "[4, 5]");
    assert!(messages(&format!("{META}{twice}"))[0].contains("contradict"));
    assert!(messages(&META.replace("[4, 4]", "[4, -4]"))[0].contains("non-negative"));
    assert!(messages(&META.replace("[4, 4]", "[1 << 60, 4]"))[0].contains("non-negative"));
    assert!(messages(&META.replace("[4, 4]", "[4611686018427387904, 4]"))[0].contains("too many"));
    assert!(
        messages(&META.replace("data = None", "data = [1, 2]"))[0].contains("records 2 values")
    );
    assert!(messages(&META.replace("float32", "float31"))[0].contains("unknown dtype"));
    assert!(messages("import os\nos.system('true')\n")[0].contains("expected a class"));
}

#[test]
fn files_that_are_not_text_are_refused_with_their_place() {
    let files = GraphFiles::new("g").with(FileName::Model, b"import torch\n\xff\xfe".to_vec());
    let errors = read::read_folder(&files).expect_err("not text");
    assert_eq!((errors[0].line, errors[0].column), (2, 1));
    let files =
        GraphFiles::new("g").with(FileName::Model, MODEL).with(FileName::GraphNet, "{\"a\": ");
    assert!(read::read_folder(&files).expect_err("bad JSON")[0].message.contains("not valid JSON"));
    let empty = read::read_folder(&GraphFiles::new("g")).expect_err("no model");
    assert_eq!(empty[0].message, "there is no `model.py`");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn noise_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let files = GraphFiles::new("g")
            .with(FileName::Model, bytes.clone())
            .with(FileName::WeightMeta, bytes.clone())
            .with(FileName::InputTensorConstraints, bytes.clone())
            .with(FileName::SubgraphSources, bytes);
        let _ = read::read_folder(&files);
    }

    #[test]
    fn a_damaged_model_never_panics(
        place in 0..MODEL.len(), length in 0..20_usize, noise in "[ -~\\n]{0,12}"
    ) {
        let end = (place + length).min(MODEL.len());
        let text = format!("{}{noise}{}", &MODEL[..place], &MODEL[end..]);
        let _ = read_text(text);
    }

    #[test]
    fn damaged_metadata_never_panics(
        place in 0..META.len(), length in 0..20_usize, noise in "[ -~\\n]{0,12}"
    ) {
        let end = (place + length).min(META.len());
        let text = format!("{}{noise}{}", &META[..place], &META[end..]);
        let _ = read::read_tensor_metas(&Source::new("weight_meta.py", text));
    }
}
