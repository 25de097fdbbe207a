//! Foreign text and numbers made fit to be shown.

/// Longer names and messages are cut.
const MAX_CHARS: usize = 500;

/// Is this a character that changes how its neighbours are shown, instead of being shown itself?
pub(super) fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// One line for a terminal: without escape sequences, line breaks and characters that reorder text.
pub fn printable(text: &str) -> String {
    let mut out: String = text
        .chars()
        .take(MAX_CHARS)
        .map(|c| if is_invisible(c) { '\u{fffd}' } else { c })
        .collect();
    if text.chars().nth(MAX_CHARS).is_some() {
        out.push('…');
    }
    out
}

/// A ratio in few characters, however large or small.
pub fn ratio_text(ratio: f64) -> String {
    if ratio == 0.0 || (0.001..10_000.0).contains(&ratio.abs()) {
        format!("{ratio:.3}")
    } else {
        format!("{ratio:.2e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_get_one_plain_line() {
        assert_eq!(printable("a\u{1b}[31mb\nc\u{202e}d"), "a\u{fffd}[31mb\u{fffd}c\u{fffd}d");
        assert_eq!(printable(&"é".repeat(600)).chars().count(), 501);
    }

    #[test]
    fn ratios_stay_short() {
        for (ratio, text) in [
            (1.0, "1.000"),
            (0.0, "0.000"),
            (12.3456, "12.346"),
            (1e300, "1.00e300"),
            (1e-9, "1.00e-9"),
        ] {
            assert_eq!(ratio_text(ratio), text);
        }
    }
}
