//! Expressions put together as text, with parentheses only where they are needed.

/// Puts operands into a template, in parentheses where they need them.
pub(super) fn fill(template: &str, operands: &[String]) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        text.push_str(&rest[..at]);
        let end = rest[at..].find('}').map_or(rest.len(), |end| at + end);
        let operand = rest[at + 1..end].parse::<usize>().ok().and_then(|n| operands.get(n));
        match operand {
            Some(operand) if fits(&text, &rest[end + 1..], operand) => {
                let alone = is_argument(&text, &rest[end + 1..]);
                text.push_str(if alone { strip(operand) } else { operand });
            }
            Some(operand) => text.push_str(&format!("({operand})")),
            None => text.push_str(&rest[at..=end]),
        }
        rest = &rest[end + 1..];
    }
    text.push_str(rest);
    text
}

/// How tightly an expression holds together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Binding {
    Other,
    Sum,
    Product,
    Atom,
}

pub(super) fn binding(text: &str) -> Binding {
    if text.starts_with('-') {
        return Binding::Other;
    }
    let mut depth = 0;
    let mut found = Binding::Atom;
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b' ' if depth == 0 && bytes.get(at + 2) == Some(&b' ') => {
                let own = match bytes[at + 1] {
                    b'*' | b'/' => Binding::Product,
                    b'+' | b'-' => Binding::Sum,
                    _ => Binding::Other,
                };
                found = found.min(own);
            }
            b' ' if depth == 0 && bytes.get(at + 3) == Some(&b' ') => found = Binding::Other,
            _ => {}
        }
    }
    found
}

/// Whether a place is a whole argument of a call, or the whole expression.
fn is_argument(before: &str, after: &str) -> bool {
    (before.is_empty() || before.ends_with('(') || before.ends_with(", "))
        && (after.is_empty() || after.starts_with(')') || after.starts_with(", "))
}

/// Whether an operand may stand at a place as it is. Sums and products keep their order from left to right.
fn fits(before: &str, after: &str, operand: &str) -> bool {
    let binding = binding(operand);
    if binding == Binding::Atom || is_argument(before, after) {
        return true;
    }
    let open = before.is_empty() || before.ends_with('(') || before.ends_with(", ");
    let closed = after.is_empty() || after.starts_with(')') || after.starts_with(", ");
    let adds = |text: &str| text.starts_with(" + ") || text.starts_with(" - ");
    let multiplies = |text: &str| text.starts_with(" * ") || text.starts_with(" / ");
    let added = before.ends_with(" + ") || before.ends_with(" - ");
    match binding {
        Binding::Product => (open || added) && (closed || adds(after) || multiplies(after)),
        Binding::Sum => open && (closed || adds(after)),
        _ => false,
    }
}

/// An expression without parentheses around all of it.
pub(super) fn strip(text: &str) -> &str {
    let Some(inner) = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) else {
        return text;
    };
    let mut depth = 0;
    for c in inner.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return text;
        }
    }
    inner
}
