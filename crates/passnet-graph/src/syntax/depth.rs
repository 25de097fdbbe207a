//! A linear scan that bounds how deep a syntax tree could become, before the tree exists.
//!
//! Depth comes from brackets, from indentation, and from chains of operators, attributes and calls
//! (`a.b.c`, `- - x`, `1 + 1 + 1`). A chain ends at a comma, an assignment or the end of the statement.

/// Deeper texts are refused. Real graphs and passes stay below 20.
pub(super) const MAX_DEPTH: usize = 400;

/// Byte offset of the first place that is nested too deep, if any.
pub(super) fn first_too_deep(text: &str) -> Option<usize> {
    let mut scan = Scan::default();
    let bytes = text.as_bytes();
    let mut i = 0;
    let mut line_start = true;
    while i < bytes.len() {
        if line_start && scan.brackets.is_empty() {
            i = scan.indent(bytes, i);
            line_start = false;
            continue;
        }
        let byte = bytes[i];
        if !MATTERS[byte as usize] {
            i += 1;
            continue;
        }
        match byte {
            b'#' => i = skip_to_newline(bytes, i),
            b'\'' | b'"' => {
                i = skip_string(bytes, i);
                continue;
            }
            b'(' | b'[' | b'{' => scan.open(),
            b')' | b']' | b'}' => scan.close(),
            b',' | b';' => scan.end_chain(),
            b'\n' => {
                if scan.brackets.is_empty() {
                    scan.end_chain();
                }
                line_start = true;
            }
            b'=' => {
                scan.chain += 1;
            }
            b'.' | b'+' | b'-' | b'*' | b'/' | b'%' | b'@' | b'&' | b'|' | b'^' | b'~' | b'<'
            | b'>' | b'!' => scan.chain += 1,
            // Word operators (`not`, `lambda`, `if`, `await`, ...): any word after a space may be one.
            b' ' if bytes.get(i + 1).is_some_and(u8::is_ascii_alphabetic) => scan.words(bytes, i),
            _ => {}
        }
        if scan.depth() > MAX_DEPTH {
            return Some(i);
        }
        i += 1;
    }
    None
}

/// Bytes that can change the depth; most of a text is names and numbers, which cannot.
static MATTERS: [bool; 256] = {
    let mut table = [false; 256];
    let bytes = b"#'\"([{)]},;\n=.+-*/%@&|^~<>! ";
    let mut i = 0;
    while i < bytes.len() {
        table[bytes[i] as usize] = true;
        i += 1;
    }
    table
};

#[derive(Default)]
struct Scan {
    /// Chain lengths of the enclosing brackets.
    brackets: Vec<usize>,
    /// Sum of `brackets`, kept so that `depth` is constant time.
    enclosing: usize,
    chain: usize,
    indents: Vec<usize>,
}

impl Scan {
    fn depth(&self) -> usize {
        self.enclosing + self.chain + self.brackets.len() + self.indents.len()
    }

    fn open(&mut self) {
        self.brackets.push(self.chain);
        self.enclosing += self.chain;
        self.chain = 0;
    }

    fn close(&mut self) {
        if let Some(outer) = self.brackets.pop() {
            self.enclosing -= outer;
            // A closed bracket may be called, subscripted or read again: one more link.
            self.chain = outer + 1;
        }
    }

    fn end_chain(&mut self) {
        self.chain = 0;
    }

    fn words(&mut self, bytes: &[u8], space: usize) {
        // No word operator is longer than `lambda`, so one byte more tells them from other words.
        let window = &bytes[space + 1..bytes.len().min(space + 8)];
        let word: &[u8] = window.split(|b| !b.is_ascii_alphabetic()).next().unwrap_or(&[]);
        if matches!(
            word,
            b"not"
                | b"lambda"
                | b"if"
                | b"else"
                | b"await"
                | b"and"
                | b"or"
                | b"in"
                | b"is"
                | b"for"
        ) {
            self.chain += 1;
        }
    }

    /// Reads the indentation of a new line and returns the offset of its first other byte.
    fn indent(&mut self, bytes: &[u8], start: usize) -> usize {
        let mut i = start;
        while bytes.get(i).is_some_and(|b| matches!(b, b' ' | b'\t')) {
            i += 1;
        }
        if bytes.get(i).is_some_and(|b| !matches!(b, b'\n' | b'\r' | b'#')) {
            let width = i - start;
            while self.indents.last().is_some_and(|&w| w > width) {
                self.indents.pop();
            }
            if width > self.indents.last().copied().unwrap_or(0) {
                self.indents.push(width);
            }
        }
        i
    }
}

fn skip_to_newline(bytes: &[u8], start: usize) -> usize {
    let rest = bytes[start..].iter().position(|&b| b == b'\n');
    rest.map_or(bytes.len(), |n| start + n - 1)
}

/// Returns the offset just after a string literal, or the end of the text if it never closes.
fn skip_string(bytes: &[u8], start: usize) -> usize {
    let quote = bytes[start];
    let triple = bytes.get(start + 1) == Some(&quote) && bytes.get(start + 2) == Some(&quote);
    let mut i = start + if triple { 3 } else { 1 };
    while i < bytes.len() {
        match bytes[i] {
            b'\\' => i += 1,
            b'\n' if !triple => return i,
            b if b == quote && !triple => return i + 1,
            b if b == quote && bytes[i..].starts_with(&[quote; 3]) => return i + 3,
            _ => {}
        }
        i += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flat_texts_of_any_length_are_accepted() {
        let long_list = format!("x = [{}]\n", "-1.5, ".repeat(100_000));
        assert_eq!(first_too_deep(&long_list), None);
        let chain = "a = b = None\n".repeat(10_000);
        assert_eq!(first_too_deep(&chain), None);
    }

    #[test]
    fn every_way_of_nesting_is_bounded() {
        let n = MAX_DEPTH + 2;
        let blocks = (0..n).map(|i| format!("{}if x:\n", " ".repeat(i))).collect::<String>();
        for text in [
            "(".repeat(n),
            format!("x = {}1", "-".repeat(n)),
            format!("x = y{}", ".a".repeat(n)),
            format!("x = y{}", "()".repeat(n)),
            format!("x = 1{}", " + 1".repeat(n)),
            format!("x = {}y", "lambda: ".repeat(n)),
            format!("x ={} y", " not".repeat(n)),
            blocks,
        ] {
            assert!(first_too_deep(&text).is_some(), "{}", &text[..40]);
        }
    }

    #[test]
    fn brackets_in_strings_and_comments_do_not_count() {
        let text = format!("x = '{0}'\n# {0}\ny = \"\"\"{0}\"\"\"\n", "(".repeat(1000));
        assert_eq!(first_too_deep(&text), None);
    }
}
