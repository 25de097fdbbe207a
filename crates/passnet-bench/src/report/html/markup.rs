//! Markup that cannot be broken by the text in it.

use super::super::text::is_invisible;

/// HTML under construction. Only text of this program (`&'static str`) becomes markup; all other text is escaped.
/// Every element is closed, so the page is also well-formed XML below its first line.
#[derive(Debug, Default)]
pub struct Markup(String);

impl Markup {
    /// Markup written in this program's source.
    pub fn raw(&mut self, markup: &'static str) {
        self.0.push_str(markup);
    }

    /// Begins an element; [`close`](Self::close) ends it.
    pub fn open(&mut self, tag: &'static str, attributes: &[(&'static str, &str)]) {
        self.tag(tag, attributes);
        self.0.push('>');
    }

    /// Ends the element that was opened last, which must have this tag.
    pub fn close(&mut self, tag: &'static str) {
        self.0.push_str("</");
        self.0.push_str(tag);
        self.0.push_str(">\n");
    }

    /// An element without content.
    pub fn void(&mut self, tag: &'static str, attributes: &[(&'static str, &str)]) {
        self.tag(tag, attributes);
        self.0.push_str("/>\n");
    }

    /// An element that holds nothing but text.
    pub fn element(&mut self, tag: &'static str, attributes: &[(&'static str, &str)], text: &str) {
        self.open(tag, attributes);
        self.text(text);
        self.close(tag);
    }

    /// As [`Markup::element`], in the middle of a line: nothing follows it.
    pub fn inline(&mut self, tag: &'static str, attributes: &[(&'static str, &str)], text: &str) {
        self.element(tag, attributes, text);
        self.0.pop();
    }

    /// Adds text, escaped.
    pub fn text(&mut self, text: &str) {
        // Nearly all text is plain and is taken over in long pieces.
        let is_plain =
            |byte: u8| matches!(byte, b'\n' | b'\t' | b' '..=b'~') && !b"&<>\"'".contains(&byte);
        let mut rest = text;
        while let Some(at) = rest.bytes().position(|byte| !is_plain(byte)) {
            let (plain, special) = rest.split_at(at);
            self.0.push_str(plain);
            let mut chars = special.chars();
            if let Some(c) = chars.next() {
                self.special(c);
            }
            rest = chars.as_str();
        }
        self.0.push_str(rest);
    }

    fn special(&mut self, c: char) {
        match c {
            '&' => self.0.push_str("&amp;"),
            '<' => self.0.push_str("&lt;"),
            '>' => self.0.push_str("&gt;"),
            '"' => self.0.push_str("&quot;"),
            '\'' => self.0.push_str("&#39;"),
            // What would reorder or hide its neighbours is shown by its number.
            c if is_invisible(c) => self.0.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => self.0.push(c),
        }
    }

    /// What was written apart.
    pub fn append(&mut self, other: Markup) {
        self.0.push_str(&other.0);
    }

    /// The page; every element must be closed.
    pub fn into_text(self) -> String {
        self.0
    }

    fn tag(&mut self, tag: &'static str, attributes: &[(&'static str, &str)]) {
        self.0.push('<');
        self.0.push_str(tag);
        for (name, value) in attributes {
            self.0.push(' ');
            self.0.push_str(name);
            self.0.push_str("=\"");
            self.text(value);
            self.0.push('"');
        }
    }

    /// A table row of texts.
    pub fn row(&mut self, cells: &[String]) {
        self.open("tr", &[]);
        for (index, cell) in cells.iter().enumerate() {
            match index {
                0 => self.element("th", &[("scope", "row")], cell),
                _ => self.element("td", &[], cell),
            }
        }
        self.close("tr");
    }

    /// Opens a table with a caption and a head; the body is left open.
    pub fn open_table(&mut self, caption: &str, head: &[&str]) {
        self.open("div", &[("class", "wide")]);
        self.open("table", &[]);
        self.element("caption", &[], caption);
        self.open("thead", &[]);
        self.open("tr", &[]);
        for title in head {
            self.element("th", &[("scope", "col")], title);
        }
        self.close("tr");
        self.close("thead");
        self.open("tbody", &[]);
    }

    /// Ends what `open_table` began.
    pub fn close_table(&mut self) {
        self.close("tbody");
        self.close("table");
        self.close("div");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_and_letters_of_the_world_stay_as_they_are() {
        let text = "plain\ttext,\nGrün, 日本, 1.5 × 10³ ~ [x](y) `z` …";
        let mut markup = Markup::default();
        markup.text(text);
        assert_eq!(markup.into_text(), text);
        let mut markup = Markup::default();
        markup.text("\u{7f}é<\u{200b}\r");
        assert_eq!(markup.into_text(), "\\u{7f}é&lt;\\u{200b}\\u{d}");
    }

    #[test]
    fn text_never_becomes_markup() {
        let mut markup = Markup::default();
        markup.element("p", &[("title", "\"><script>")], "<b>&'\u{1b}\u{202e}\n");
        assert_eq!(
            markup.into_text(),
            "<p title=\"&quot;&gt;&lt;script&gt;\">&lt;b&gt;&amp;&#39;\\u{1b}\\u{202e}\n</p>\n"
        );
    }
}
