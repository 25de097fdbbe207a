//! A scripted model for crowds: six short steps, the same in every episode but for a number.

use super::provider::{Asked, Shape, call, create};
use super::tasks::{MANIFEST, PASS};
use serde_json::json;

/// Replies of one episode, and calls in them.
pub const STEPS: usize = 6;
pub const CALLS: usize = 10;

/// The next reply. `number` makes the episode's files its own.
pub fn reply(asked: &Asked<'_>, number: usize) -> Shape {
    let empty = |name: &str| call(name, json!({}));
    let slow = PASS.replace("4096", "64");
    let replace = |old: &str, new: &str| {
        call("str_replace", json!({ "path": "fuse.py", "old_str": old, "new_str": new }))
    };
    Shape::Calls(match asked.replies {
        0 => vec![call("view", json!({ "path": "graphs/0/model.py" }))],
        1 => vec![
            create(MANIFEST, "[\"fuse\"]"),
            create("fuse.py", &format!("# episode {number}\n{slow}")),
            empty("match"),
        ],
        2 => vec![empty("evaluate")],
        3 => vec![
            replace("cdiv(n, 64)", "cdiv(n, 4096)"),
            replace("BLOCK=64", "BLOCK=4096"),
            empty("check"),
        ],
        4 => vec![empty("evaluate")],
        _ => vec![empty("submit")],
    })
}
