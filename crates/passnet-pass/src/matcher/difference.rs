//! What can differ between a pattern and a place in a graph.

use passnet_graph::{Arg, NodeId};

/// One difference, with the node it concerns on either side.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The operation of the pattern.
    pub pattern: NodeId,
    /// What the graph has there; `None` where it has nothing.
    pub graph: Option<NodeId>,
    /// How the two differ.
    pub kind: DifferenceKind,
}

/// How a pattern and a graph differ at one place.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "fields are what the sentence of their variant names")]
pub enum DifferenceKind {
    /// Another operation stands in the graph.
    Operation,
    /// The graph has an input (or a literal) where the pattern computes something.
    NotComputed,
    /// Nothing in the graph uses the value as the pattern goes on to do.
    NoUser,
    /// A literal, dtype or device differs.
    Literal { parameter: Box<str>, pattern: Arg, graph: Arg },
    /// One side writes a literal, the other passes a value.
    LiteralOrValue { parameter: Box<str>, literal: Arg, in_pattern: bool },
    /// The pattern has an argument of its own here, but the graph leaves the parameter at its default.
    Omitted { parameter: Box<str> },
    /// Lists of different length.
    Length { parameter: Box<str>, pattern: usize, graph: usize },
    /// The arguments follow different overloads, or cannot be laid out.
    Arguments,
    /// The pattern uses one value where the graph uses two.
    NotTheSame { parameter: Box<str> },
    /// The pattern computes this twice, the graph once.
    Shared,
    /// One side updates in place, the other does not.
    InPlace { in_pattern: bool },
    /// A value inside the match is used outside it; `None`: the graph returns it.
    UsedOutside { by: Option<NodeId> },
    /// The node draws random numbers or has another effect that a replacement would lose.
    Effect,
    /// The graph updates one of its inputs in place, which the pattern does not.
    InputUpdated,
    /// A later node sees what a matched node writes in place.
    WriteSeen { by: Option<NodeId> },
    /// A returned value shares memory that a later node writes.
    AliasWritten { by: NodeId },
    /// A node between the matched ones needs some of them and is needed by others.
    Between { node: NodeId },
}

impl DifferenceKind {
    /// Whether a change to the pattern alone could remove the difference.
    pub fn is_edit(&self) -> bool {
        use DifferenceKind as K;
        matches!(
            self,
            K::Operation
                | K::Literal { .. }
                | K::LiteralOrValue { .. }
                | K::Omitted { .. }
                | K::Length { .. }
                | K::InPlace { .. }
                | K::UsedOutside { .. }
                | K::InputUpdated
                | K::NotTheSame { .. }
        )
    }
}
