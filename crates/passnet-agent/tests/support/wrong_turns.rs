//! A scripted model that solves bundled tasks the long way: a syntax error, a pattern that does not match, wrong numbers,
//! a slow kernel, and then a good one.

use super::provider::{Asked, Shape, call, create};
use super::tasks::{MANIFEST, bundled_pass};
use serde_json::{Value, json};

/// The tasks it knows, with what it gets wrong: in the pattern, and in the kernel.
pub const TASKS: [(&str, [&str; 2], [&str; 2]); 2] = [
    (
        "geglu_tanh",
        ["approximate=\"tanh\"", "approximate=\"none\""],
        ["0.044715 * gate", "0.144715 * gate"],
    ),
    (
        "quick_gelu_add",
        ["sigmoid(1.702 * x)", "sigmoid(1.5 * x)"],
        ["(1.702 * x).to", "(1.5 * x).to"],
    ),
];
const FAST: &str = "1024";
const SLOW: &str = "64";

fn replace(old: &str, new: &str) -> (String, String) {
    call("str_replace", json!({ "path": "pass_dir/fuse.py", "old_str": old, "new_str": new }))
}

fn empty(name: &str) -> (String, String) {
    call(name, Value::Object(Default::default()))
}

/// The model's next reply.
pub fn reply(asked: &Asked<'_>) -> Shape {
    let known = TASKS.iter().find(|(name, ..)| asked.prompt.contains(&format!("Task {name}:")));
    let (name, pattern, kernel) = known.expect("a known task");
    let good = bundled_pass(name);
    // `cdiv(count, 1024)` and `BLOCK=1024`: the wrapper is replaced as a whole.
    let (launch_at, launch_end) =
        (good.find("    out = torch.empty_like").unwrap(), good.find("    return out").unwrap());
    let launch = &good[launch_at..launch_end];
    let slow = launch.replace(FAST, SLOW);
    let broken = good
        .replacen("def pattern(", "def pattern((", 1)
        .replacen(pattern[0], pattern[1], 1)
        .replacen(kernel[0], kernel[1], 1)
        .replacen(launch, &slow, 1);
    Shape::Calls(match asked.replies {
        0 => vec![
            create(MANIFEST, "[\"fuse\"]"),
            create("pass_dir/fuse.py", &broken),
            empty("match"),
        ],
        1 => vec![replace("def pattern((", "def pattern("), empty("match")],
        2 => vec![replace(pattern[1], pattern[0]), empty("match"), empty("evaluate")],
        3 => vec![replace(kernel[1], kernel[0]), empty("check"), empty("evaluate")],
        4 => vec![replace(&slow, launch), empty("evaluate")],
        _ => vec![empty("submit")],
    })
}
