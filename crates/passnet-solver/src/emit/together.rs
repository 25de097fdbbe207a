//! Several kernels behind one launch: the first programs do the work of one, the next that of another.
//!
//! A launch costs a GPU about two microseconds, as long as a small kernel computes. Kernels that do not wait for each other
//! become functions, and one kernel calls the function that a program's number belongs to.

use super::file::PassText;
use super::kernel::{KernelText, constant, header};
use super::wrapper::{HostSide, Wrapper, launch_lines, launch_options, made_contiguous};
use super::{Choice, Draft, name_of, pattern};
use crate::analysis::piece::Param;
use crate::analysis::{Piece, Refusal, refuse};
use passnet_graph::NodeId;
use std::collections::BTreeMap;

/// One of the kernels, with its names as they are in the wrapper of all.
struct Part {
    function: String,
    kernel: KernelText,
    host: HostSide,
    /// What its function is called with in the kernel of all, besides program numbers and constants.
    taken: Vec<String>,
    /// The name of each output of the pattern in the wrapper.
    returned: Vec<(String, String)>,
    number: usize,
    for_gpu: bool,
}

/// A pass for pieces that do not need each other's results; `piece` is all of them.
pub fn together(
    piece: &Piece,
    drafts: &[(Draft<'_>, Choice)],
    stem: &str,
) -> Result<PassText, Refusal> {
    if let [(only, choice)] = drafts {
        return only.written_as(stem, *choice);
    }
    let parts = drafts.iter().enumerate();
    let parts: Vec<Part> = parts
        .map(|(number, (draft, choice))| Part::new(piece, draft, *choice, number))
        .collect::<Result<_, _>>()?;
    // Who wants fewer gives each lane less to do.
    let warps = drafts.iter().map(|(_, choice)| choice.warps).max().unwrap_or(1);
    let wrapper = Wrapper::new(piece, stem, &lines(piece, &parts, stem, warps)?);
    let pattern = pattern::write(piece);
    let functions: Vec<String> =
        parts.iter().map(|part| part.kernel.part(&part.function, part.for_gpu)).collect();
    Ok(PassText {
        stem: stem.to_string(),
        summary: format!(
            "{}\n\nOne launch for {} kernels that do not wait for each other. Arithmetic in float32, rounded where eager stores.",
            pattern::summary(piece),
            parts.len(),
        ),
        imports: pattern.imports,
        pattern: pattern.text,
        parameters: wrapper.parameters,
        arguments: wrapper.arguments,
        kernel: format!("{}\n\n{}", functions.join("\n\n"), kernel(&parts, stem)),
        calls_library: parts.iter().any(|part| part.kernel.calls_library()),
        wrapper: wrapper.text,
    })
}

impl Part {
    fn new(all: &Piece, draft: &Draft<'_>, choice: Choice, number: usize) -> Result<Part, Refusal> {
        let piece = draft.piece;
        if piece.updates().next().is_some() {
            refuse!("a parameter is updated in place");
        }
        if choice.programs > 0 {
            refuse!("a launch folds chunks of rows, and another one what they give");
        }
        let shape = draft.shape_as(choice);
        let kernel = KernelText::new(piece, &draft.body, &draft.space, shape, choice)?;
        let host = HostSide::new(piece, &kernel, shape, choice)?;
        let mut names = shared_names(all, piece)?;
        let own = host.results.iter().chain(&host.sizes).map(|(name, _)| name.as_str());
        for name in own.chain(host.defined.iter().copied()) {
            names.insert(name.to_string(), format!("{name}_{number}"));
        }
        let renamed = |texts: &[String]| -> Vec<String> {
            texts.iter().map(|text| rename(text, &names)).collect()
        };
        let pairs = |pairs: &[(String, String)]| -> Vec<(String, String)> {
            pairs.iter().map(|(a, b)| (rename(a, &names), rename(b, &names))).collect()
        };
        let outputs = piece.outputs.iter().map(|id| name_of(piece, *id).to_string());
        let returned = outputs.zip(renamed(&host.returned)).collect();
        let host = HostSide {
            contiguous: host.contiguous.clone(),
            results: pairs(&host.results),
            early: Vec::new(),
            sizes: pairs(&host.sizes),
            steps: renamed(&host.steps),
            defined: host.defined,
            grid: renamed(&host.grid),
            arguments: renamed(&host.arguments),
            constants: renamed(&host.constants),
            returned: Vec::new(),
        };
        // A pointer is called after its tensor, everything else as in the wrapper.
        let is_pointer = |name: &String| name.ends_with("_ptr");
        let taken = host.arguments.iter().zip(&kernel.signature).map(|(argument, parameter)| {
            if is_pointer(parameter) { format!("{argument}_ptr") } else { argument.clone() }
        });
        let taken = taken.collect();
        Ok(Part {
            function: draft.stem.clone(),
            kernel,
            host,
            taken,
            returned,
            number,
            for_gpu: choice.for_gpu,
        })
    }

    fn constant(&self, name: &str) -> String {
        format!("{name}_{}", self.number)
    }

    /// The call of its function for a program of all.
    fn call(&self, before: Option<&str>) -> String {
        let program = match before {
            None => "program".to_string(),
            Some(before) => format!("program - {before}"),
        };
        let mut arguments = match self.kernel.numbers() {
            1 => vec![program],
            _ => {
                let across = format!("across_{}", self.number);
                let program = if before.is_none() { program } else { format!("({program})") };
                vec![format!("{program} // {across}"), format!("{program} % {across}")]
            }
        };
        arguments.extend(self.taken.iter().cloned());
        arguments.extend(self.kernel.constants.iter().map(|name| self.constant(name)));
        format!("{}({})", self.function, arguments.join(", "))
    }
}

/// What a piece's parameters are called in the pattern of all.
fn shared_names(all: &Piece, piece: &Piece) -> Result<BTreeMap<String, String>, Refusal> {
    let params = |piece: &Piece| (0..piece.params.len()).map(NodeId::new).collect::<Vec<_>>();
    let mut names = BTreeMap::new();
    for id in params(piece) {
        let name = match piece.params[id.index()] {
            Param::Tensor(_) | Param::Number => continue,
            // Literals are numbered anew in every pattern.
            Param::Literal => params(all)
                .into_iter()
                .filter(|other| matches!(all.params[other.index()], Param::Literal))
                .find(|other| all.values(*other) == piece.values(id))
                .map(|other| name_of(all, other).to_string()),
            Param::Device => {
                let tensor = params(all).into_iter().find(|other| all.is_tensor(*other));
                let device = tensor.map(|tensor| format!("{}.device", name_of(all, tensor)));
                device.or_else(|| Some(name_of(piece, id).to_string()))
            }
        };
        let Some(name) = name else { refuse!("a number is not an argument of all") };
        names.insert(name_of(piece, id).to_string(), name);
    }
    Ok(names)
}

/// A text with other names; what follows a dot is no name.
fn rename(text: &str, names: &BTreeMap<String, String>) -> String {
    let mut renamed = String::new();
    let mut word = String::new();
    let mut after_dot = false;
    for c in text.chars().chain(std::iter::once(' ')) {
        if c.is_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        match names.get(&word) {
            Some(name) if !after_dot => renamed.push_str(name),
            _ => renamed.push_str(&word),
        }
        word.clear();
        after_dot = c == '.';
        renamed.push(c);
    }
    renamed.pop();
    renamed
}

/// The lines of the wrapper.
fn lines(piece: &Piece, parts: &[Part], stem: &str, warps: usize) -> Result<Vec<String>, Refusal> {
    let mut tensors: Vec<String> = Vec::new();
    for tensor in parts.iter().flat_map(|part| &part.host.contiguous) {
        if !tensors.contains(tensor) {
            tensors.push(tensor.clone());
        }
    }
    let mut lines = made_contiguous(&tensors);
    let mut ends: Vec<String> = Vec::new();
    let mut arguments: Vec<String> = Vec::new();
    for part in parts {
        lines.extend(part.host.preparation());
        let mut programs = part.host.grid[0].clone();
        if let Some(across) = part.host.grid.get(1) {
            lines.push(format!("across_{} = {across}", part.number));
            programs = format!("{programs} * across_{}", part.number);
        }
        let end = format!("end_{}", part.number);
        let before = ends.last().map_or(String::new(), |before| format!("{before} + "));
        lines.push(format!("{end} = {before}{programs}"));
        ends.push(end);
        for argument in runtime_arguments(part) {
            if !arguments.contains(&argument) {
                arguments.push(argument);
            }
        }
    }
    let all = ends.pop().unwrap_or_default();
    arguments.extend(ends);
    for part in parts {
        let constants = part.kernel.constants.iter().zip(&part.host.constants);
        arguments.extend(constants.map(|(name, value)| format!("{}={value}", part.constant(name))));
    }
    arguments
        .extend(launch_options(&warps.to_string(), parts.iter().any(|part| part.kernel.rounds)));
    lines.extend(launch_lines(stem, &format!("({all},)"), &arguments));
    let returned: Option<Vec<String>> = piece
        .outputs
        .iter()
        .map(|output| {
            let mut known = parts.iter().flat_map(|part| &part.returned);
            Some(known.find(|(name, _)| name == name_of(piece, *output))?.1.clone())
        })
        .collect();
    let Some(returned) = returned else { refuse!("a result of a part is no result of all") };
    lines.push(format!("return {}", returned.join(", ")));
    Ok(lines)
}

/// What the kernel of all takes for a part, besides constants, by its name in the wrapper.
fn runtime_arguments(part: &Part) -> impl Iterator<Item = String> {
    let across = (part.kernel.numbers() > 1).then(|| format!("across_{}", part.number));
    part.host.arguments.iter().cloned().chain(across)
}

/// The kernel that calls the parts.
fn kernel(parts: &[Part], stem: &str) -> String {
    let mut signature: Vec<String> = Vec::new();
    for part in parts {
        let across = (part.kernel.numbers() > 1).then(|| format!("across_{}", part.number));
        let is_fixed =
            |name: &String| part.for_gpu && part.host.sizes.iter().any(|(size, _)| size == name);
        let taken = part.taken.iter().map(|name| match is_fixed(name) {
            true => constant(name),
            false => name.clone(),
        });
        for name in taken.chain(across) {
            if !signature.contains(&name) {
                signature.push(name);
            }
        }
    }
    let ends: Vec<String> = parts.iter().map(|part| format!("end_{}", part.number)).collect();
    signature.extend_from_slice(&ends[..ends.len() - 1]);
    for part in parts {
        let constants = part.kernel.constants.iter().map(|name| part.constant(name));
        signature.extend(constants.map(|name| constant(&name)));
    }
    let mut text = format!(
        "@triton.jit\n{}\n    program = tl.program_id(0)\n",
        header(&format!("{stem}_kernel"), &signature)
    );
    for (at, part) in parts.iter().enumerate() {
        let condition = match at {
            0 => format!("if program < {}", ends[0]),
            last if last + 1 == parts.len() => "else".into(),
            _ => format!("elif program < {}", ends[at]),
        };
        let before = at.checked_sub(1).map(|before| ends[before].as_str());
        text.push_str(&format!("    {condition}:\n        {}\n", part.call(before)));
    }
    text
}
