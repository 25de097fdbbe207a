//! Random graphs as text, and patterns cut out of them.

use proptest::prelude::*;

/// Operations for random graphs; `@` and `%` stand for operands.
const FORMS: &[&str] = &[
    "@.relu()",
    "torch.sigmoid(@)",
    "torch.nn.functional.gelu(@)",
    "@.transpose(0, 1)",
    "@.view(-1, 4)",
    "@ * 2.0",
    "@ + %",
    "@ * %",
    "torch.matmul(@, %)",
    "torch.cat([@, %], dim=1)",
    "@.add_(%)",
    "torch.nn.functional.dropout(@, 0.5, True, False)",
    "@.softmax(-1)",
];

/// One operation: which form, and which earlier values it uses.
#[derive(Debug, Clone)]
pub struct Step {
    pub form: usize,
    uses: (usize, usize),
}

pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0..FORMS.len(), 0..6_usize, 0..6_usize)
        .prop_map(|(form, first, second)| Step { form, uses: (first, second) });
    prop::collection::vec(step, 1..14)
}

fn operand(names: &[String], back: usize) -> String {
    names[names.len() - 1 - back % names.len()].clone()
}

/// The lines of a graph, with the names each line uses.
pub fn lines(steps: &[Step]) -> Vec<(String, String, Vec<String>)> {
    let mut names: Vec<String> = ["in_0", "in_1", "in_2"].map(String::from).to_vec();
    let mut lines = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let form = FORMS[step.form];
        let mut uses = vec![operand(&names, step.uses.0)];
        let mut text = form.replace('@', &uses[0]);
        if form.contains('%') {
            uses.push(operand(&names, step.uses.1));
            text = text.replace('%', &uses[1]);
        }
        let name = format!("t{index}");
        lines.push((name.clone(), text, uses));
        names.push(name);
    }
    lines
}

pub fn graph_text(lines: &[(String, String, Vec<String>)], extra: usize) -> String {
    let used = |name: &str| lines.iter().any(|(_, _, uses)| uses.iter().any(|u| u == name));
    let mut returned: Vec<&str> =
        lines.iter().map(|(name, ..)| name.as_str()).filter(|name| !used(name)).collect();
    returned.push(&lines[extra % lines.len()].0);
    let body: Vec<String> =
        lines.iter().map(|(name, text, _)| format!("{name} = {text}")).collect();
    format!("{}\nreturn ({},)", body.join("\n"), returned.join(", "))
}

/// A run of lines as a pattern that returns every value something else may want.
pub fn pattern_text(lines: &[(String, String, Vec<String>)]) -> (String, String) {
    let mut parameters: Vec<&str> = Vec::new();
    let mut defined: Vec<&str> = Vec::new();
    for (name, _, uses) in lines {
        for used in uses {
            if !defined.contains(&used.as_str()) && !parameters.contains(&used.as_str()) {
                parameters.push(used);
            }
        }
        defined.push(name);
    }
    let body: Vec<String> =
        lines.iter().map(|(name, text, _)| format!("{name} = {text}")).collect();
    (parameters.join(", "), format!("{}\nreturn {}", body.join("\n"), defined.join(", ")))
}
