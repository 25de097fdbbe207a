//! Under which conditions a result was found, and whether two runs may be ranked side by side.

use super::RunRecord;
use crate::run::Start;
use passnet_engine::Identity;
use passnet_engine::identity::Difference;
use serde::Serialize;

/// Where a result comes from, and how deep it was checked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Conditions {
    /// Engine, device, versions, build.
    pub identity: Identity,
    /// How much was checked, in words.
    pub depth: String,
}

impl Conditions {
    /// Those of the graphs after this event.
    pub fn of(start: &Start) -> Conditions {
        Conditions { identity: start.origin(), depth: start.depth() }
    }

    /// Everything that differs.
    pub fn differences(&self, other: &Conditions) -> Vec<Difference> {
        let mut found = self.identity.differences(&other.identity);
        if self.depth != other.depth {
            let (one, two) = (self.depth.clone(), other.depth.clone());
            found.push(Difference { what: "depth of checking", one, two, separates: true });
        }
        found
    }

    /// One line for people.
    pub fn describe(&self) -> String {
        format!("{}; {}", self.identity.describe(), self.depth)
    }
}

/// In what the conditions of two runs differ. A run whose results come from several places is like no other.
pub fn differences(one: &RunRecord, two: &RunRecord) -> Vec<Difference> {
    match (only_place(one), only_place(two)) {
        (Some(one), Some(two)) => one.differences(two),
        (first, second) => {
            let places = |place: Option<&Conditions>| match place {
                Some(_) => "one place".to_string(),
                None => "several places in one run".to_string(),
            };
            let (one, two) = (places(first), places(second));
            vec![Difference { what: "number of places", one, two, separates: true }]
        }
    }
}

/// The conditions of a run whose results may be ranked side by side.
fn only_place(run: &RunRecord) -> Option<&Conditions> {
    let conditions = run.conditions();
    let first = *conditions.first()?;
    let is_like = |other: &&Conditions| !are_unlike(&first.differences(other));
    conditions.iter().all(is_like).then_some(first)
}

/// Whether two runs must not be ranked side by side.
pub fn are_unlike(differences: &[Difference]) -> bool {
    differences.iter().any(|difference| difference.separates)
}

/// A difference in words.
pub fn sentence(difference: &Difference) -> String {
    let Difference { what, one, two, .. } = difference;
    let shown = |text: &str| if text.is_empty() { "unknown".to_string() } else { text.to_string() };
    format!("another {what}: {} and {}", shown(one), shown(two))
}
