//! Answers held against the description of the interface. Of JSON Schema it knows what the description uses, and it is
//! stricter: a key that is not described is a mistake, for the description is to be whole.

use serde_json::Value;

/// Words that say nothing about what an answer holds.
const SILENT: [&str; 1] = ["description"];

/// What in a value is not as its schema says, with where.
pub fn mistakes(description: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(description, schema, value, "$", &mut found);
    found
}

fn check(all: &Value, schema: &Value, value: &Value, place: &str, found: &mut Vec<String>) {
    let rules = schema.as_object().unwrap_or_else(|| panic!("{place}: no schema: {schema}"));
    for (word, rule) in rules {
        match word.as_str() {
            "$ref" => check(all, resolved(all, rule), value, place, found),
            "anyOf" => {
                let fits = |one: &Value| {
                    let mut inside = Vec::new();
                    check(all, one, value, place, &mut inside);
                    inside.is_empty()
                };
                if !rule.as_array().unwrap().iter().any(fits) {
                    found.push(format!("{place}: {value} fits none of {rule}"));
                }
            }
            "type" => {
                let names = rule.as_array().cloned().unwrap_or_else(|| vec![rule.clone()]);
                if !names.iter().any(|name| is_of(name.as_str().unwrap(), value)) {
                    found.push(format!("{place}: {value} is no {rule}"));
                }
            }
            "enum" => {
                if !rule.as_array().unwrap().contains(value) {
                    found.push(format!("{place}: {value} is none of {rule}"));
                }
            }
            "minimum" => {
                if value.as_f64().is_some_and(|number| number < rule.as_f64().unwrap()) {
                    found.push(format!("{place}: {value} is less than {rule}"));
                }
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(all, rule, item, &format!("{place}[{index}]"), found);
                }
            }
            "prefixItems" => {
                let items = value.as_array().into_iter().flatten();
                for (index, (rule, item)) in rule.as_array().unwrap().iter().zip(items).enumerate()
                {
                    check(all, rule, item, &format!("{place}[{index}]"), found);
                }
            }
            "minItems" | "maxItems" => {
                let (length, bound) = (value.as_array().map_or(0, Vec::len) as u64, rule.as_u64());
                let is_within =
                    if word == "minItems" { bound <= Some(length) } else { Some(length) <= bound };
                if !is_within {
                    found.push(format!("{place}: {length} items"));
                }
            }
            "required" => {
                for key in rule.as_array().unwrap() {
                    if value.is_object() && value.get(key.as_str().unwrap()).is_none() {
                        found.push(format!("{place}: {key} is missing"));
                    }
                }
            }
            "properties" | "additionalProperties" => {}
            word if SILENT.contains(&word) => {}
            other => panic!("{place}: `{other}` is not known to this test"),
        }
    }
    for (key, inside) in value.as_object().into_iter().flatten() {
        let described = rules.get("properties").and_then(|properties| properties.get(key));
        let place = format!("{place}.{key}");
        match described.or(rules.get("additionalProperties")) {
            Some(Value::Bool(true)) => {}
            Some(rule) => check(all, rule, inside, &place, found),
            // What a reference or a choice describes is looked at there.
            None if rules.contains_key("$ref") || rules.contains_key("anyOf") => {}
            None => found.push(format!("{place} is not described")),
        }
    }
}

fn resolved<'a>(all: &'a Value, name: &Value) -> &'a Value {
    let path = name.as_str().and_then(|name| name.strip_prefix('#')).expect("a place in here");
    all.pointer(path).unwrap_or_else(|| panic!("{path} is not there"))
}

fn is_of(name: &str, value: &Value) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no type is called {other}"),
    }
}
