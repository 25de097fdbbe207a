//! What a symbolic dimension means, guessed from where it stands.
//!
//! Only positions are looked at, as people read a shape: the first axis is the batch, the last two of an image are
//! its height and width, the second of a table of tokens is the sequence.

use passnet_graph::read::{Constraints, ShapeDim};
use std::collections::BTreeMap;

/// The meaning of a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// First axis wherever it occurs.
    Batch,
    /// One of the last two axes of a shape with four or more.
    Image,
    /// Any other axis of a shape with up to three: tokens, positions.
    Sequence,
    /// The same in an audio model: samples or frames.
    Frames,
    /// Channels, video frames, heads: nothing but the example value is known to be legal.
    Unknown,
}

/// What a model is for, where that decides which sizes are usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Domain {
    #[default]
    General,
    Audio,
    /// Dense prediction on large images: small batches.
    Segmentation,
}

impl Domain {
    /// From the family (first folder of a graph's path) and the `heuristic_tag` of its metadata.
    pub fn of(family: &str, heuristic_tag: Option<&str>) -> Self {
        match family {
            "mmseg" => Self::Segmentation,
            "nemo" | "torchaudio" | "cosyvoice" => Self::Audio,
            _ if heuristic_tag == Some("audio") => Self::Audio,
            _ => Self::General,
        }
    }
}

/// Every symbol that occurs in an input shape, by name, with its role.
pub fn symbol_roles(constraints: &Constraints, domain: Domain) -> BTreeMap<&str, Role> {
    // Axis and rank of each place a symbol stands in.
    let mut places: BTreeMap<&str, Vec<(usize, usize)>> = BTreeMap::new();
    for (_, shape) in &constraints.input_shapes {
        for (axis, dim) in shape.iter().enumerate() {
            if let ShapeDim::Symbol(name) = dim {
                places.entry(name).or_default().push((axis, shape.len()));
            }
        }
    }
    places.into_iter().map(|(name, places)| (name, role(&places, domain))).collect()
}

fn role(places: &[(usize, usize)], domain: Domain) -> Role {
    let everywhere =
        |test: fn(usize, usize) -> bool| places.iter().all(|&(axis, rank)| test(axis, rank));
    if everywhere(|axis, _| axis == 0) {
        Role::Batch
    } else if everywhere(|axis, rank| rank >= 4 && axis + 2 >= rank) {
        Role::Image
    } else if everywhere(|_, rank| rank <= 3) {
        if domain == Domain::Audio { Role::Frames } else { Role::Sequence }
    } else {
        Role::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vary::reify::tests::constraints;

    fn roles(shapes: &str, domain: Domain) -> Vec<Role> {
        symbol_roles(&constraints(shapes), domain).into_values().collect()
    }

    #[test]
    fn positions_tell_what_a_symbol_means() {
        use Role::{Batch, Frames, Image, Sequence, Unknown};
        let general = Domain::General;
        assert_eq!(roles("S0,3,S1,S1", general), [Batch, Image]);
        assert_eq!(roles("S0,1 S0,S1 S0,S1,768", general), [Batch, Sequence]);
        assert_eq!(roles("S0 S0,80,S1", Domain::Audio), [Batch, Frames]);
        assert_eq!(roles("1,S0,3,S1,S1", general), [Unknown, Image]);
        assert_eq!(roles("S0,S1,S2,S2", general), [Batch, Unknown, Image]);
        // A batch that is also a length is a length.
        assert_eq!(roles("S0,S0", general), [Sequence]);
        assert_eq!(roles("1,3,224,224", general), []);
    }

    #[test]
    fn the_domain_comes_from_family_or_tag() {
        assert_eq!(Domain::of("mmseg", Some("computer_vision")), Domain::Segmentation);
        assert_eq!(Domain::of("nemo", None), Domain::Audio);
        assert_eq!(Domain::of("transformers-auto-model", Some("audio")), Domain::Audio);
        assert_eq!(Domain::of("timm", Some("computer_vision")), Domain::General);
    }
}
