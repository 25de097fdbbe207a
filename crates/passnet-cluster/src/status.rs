//! How far a run is, for people and machines.

use serde::Serialize;
use std::time::Duration;

/// What a node is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[allow(missing_docs, reason = "each variant says what its fields are about")]
pub enum NodeState {
    /// Its workers are being started.
    Starting,
    /// It gets units.
    Working,
    /// It gets nothing any more.
    Aside { reason: String },
    /// The cluster lost it.
    Gone { reason: String },
}

impl NodeState {
    /// As tables and the journal say it.
    pub fn word(&self) -> &'static str {
        match self {
            NodeState::Starting => "starting",
            NodeState::Working => "working",
            NodeState::Aside { .. } => "set aside",
            NodeState::Gone { .. } => "gone",
        }
    }

    /// Empty where it works.
    pub fn reason(&self) -> &str {
        match self {
            NodeState::Aside { reason } | NodeState::Gone { reason } => reason,
            NodeState::Starting | NodeState::Working => "",
        }
    }
}

/// One node, for people who watch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeStatus {
    /// For people.
    pub name: String,
    /// Whether it gets units.
    #[serde(flatten)]
    pub state: NodeState,
    /// That are up.
    pub workers: usize,
    /// Units of this command.
    pub done: u64,
    /// Its noise floor, where workers told it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<f64>,
}

/// How far a run is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Status {
    /// Units that were done before this command began.
    pub known: u64,
    /// Units of this command.
    pub done: u64,
    /// Units with a worker.
    pub under_way: usize,
    /// Units that are not tried again.
    pub set_aside: usize,
    /// Of all units; `None` where nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Since the command began.
    pub units_per_second: f64,
    /// Seconds until all are done, at this rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds_left: Option<f64>,
    /// By name.
    pub nodes: Vec<NodeStatus>,
}

impl Status {
    /// With what follows from the counts and the time since the first worker was there.
    #[must_use]
    pub fn after(mut self, elapsed: Duration) -> Status {
        let seconds = elapsed.as_secs_f64();
        self.units_per_second = if seconds > 0.0 { self.done as f64 / seconds } else { 0.0 };
        let finished = self.known + self.done + self.set_aside as u64;
        let left = self.total.map(|total| total.saturating_sub(finished) as f64);
        self.seconds_left = match self.units_per_second > 0.0 {
            true => left.map(|left| left / self.units_per_second),
            false => None,
        };
        self
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let finished = self.known + self.done;
        match self.total {
            Some(total) => write!(f, "{finished} of {total} units")?,
            None => write!(f, "{finished} units")?,
        }
        write!(f, ", {:.1}/s", self.units_per_second)?;
        if let Some(left) = self.seconds_left {
            write!(f, ", {left:.0} s left")?;
        }
        if self.set_aside > 0 {
            write!(f, ", {} set aside", self.set_aside)?;
        }
        let mut counts = [("working", 0), ("starting", 0), ("set aside", 0), ("gone", 0)];
        for node in &self.nodes {
            counts.iter_mut().filter(|(word, _)| *word == node.state.word()).for_each(|c| c.1 += 1);
        }
        let counts: Vec<String> = counts
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(word, count)| format!("{count} {word}"))
            .collect();
        write!(
            f,
            "; nodes: {}",
            if counts.is_empty() { "none yet".into() } else { counts.join(", ") }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_and_estimate_follow_from_what_this_command_did() {
        let node = |name: &str, state| NodeStatus {
            name: name.into(),
            state,
            workers: 1,
            done: 5,
            noise: None,
        };
        let aside = NodeState::Aside { reason: "noisy".into() };
        let status = Status {
            known: 10,
            done: 20,
            under_way: 2,
            set_aside: 1,
            total: Some(71),
            units_per_second: 0.0,
            seconds_left: None,
            nodes: vec![node("a", NodeState::Working), node("b", aside)],
        };
        let after = status.clone().after(Duration::from_secs(10));
        assert_eq!(
            after.to_string(),
            "30 of 71 units, 2.0/s, 20 s left, 1 set aside; nodes: 1 working, 1 set aside"
        );
        assert_eq!(status.after(Duration::ZERO).seconds_left, None);
        let json = serde_json::to_value(&after).unwrap();
        assert_eq!(json["nodes"][1]["reason"], "noisy");
    }
}
