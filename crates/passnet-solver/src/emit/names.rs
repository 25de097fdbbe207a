//! Names for sizes inside a kernel: equal sizes share one name, known numbers are written as numbers.

use super::statement::{Term, word};
use crate::analysis::{Refusal, Size};
use crate::expression::Expr;

#[derive(Debug, Default)]
pub struct Names {
    /// Sizes that the wrapper hands over, with their names, in order.
    pub given: Vec<(String, Size)>,
}

impl Names {
    /// A size in the kernel; one that is not known beforehand becomes an argument called after `hint`.
    pub(super) fn size(&mut self, size: &Size, hint: &str) -> Result<Term, Refusal> {
        if let Some(value) = size.constant() {
            return Ok(Expr::int(value));
        }
        // Equal by formula, not by chance: a pass may also apply where the sizes are others.
        let same = |(_, known): &&(String, Size)| known.formula() == size.formula();
        if let Some((name, _)) = self.given.iter().find(same) {
            return Ok(word(name));
        }
        if !size.formula().is_known() {
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
        Ok(word(name))
    }
}

/// Whether a name occurs as a word.
pub(super) fn mentions(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        !is_word(text[..at].chars().next_back()) && !is_word(text[at + name.len()..].chars().next())
    })
}
