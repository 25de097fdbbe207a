//! Pass files: one that stands alone, or several that share their kernels.
//!
//! The reference allows one replacement function for all passes of a task. Several passes therefore return one
//! `dispatch`, and their last argument says which kernel is meant.

use crate::analysis::Piece;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The file that several passes share.
pub const SHARED: &str = "kernels";

/// The parts of a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassText {
    /// The name of its file, without the ending.
    pub stem: String,
    pub(super) summary: String,
    /// Imports that the pattern needs.
    pub(super) imports: String,
    pub(super) pattern: String,
    /// Names that the pattern takes.
    pub(super) parameters: Vec<String>,
    /// Those that the wrapper takes.
    pub(super) arguments: Vec<String>,
    pub(super) kernel: String,
    /// Whether the kernel calls functions of the device's library.
    pub(super) calls_library: bool,
    pub(super) wrapper: String,
}

impl PassText {
    /// A file of its own.
    pub fn alone(&self) -> String {
        let arguments = tuple(&self.arguments);
        format!(
            "\"\"\"{}\n\"\"\"\n\n{}{}\n\n{}\n\ndef replacement_args({}):\n    return {arguments}\n\n\n{}{}\n\ndef replacement_func():\n    return {}\n",
            self.summary,
            self.imports,
            kernel_imports(&[self]),
            self.pattern,
            self.parameters.join(", "),
            self.kernel_above(),
            self.wrapper,
            self.stem,
        )
    }

    /// Whether it hands back what it gets, without a kernel.
    pub fn is_passthrough(&self) -> bool {
        self.kernel.is_empty()
    }

    /// The kernel with the room that stands below it.
    fn kernel_above(&self) -> String {
        if self.is_passthrough() { String::new() } else { format!("{}\n\n", self.kernel) }
    }

    /// Kernel and wrapper with the graph's names replaced by numbers: equal for equal computations.
    pub fn without_names(&self, piece: &Piece) -> String {
        let names: BTreeMap<&str, usize> =
            piece.graph.nodes().iter().enumerate().map(|(at, node)| (&*node.name, at)).collect();
        let mut text = String::new();
        let mut word = String::new();
        for c in format!("{}{} ", self.kernel, self.wrapper).chars() {
            if c.is_alphanumeric() || c == '_' {
                word.push(c);
                continue;
            }
            let (name, suffix) = match word.strip_suffix("_ptr") {
                Some(name) => (name, "_ptr"),
                None => (word.as_str(), ""),
            };
            match names.get(name) {
                Some(at) => text.push_str(&format!("n{at}{suffix}")),
                None => text.push_str(&word),
            }
            word.clear();
            text.push(c);
        }
        text
    }

    /// A file whose kernel stands in the shared one.
    fn routed(&self) -> String {
        let mut arguments = self.arguments.clone();
        arguments.push(format!("\"{}\"", self.stem));
        format!(
            "\"\"\"{}\n\"\"\"\n\n{}import torch\n\nfrom pass_dir.{SHARED} import dispatch\n\n\n{}\n\ndef replacement_args({}):\n    return {}\n\n\ndef replacement_func():\n    return dispatch\n",
            self.summary,
            self.imports,
            self.pattern,
            self.parameters.join(", "),
            tuple(&arguments),
        )
    }
}

/// The order in which passes apply.
pub(crate) const MANIFEST: &str = "sorted_output_pass_rule_names.json";

/// All files of a solution by name, the order of the passes among them.
pub(crate) fn solution_files(passes: &[&PassText]) -> BTreeMap<String, String> {
    let files = pass_files(passes).into_iter();
    let mut files: BTreeMap<String, String> =
        files.map(|(stem, text)| (format!("{stem}.py"), text)).collect();
    let stems: Vec<&str> = passes.iter().map(|pass| pass.stem.as_str()).collect();
    let list = serde_json::to_string(&stems).unwrap_or_default();
    files.insert(MANIFEST.to_string(), format!("{list}\n"));
    files
}

/// All files of a solution, by stem; the passes are those that `passes` names, in its order.
pub fn pass_files(passes: &[&PassText]) -> Vec<(String, String)> {
    if let [only] = passes {
        return vec![(only.stem.clone(), only.alone())];
    }
    let mut files: Vec<(String, String)> =
        passes.iter().map(|pass| (pass.stem.clone(), pass.routed())).collect();
    if !passes.is_empty() {
        files.push((SHARED.to_string(), shared(passes)));
    }
    files
}

fn shared(passes: &[&PassText]) -> String {
    let mut text = format!(
        "\"\"\"The kernels of all passes of this task, behind one function.\"\"\"\n\n{}\n\n",
        kernel_imports(passes)
    );
    for pass in passes {
        let _ = write!(
            text,
            "{}{}\n\n",
            pass.kernel_above(),
            pass.wrapper.trim_start_matches("@torch.fx.wrap\n")
        );
    }
    text.push_str("@torch.fx.wrap\ndef dispatch(*args):\n    route = args[-1]\n");
    for pass in passes {
        let stem = &pass.stem;
        let _ = write!(text, "    if route == \"{stem}\":\n        return {stem}(*args[:-1])\n");
    }
    text.push_str("    raise ValueError(route)\n");
    text
}

fn kernel_imports(passes: &[&PassText]) -> String {
    if passes.iter().all(|pass| pass.is_passthrough()) {
        return "import torch\n".into();
    }
    let library = passes.iter().any(|pass| pass.calls_library);
    let extra = if library { "from triton.language.extra import libdevice\n" } else { "" };
    format!("import torch\nimport triton\nimport triton.language as tl\n{extra}")
}

fn tuple(items: &[String]) -> String {
    match items {
        [only] => format!("({only},)"),
        several => format!("({})", several.join(", ")),
    }
}
