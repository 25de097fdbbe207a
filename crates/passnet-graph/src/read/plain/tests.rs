//! The quick readers and the Python parser agree on everything the quick readers take.

use super::{constraints, tensor_metas};
use crate::read::constraints::parse_constraints;
use crate::read::meta::parse_tensor_metas;
use crate::syntax::Source;
use proptest::prelude::*;

const METAS: &str = r#"class Program_weight_tensor_meta_L_x_:
    name = "L_x_"
    shape = [1, 3, 224, 224]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = -0.001
    std = 1e-05
    data = None


class Program_weight_tensor_meta_s0:
	name = (
	    "s0"
	)
	original_name = 's1'
	shape = [2, 2,]
	dtype = "torch.int64"
	mean = None
	data = [
	    4, -5,
	    0, 7
	]
	min_val = 0
	max_val = 12
"#;

const CONSTRAINTS: &str = r#"from sympy import Symbol, Expr, Rel, Eq

S0 = Symbol("S0")
S1 = Symbol("S1")

dynamic_dim_constraint_symbols = [S0, S1]

dynamic_dim_constraint_symbol2example_value = {S0: 1, S1: 224}

dynamic_dim_constraint_relations = []

dynamic_dim_constraint_input_shapes = [
    ([64], "L_a_"),
    (
        [S0, 64, S1],
        "L_b_",
    ),
    ([], "s0"),
]
"#;

/// Whether the quick reader took the text; what it read must be what the parser reads.
fn takes_metas(text: &str) -> bool {
    let Some(quick) = tensor_metas(text) else { return false };
    assert_eq!(parse_tensor_metas(&Source::new("weight_meta.py", text)), Ok(quick), "{text}");
    true
}

fn takes_constraints(text: &str) -> bool {
    let Some(quick) = constraints(text) else { return false };
    assert_eq!(parse_constraints(&Source::new("constraints.py", text)), Ok(quick), "{text}");
    true
}

#[test]
fn what_extraction_writes_is_taken() {
    assert!(takes_metas(METAS) && takes_constraints(CONSTRAINTS));
    assert!(takes_metas("") && takes_constraints("") && takes_metas("\n  \n"));
}

#[test]
fn everything_else_is_left_to_the_parser() {
    for (old, new) in [
        ("\"L_x_\"", "\"L\\x5f\""),
        ("\"L_x_\"", "b\"L_x_\""),
        ("\"L_x_\"", "\"L_\" \"x_\""),
        ("\"L_x_\"", "\"é\""),
        ("\"L_x_\"", "\"\"\"L_x_\"\"\""),
        ("-0.001", "- 0.001"),
        ("-0.001", "0_1.5"),
        ("-0.001", "float('nan')"),
        ("-0.001", "1j"),
        ("-0.001", "0x10"),
        ("224, 224", "0224, 224"),
        ("224, 224", "9223372036854775808"),
        ("3, 224", "-3, 224"),
        ("3, 224", "1099511627776, 224"),
        ("    mean", "  mean"),
        ("    mean", "     mean"),
        ("data = None", "data = None # why not"),
        ("data = None", "data = Nonesuch"),
        ("data = None", "data = None; x = 1"),
        ("dtype = \"torch.float32\"", "dtype = \"torch.float33\""),
        ("    shape = [1, 3, 224, 224]\n", ""),
        ("4, -5", "4, 4, -5"),
        ("std =", "other ="),
        ("class Program_weight_tensor_meta_s0", "class lambda"),
        ("s0\"\n\t)", "s0\",\n\t)"),
        ("(\n\t    \"s0\"\n\t)", "((\"s0\"))"),
    ] {
        let text = METAS.replace(old, new);
        assert_ne!(text, METAS, "{old} is not there");
        assert_eq!(tensor_metas(&text), None, "{new}");
    }
    for (old, new) in [
        ("[S0, 64, S1]", "[S0, 64, S2]"),
        ("[S0, 64, S1]", "[S0 * 2, 64, S1]"),
        ("S0: 1", "S0: 1.0"),
        ("([], \"s0\")", "([], \"s0\", 1)"),
        ("S1 = Symbol", "import os; S1 = Symbol"),
        ("from sympy import Symbol", "from os import path"),
    ] {
        let text = CONSTRAINTS.replacen(old, new, 1);
        assert_ne!(text, CONSTRAINTS, "{old} is not there");
        assert_eq!(constraints(&text), None, "{new}");
    }
}

#[test]
fn brackets_without_end_need_no_stack() {
    let deep = METAS.replace("\"L_x_\"", &"(".repeat(1_000_000));
    assert_eq!(tensor_metas(&deep), None);
}

/// Small changes anywhere: what a person or a broken disk might do.
fn changed(text: &str, changes: &[(usize, usize, String)]) -> String {
    let mut text = text.to_owned();
    for (at, length, with) in changes {
        let at = at % (text.len() + 1);
        let end = (at + length).min(text.len());
        if text.is_char_boundary(at) && text.is_char_boundary(end) {
            text.replace_range(at..end, with);
        }
    }
    text
}

fn changes() -> impl Strategy<Value = Vec<(usize, usize, String)>> {
    let with = prop_oneof![
        "[ \t\n,;:=()\\[\\]{}'\"\\\\.#a-zA-Z0-9_+-]{0,3}",
        Just("None".to_owned()),
        Just("    ".to_owned()),
        Just("\r\n".to_owned()),
        Just("1e5".to_owned()),
    ];
    prop::collection::vec((0_usize..2_000, 0_usize..4, with), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn both_ways_agree_on_changed_metas(changes in changes()) {
        takes_metas(&changed(METAS, &changes));
    }

    #[test]
    fn both_ways_agree_on_changed_constraints(changes in changes()) {
        takes_constraints(&changed(CONSTRAINTS, &changes));
    }
}
