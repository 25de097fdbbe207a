//! Tool arguments on their way back to a provider, which may accept only well-formed ones.

use serde_json::{Map, Value, json};

/// The arguments as an object: what the model wrote, or a note that it was none.
pub(super) fn object(arguments: &str) -> Value {
    match serde_json::from_str(arguments) {
        Ok(Value::Object(map)) => Value::Object(map),
        _ if arguments.trim().is_empty() => Value::Object(Map::new()),
        _ => json!({ "malformed": arguments }),
    }
}

/// The same as text.
pub(super) fn text(arguments: &str) -> String {
    object(arguments).to_string()
}
