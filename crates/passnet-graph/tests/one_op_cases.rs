//! Runs every case of `tests/ops/*.txt` (PyTorch's answers; `tests/ops/README.md` has the format) through
//! the parser and the inference, and compares.

use passnet_graph::graph::{Graph, NodeId, NodeKind};
use passnet_graph::infer::{Scalar, TensorType, Value, infer};
use passnet_graph::read::read_folder;
use passnet_graph::{DType, FileName, GraphFiles, infer::Dim};
use std::fmt::Write as _;
use std::path::Path;

#[derive(Default)]
struct Case {
    first_line: usize,
    inputs: Vec<String>,
    /// Statements with their line and, for operations, the expected type.
    statements: Vec<(usize, String, Option<String>)>,
}

fn read_cases(text: &str) -> Vec<Case> {
    let mut cases = vec![Case::default()];
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() {
            cases.push(Case { first_line: index + 1, ..Case::default() });
            continue;
        }
        let Some(case) = cases.last_mut() else { continue };
        if let Some(expected) = line.strip_prefix("-> ") {
            if let Some(statement) = case.statements.last_mut() {
                statement.2 = Some(expected.into());
            }
        } else if !line.starts_with('#') {
            if is_input(line) {
                case.inputs.extend(line.split(';').map(|part| part.trim().to_string()));
            } else {
                case.statements.push((index + 1, line.into(), None));
            }
        }
    }
    cases.retain(|case| !case.statements.is_empty());
    cases
}

fn is_input(line: &str) -> bool {
    line.split_once(':')
        .is_some_and(|(name, _)| name.chars().all(|c| c.is_alphanumeric() || c == '_'))
}

/// `x: float32[2,3] stride(1,2) = [...]` or `n: int = 4`.
fn read_input(text: &str) -> (String, Value) {
    let (name, rest) = text.split_once(':').expect("an input has a type");
    let (ty, data) = match rest.split_once('=') {
        Some((ty, data)) => (ty.trim(), Some(data.trim())),
        None => (rest.trim(), None),
    };
    let value = match (ty, data) {
        ("int", Some(data)) => Value::int(data.parse().expect("an int")),
        ("float", Some(data)) => Value::float(data.parse().expect("a float")),
        ("bool", Some(data)) => Value::bool(data == "True"),
        _ => {
            let mut tensor = read_tensor(ty).expect("a tensor type");
            if let Some(data) = data {
                let numbers =
                    data.trim_matches(['[', ']']).split(',').map(|number| match number.trim() {
                        "True" => 1.0,
                        "False" => 0.0,
                        number => number.parse().expect("a number"),
                    });
                tensor = tensor.with_elements(numbers.collect());
            }
            Value::Tensor(tensor)
        }
    };
    (name.trim().to_string(), value)
}

fn read_tensor(text: &str) -> Option<TensorType> {
    let (dtype, rest) = text.split_once('[')?;
    let (sizes, rest) = rest.split_once(']')?;
    let ints = |text: &str| -> Vec<i64> {
        text.split(',').filter_map(|part| part.trim().parse().ok()).collect()
    };
    let dtype = DType::from_name(dtype.trim())?;
    let shape = ints(sizes).into_iter().map(Dim::fixed).collect();
    Some(match rest.trim().strip_prefix("stride(") {
        Some(steps) => TensorType::strided(dtype, shape, ints(steps.trim_end_matches(')')).into()),
        None => TensorType::contiguous(dtype, shape),
    })
}

/// Compares with one alternative of the expectation, consuming its text; the rest is returned.
fn matches<'a>(value: &Value, text: &'a str) -> Result<&'a str, String> {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('[') {
        let Value::Sequence(items) = value else { return Err(format!("{value:?}")) };
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                rest = rest.trim_start().strip_prefix(',').ok_or("too many items")?;
            }
            rest = matches(item, rest)?;
        }
        return rest.trim_start().strip_prefix(']').ok_or_else(|| "too few items".into());
    }
    if let Some(rest) = text.strip_prefix("none") {
        return if *value == Value::None { Ok(rest) } else { Err(show(value)) };
    }
    for kind in ["int ", "float ", "bool ", "other "] {
        if let Some(rest) = text.strip_prefix(kind) {
            let end = rest.find([',', ']']).unwrap_or(rest.len());
            let (word, rest) = rest.split_at(end);
            let same = match value {
                Value::Scalar(Scalar::Int(Some(dim))) => {
                    kind == "int " && word.parse() == Ok(dim.size)
                }
                Value::Scalar(Scalar::Float(Some(number))) => {
                    kind == "float " && word.parse() == Ok(*number)
                }
                Value::Scalar(Scalar::Bool(Some(truth))) => {
                    kind == "bool " && word == if *truth { "True" } else { "False" }
                }
                other => kind == "other " && word == other.type_name(),
            };
            return if same { Ok(rest) } else { Err(show(value)) };
        }
    }
    let end = text.find("stride(").and_then(|at| text[at..].find(')').map(|end| at + end + 1));
    let (own, rest) = text.split_at(end.ok_or_else(|| format!("cannot read `{text}`"))?);
    let expected = read_tensor(own).ok_or_else(|| format!("cannot read `{own}`"))?;
    let Value::Tensor(tensor) = value else { return Err(show(value)) };
    let same = tensor.dtype == expected.dtype && tensor.sizes() == expected.sizes();
    let empty = tensor.elements() == 0;
    let same_strides = empty
        || tensor
            .sizes()
            .iter()
            .zip(tensor.strides.iter().zip(&expected.strides))
            .all(|(size, (own, expected))| *size == 1 || own == expected);
    if same && same_strides { Ok(rest) } else { Err(show(value)) }
}

fn show(value: &Value) -> String {
    value.to_json().to_string()
}

fn as_expected(value: &Value, expected: &str, beyond: bool) -> Result<(), String> {
    if expected.starts_with("error:") {
        return match value {
            Value::Unknown(reason) if reason.starts_with('`') => Ok(()),
            other => Err(format!("should fail, gave {}", show(other))),
        };
    }
    if beyond && value.is_unknown() {
        return Ok(());
    }
    let mut problems = String::new();
    for alternative in expected.split(" or ") {
        match matches(value, alternative) {
            Ok(rest) if rest.trim().is_empty() => return Ok(()),
            Ok(rest) => problems = format!("`{rest}` is left over"),
            Err(problem) => problems = problem,
        }
    }
    Err(problems)
}

fn graph_of(case: &Case) -> Result<Graph, String> {
    let mut model = String::from("class GraphModule:\n    def forward(self");
    for input in &case.inputs {
        let name = input.split(':').next().unwrap_or_default();
        let _ = write!(model, ", {name}");
    }
    model.push_str("):\n");
    for (_, statement, _) in &case.statements {
        let _ = writeln!(model, "        {statement}");
    }
    model.push_str("        return ()\n");
    let files = GraphFiles::new("").with(FileName::Model, model);
    read_folder(&files).map(|folder| folder.graph).map_err(|errors| errors[0].to_string())
}

/// The node of each operation statement, by line: the last one made on that line.
fn node_of_line(graph: &Graph, line: u32) -> Option<NodeId> {
    graph.ids().rev().find(|id| {
        let node = graph.node(*id);
        node.line == line && matches!(node.kind, NodeKind::Call(_))
    })
}

fn run_file(path: &Path, problems: &mut Vec<String>) -> usize {
    let text = std::fs::read_to_string(path).expect("a case file");
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_string();
    let beyond = name == "beyond.txt";
    let mut checked = 0;
    for case in read_cases(&text) {
        let graph = match graph_of(&case) {
            Ok(graph) => graph,
            Err(error) => {
                problems.push(format!("{name}:{}: does not parse: {error}", case.first_line));
                continue;
            }
        };
        let inputs: Vec<Value> = case.inputs.iter().map(|text| read_input(text).1).collect();
        let inference = infer(&graph, &inputs);
        for (index, (line, statement, expected)) in case.statements.iter().enumerate() {
            let Some(expected) = expected else { continue };
            checked += 1;
            // The first statement stands on line 3 of the model.
            let Some(node) = node_of_line(&graph, index as u32 + 3) else {
                problems.push(format!("{name}:{line}: `{statement}` made no node"));
                continue;
            };
            if let Err(problem) = as_expected(inference.value(node), expected, beyond) {
                problems.push(format!(
                    "{name}:{line}: {statement}\n    expected {expected}\n    inferred {problem}"
                ));
            }
        }
    }
    checked
}

#[test]
fn inference_agrees_with_pytorch_on_every_one_op_case() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ops");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the case folder")
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort();
    let mut problems = Vec::new();
    let checked: usize = files.iter().map(|path| run_file(path, &mut problems)).sum();
    assert!(
        problems.is_empty(),
        "{} of {checked} cases differ:\n{}",
        problems.len(),
        problems.join("\n")
    );
    assert!(checked >= 1990, "only {checked} cases were found");
}
