//! Constants as Python expressions that do nothing but name a value.

use crate::consts::Const;

/// `value` as Python writes it; `language` is the name of `triton.language`.
pub(super) fn literal(value: &Const, language: &str) -> String {
    match value {
        Const::Float(v) if v.is_nan() => "float(\"nan\")".into(),
        Const::Float(v) if v.is_infinite() => {
            format!("float(\"{}\")", if *v > 0.0 { "inf" } else { "-inf" })
        }
        // By name, which the file that is cut out binds.
        Const::Function(_, name) => name.clone(),
        Const::None | Const::Bool(_) | Const::Int(_) | Const::Wide(_) | Const::Float(_) => {
            value.to_string()
        }
        Const::Str(text) => quoted(text),
        Const::Elem(elem) => format!("{language}.{}", elem.language_name()),
        Const::Pointer(elem) => {
            format!("{language}.pointer_type({language}.{})", elem.language_name())
        }
        Const::Tuple(items) => {
            let items: String = items.iter().map(|item| literal(item, language) + ", ").collect();
            format!("({items})")
        }
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | ' ' | '_' | '-' | '.' | ',' | ':' | '/' => {
                out.push(c);
            }
            other => out.push_str(&format!("\\U{:08x}", u32::from(other))),
        }
    }
    out.push('"');
    out
}
