//! Names for sizes inside a kernel: equal sizes share one name, known numbers are written as numbers.

use crate::analysis::{Refusal, Size};

#[derive(Debug, Default)]
pub struct Names {
    /// Sizes that the wrapper hands over, with their names, in order.
    pub given: Vec<(String, Size)>,
}

impl Names {
    /// The text for a size; one that is not known beforehand becomes an argument called after `hint`.
    pub fn text(&mut self, size: &Size, hint: &str) -> Result<String, Refusal> {
        if let Some(value) = size.constant() {
            return Ok(value.to_string());
        }
        // Equal by formula, not by chance: a pass may also apply where the sizes are others.
        let formula = size.to_string();
        if let Some((name, _)) = self.given.iter().find(|(_, known)| known.to_string() == formula) {
            return Ok(name.clone());
        }
        if formula.contains('?') {
            return Err(Refusal::new("a size has no formula"));
        }
        let taken = |name: &str| self.given.iter().any(|(known, _)| known == name);
        let name = match taken(hint) {
            false => hint.to_string(),
            true => {
                let numbered = (2..).map(|number| format!("{hint}_{number}"));
                numbered.into_iter().find(|name| !taken(name)).unwrap_or_default()
            }
        };
        self.given.push((name.clone(), size.clone()));
        Ok(name)
    }
}

/// Whether a name occurs as a word.
pub(super) fn mentions(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        !word(text[..at].chars().next_back()) && !word(text[at + name.len()..].chars().next())
    })
}
