//! Pieces of graphs: what becomes an argument, an output or a literal, and what cannot be cut.

use passnet_graph::cut::{CutError, cut};
use passnet_graph::infer::infer_folder;
use passnet_graph::print::print_model;
use passnet_graph::read::{Constraints, ShapeDim};
use passnet_graph::resize::{Generalised, inherited_symbols, with_sizes};
use passnet_graph::{DType, FileName, GraphFiles, GraphFolder, TensorMeta, identify, print, read};
use std::ops::Range;

/// A graph over arguments given as `name` and shape, all float32.
fn folder(arguments: &[(&str, &[i64])], body: &str) -> GraphFolder {
    let names: Vec<&str> = arguments.iter().map(|(name, _)| *name).collect();
    let body: String = body.lines().map(|line| format!("        {}\n", line.trim())).collect();
    let model = format!(
        "import torch\nclass GraphModule(torch.nn.Module):\n    def forward(self, {}):\n{body}",
        names.join(", ")
    );
    let metas: Vec<TensorMeta> = arguments
        .iter()
        .map(|(name, shape)| TensorMeta::new(*name, shape.to_vec(), DType::Float32))
        .collect();
    let files = GraphFiles::new("g")
        .with(FileName::Model, model)
        .with(FileName::WeightMeta, print::print_tensor_metas(&metas));
    read::read_folder(&files).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn piece(folder: &GraphFolder, range: Range<usize>) -> Result<GraphFolder, CutError> {
    cut(folder, &infer_folder(folder), range).map(|piece| piece.folder)
}

/// The statements of a piece, without the frame around them.
fn statements(piece: &GraphFolder) -> Vec<String> {
    let text = print_model(&piece.graph);
    let lines = text.lines().skip_while(|line| !line.contains("def forward")).map(str::trim);
    lines.filter(|line| !line.ends_with("= None")).map(String::from).collect()
}

#[test]
fn values_from_outside_become_arguments_and_values_used_later_outputs() {
    let graph = folder(
        &[("x", &[2, 8]), ("L_self_weight_", &[4, 8])],
        "a = torch.relu(x)
         b = torch.nn.functional.linear(a, L_self_weight_)
         c = b + 1.0
         d = c * b
         return (d, a)",
    );
    let piece = piece(&graph, 1..3).expect("a piece");
    assert_eq!(
        statements(&piece),
        [
            "def forward(self, in_0, w_0):",
            "tmp_0 = torch.nn.functional.linear(in_0, w_0)",
            "tmp_1 = tmp_0 + 1.0",
            "return (tmp_0, tmp_1)"
        ]
    );
    let shapes: Vec<&[i64]> = piece.metas.iter().map(|meta| &meta.shape[..]).collect();
    assert_eq!(shapes, [&[2, 8][..], &[4, 8]]);
    assert_eq!(piece.metas[1].original_name.as_deref(), Some("L_self_weight_"));
}

#[test]
fn sizes_become_numbers_and_elements_of_lists_become_arguments() {
    let graph = folder(
        &[("x", &[2, 8])],
        "n = x.size(0)
         parts = x.chunk(2, dim=1)
         a = parts[1]
         b = a.view(n, 2, 2)
         c = torch.cat(parts, 0)
         return (b, c)",
    );
    assert_eq!(
        statements(&piece(&graph, 2..4).expect("a piece")),
        ["def forward(self, in_0):", "tmp_0 = in_0.view(2, 2, 2)", "return (tmp_0,)"]
    );
    assert_eq!(
        statements(&piece(&graph, 4..5).expect("a piece")),
        ["def forward(self, in_0, in_1):", "tmp_0 = torch.cat((in_0, in_1), 0)", "return (tmp_0,)"]
    );
}

#[test]
fn a_list_is_returned_by_the_elements_that_are_used() {
    let graph = folder(
        &[("x", &[2, 8])],
        "y = torch.relu(x)
         parts = y.split(2, dim=1)
         a = parts[0]
         b = parts[-1]
         c = a + b
         return (c,)",
    );
    assert_eq!(
        statements(&piece(&graph, 0..2).expect("a piece")),
        [
            "def forward(self, in_0):",
            "tmp_0 = torch.relu(in_0)",
            "tmp_1 = tmp_0.split(2, dim=1)",
            "tmp_2 = tmp_1[0]",
            "tmp_3 = tmp_1[3]",
            "return (tmp_2, tmp_3)"
        ]
    );
}

#[test]
fn the_whole_range_is_the_same_graph() {
    let graph = folder(
        &[("x", &[2, 8]), ("y", &[2, 8])],
        "a = x * 2
         a += y
         b = a
         c = torch.softmax(b, -1)
         return (c,)",
    );
    let whole = piece(&graph, 0..3).expect("a piece");
    assert_eq!(identify(&whole.graph, &whole.metas), identify(&graph.graph, &graph.metas));
}

#[test]
fn what_cannot_stand_alone_is_refused_with_the_reason() {
    let graph = folder(
        &[("x", &[2, 8])],
        "a = torch.relu(x)
         n = a.max().item()
         b = a * n
         c = torch._C._functorch._vmap_increment_nesting(2, 'error')
         d = torch._C._functorch._add_batch_dim(x, 0, 1)
         e = d + 1
         f = torch._C._functorch._remove_batch_dim(e, 1, 2, 0)
         g = torch._C._functorch._vmap_decrement_nesting()
         return (b, f)",
    );
    let refused = |range: Range<usize>| piece(&graph, range).expect_err("cannot be cut");
    assert_eq!(refused(2..2), CutError::OutOfBounds { start: 2, end: 2, ops: 9 });
    assert_eq!(refused(8..10), CutError::OutOfBounds { start: 8, end: 10, ops: 9 });
    assert!(matches!(refused(3..4), CutError::Unknown { name, .. } if name == "n"));
    assert_eq!(refused(8..9), CutError::Region { name: "g".into() });
    assert_eq!(refused(4..7), CutError::Region { name: "c".into() });
    assert_eq!(refused(6..7), CutError::Region { name: "d".into() });
    assert_eq!(refused(4..5), CutError::Region { name: "c".into() });
    assert!(piece(&graph, 4..9).is_ok());
}

/// A picture of 16 by 16 in patches of 4, and a class token before them: the piece sees 17 tokens, whatever they come from.
#[test]
fn a_piece_inherits_the_symbols_of_its_model() {
    let mut graph = folder(
        &[("x", &[1, 3, 16, 16]), ("L_self_patch_", &[8, 3, 4, 4]), ("L_self_token_", &[1, 1, 8])],
        "a = torch.conv2d(x, L_self_patch_, None, (4, 4), (0, 0), (1, 1), 1)
         b = a.flatten(2)
         c = b.transpose(1, 2)
         d = L_self_token_.expand(1, -1, -1)
         e = torch.cat((d, c), dim=1)
         f = e.view(1, 17, 2, 4)
         g = f.relu()
         h = g.reshape(1, 17, 8)
         i = h + e
         return (i,)",
    );
    let types = infer_folder(&graph);
    assert!(types.failures.is_empty(), "{:?}", types.failures);
    let size = |size| ShapeDim::Size(size);
    let symbol = |name: &str| ShapeDim::Symbol(name.into());
    graph.constraints = Constraints {
        symbols: vec![("B".into(), 1), ("H".into(), 16)],
        input_shapes: vec![("x".into(), vec![symbol("B"), size(3), symbol("H"), size(16)])],
    };
    let model = Generalised::new(&graph);
    let of = |range: Range<usize>| {
        let piece = cut(&graph, &types, range).expect("a piece");
        let constraints = inherited_symbols(&model, &piece.inputs, &piece.folder);
        (piece.folder, constraints)
    };
    let (piece, found) = of(5..9);
    assert_eq!(found.symbols, [("S0".to_string(), 1), ("S1".to_string(), 17)]);
    assert_eq!(found.input_shapes, [("in_0".into(), vec![symbol("S0"), symbol("S1"), size(8)])]);
    // They bind: the sizes in the code follow.
    let symbolic = GraphFolder { constraints: found, ..piece };
    let sizes = vec![("S0".to_string(), 3), ("S1".to_string(), 5)];
    let (other, _) = with_sizes(&symbolic, &Generalised::new(&symbolic), &sizes).unwrap();
    assert!(print_model(&other.graph).contains("view(3, 5, 2, 4)"));

    // Two arguments with one size share its symbol; the head count of the other argument stays as it is.
    let (_, found) = of(7..9);
    let shapes: Vec<_> = found.input_shapes.iter().map(|(_, shape)| shape.clone()).collect();
    let tokens = vec![symbol("S0"), symbol("S1"), size(8)];
    assert_eq!(shapes, [vec![symbol("S0"), symbol("S1"), size(2), size(4)], tokens]);

    // Without symbols of the model there are none.
    graph.constraints = Constraints::default();
    let model = Generalised::new(&graph);
    let piece = cut(&graph, &types, 5..9).expect("a piece");
    let found = inherited_symbols(&model, &piece.inputs, &piece.folder);
    assert_eq!(found, Constraints::default());
}
