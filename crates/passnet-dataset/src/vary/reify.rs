//! Nine concrete sizes for the symbolic dimensions of a graph's inputs.
//!
//! The usual kinds of inputs have fixed rules ([`Rule`]), found from the roles of the symbols: images vary in batch
//! and size, token tables in batch and length, and so on, always from small to large by the product of the values.
//! Symbols of one role share a value, except two sequences (encoder and decoder), which may differ. Anything else,
//! and anything too large for the caller's budget of elements, takes nine points spread evenly over a grid of
//! plausible values within the budget ([`Rule::Grid`]). A symbol of unknown meaning keeps its example value.

use super::roles::{Domain, Role, symbol_roles};
use passnet_graph::read::{Constraints, ShapeDim};
use passnet_graph::resize::Assignment;
use std::collections::BTreeMap;
use std::fmt;

/// Variants of one graph.
pub const VARIANTS: usize = 9;

/// How the values were chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    Batch,
    SegmentationBatch,
    BatchAndImage,
    Image,
    BatchAndSequence,
    BatchAndTwoSequences,
    BatchAndFrames,
    Sequence,
    /// Values spread over a grid within the budget.
    Grid,
}

/// Nine assignments, ascending by the product of their values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reified {
    pub rule: Rule,
    pub variants: Vec<Assignment>,
}

/// Why a graph gets no shape variants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotReified {
    /// No input has a symbolic dimension.
    NoSymbol,
    /// A symbol of unknown meaning has no example value to keep.
    NoExample { symbol: String },
    /// Nothing but symbols of unknown meaning.
    NothingToVary,
    /// Fewer than nine assignments fit.
    BudgetTooSmall { budget: u64, fitting: usize },
}

impl fmt::Display for NotReified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSymbol => f.write_str("no input has a symbolic dimension"),
            Self::NoExample { symbol } => {
                write!(f, "the meaning of symbol `{symbol}` is unknown and it has no example value")
            }
            Self::NothingToVary => f.write_str("the meaning of every symbol is unknown"),
            Self::BudgetTooSmall { budget, fitting } => write!(
                f,
                "only {fitting} of {VARIANTS} shape variants fit within {budget} input elements"
            ),
        }
    }
}

/// Chooses nine assignments such that the inputs that vary have at most `max_elements` elements together.
pub fn reify(
    constraints: &Constraints,
    domain: Domain,
    max_elements: u64,
) -> Result<Reified, NotReified> {
    let symbols = Symbols::find(constraints, domain)?;
    let sizes = InputSizes::new(constraints, &symbols);
    let fits = |tuple: &[i64]| sizes.fit(&symbols.assign(tuple), max_elements);

    if let Some((rule, tuples)) = fixed_rule(&symbols.roles(), domain)
        && tuples.iter().all(|tuple| fits(tuple))
    {
        return Ok(symbols.reified(rule, tuples));
    }
    let ladders: Vec<&[i64]> = symbols.roles().into_iter().map(ladder).collect();
    let mut grid = combinations(&ladders);
    grid.retain(|tuple| fits(tuple));
    if grid.len() < VARIANTS {
        return Err(NotReified::BudgetTooSmall { budget: max_elements, fitting: grid.len() });
    }
    grid.sort_by_cached_key(|tuple| magnitude(&symbols.assign(tuple)));
    let spread = (0..VARIANTS).map(|i| grid[i * (grid.len() - 1) / (VARIANTS - 1)].clone());
    Ok(symbols.reified(Rule::Grid, spread.collect()))
}

/// A dimension that is given values: one symbol, or all symbols of a role.
struct Axis {
    role: Role,
    /// Positions in the list of symbols.
    symbols: Vec<usize>,
}

struct Symbols {
    names: Vec<String>,
    /// What is varied, by role and then by symbol.
    axes: Vec<Axis>,
    /// The value of every symbol, before the axes are given theirs.
    examples: Vec<i64>,
}

impl Symbols {
    fn find(constraints: &Constraints, domain: Domain) -> Result<Self, NotReified> {
        let roles = symbol_roles(constraints, domain);
        if roles.is_empty() {
            return Err(NotReified::NoSymbol);
        }
        let examples: BTreeMap<&str, i64> =
            constraints.symbols.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let mut found = Self { names: Vec::new(), axes: Vec::new(), examples: Vec::new() };
        let mut by_role: BTreeMap<Role, Vec<usize>> = BTreeMap::new();
        for (name, role) in roles {
            let example = examples.get(name).copied();
            if role != Role::Unknown {
                by_role.entry(role).or_default().push(found.names.len());
            } else if example.is_none() {
                return Err(NotReified::NoExample { symbol: name.to_string() });
            }
            found.names.push(name.to_string());
            found.examples.push(example.unwrap_or(1));
        }
        for (role, symbols) in by_role {
            // Two sequences are an encoder's and a decoder's; more than two go together.
            if role == Role::Sequence && symbols.len() == 2 {
                found.axes.extend(symbols.into_iter().map(|s| Axis { role, symbols: vec![s] }));
            } else {
                found.axes.push(Axis { role, symbols });
            }
        }
        if found.axes.is_empty() { Err(NotReified::NothingToVary) } else { Ok(found) }
    }

    fn roles(&self) -> Vec<Role> {
        self.axes.iter().map(|axis| axis.role).collect()
    }

    /// The value of every symbol when each axis has the value of the tuple.
    fn assign(&self, tuple: &[i64]) -> Vec<i64> {
        let mut assigned = self.examples.clone();
        for (axis, &value) in self.axes.iter().zip(tuple) {
            for &symbol in &axis.symbols {
                assigned[symbol] = value;
            }
        }
        assigned
    }

    fn reified(&self, rule: Rule, tuples: Vec<Vec<i64>>) -> Reified {
        let mut variants: Vec<Vec<i64>> = tuples.iter().map(|tuple| self.assign(tuple)).collect();
        // Stable: a rule's own order among equal products is kept.
        variants.sort_by_cached_key(|values| magnitude(values));
        let named = |values: Vec<i64>| self.names.iter().cloned().zip(values).collect();
        Reified { rule, variants: variants.into_iter().map(named).collect() }
    }
}

/// The inputs with symbols, as their number of elements depends on them: the product of the known sizes, and the
/// symbols to multiply it with. Inputs without symbols (weights, mostly) are the same in every variant.
struct InputSizes(Vec<(u64, Vec<usize>)>);

impl InputSizes {
    fn new(constraints: &Constraints, symbols: &Symbols) -> Self {
        let mut inputs = Vec::new();
        for (_, shape) in &constraints.input_shapes {
            let mut known = 1;
            let mut unknown = Vec::new();
            for dim in shape {
                match dim {
                    ShapeDim::Size(size) => known = times(known, *size),
                    ShapeDim::Symbol(name) => {
                        unknown.extend(symbols.names.binary_search(name).ok())
                    }
                }
            }
            if !unknown.is_empty() {
                inputs.push((known, unknown));
            }
        }
        Self(inputs)
    }

    /// Whether these inputs together have at most `max_elements` elements.
    fn fit(&self, values: &[i64], max_elements: u64) -> bool {
        let mut left = Some(max_elements);
        for (known, symbols) in &self.0 {
            let elements = symbols.iter().fold(*known, |product, &s| times(product, values[s]));
            left = left.and_then(|left| left.checked_sub(elements));
            if left.is_none() {
                break;
            }
        }
        left.is_some()
    }
}

/// Multiplies without overflow; a negative size counts as empty.
fn times(product: u64, size: i64) -> u64 {
    product.saturating_mul(u64::try_from(size).unwrap_or(0))
}

/// The product of all values, by which variants are ordered.
fn magnitude(values: &[i64]) -> u128 {
    let sizes = values.iter().map(|&value| u128::try_from(value).unwrap_or(0));
    sizes.fold(1, u128::saturating_mul)
}

/// The rule for these roles and its nine tuples, one value for each role.
fn fixed_rule(roles: &[Role], domain: Domain) -> Option<(Rule, Vec<Vec<i64>>)> {
    use Role::{Batch, Frames, Image, Sequence};
    let found = match roles {
        [Batch] if domain == Domain::Segmentation => {
            (Rule::SegmentationBatch, combinations(&[&[1, 2, 4, 8, 12, 16, 24, 32, 64]]))
        }
        [Batch] => (Rule::Batch, combinations(&[&[1, 2, 4, 16, 32, 64, 128, 256, 512]])),
        [Batch, Image] => (Rule::BatchAndImage, combinations(&[&[1, 32, 128], &[224, 256, 384]])),
        [Image] => (Rule::Image, combinations(&[&[128, 192, 256, 320, 384, 448, 512, 576, 640]])),
        [Batch, Sequence] => {
            let tuples = [
                [1, 16],
                [4, 16],
                [1, 256],
                [16, 16],
                [4, 256],
                [256, 16],
                [1, 4096],
                [16, 256],
                [16, 4096],
            ];
            (Rule::BatchAndSequence, tuples.iter().map(|tuple| tuple.to_vec()).collect())
        }
        [Batch, Sequence, Sequence] => {
            let mut tuples = combinations(&[&[1, 4, 16], &[16, 256], &[16, 256]]);
            tuples.retain(|tuple| tuple[1] <= tuple[2]);
            (Rule::BatchAndTwoSequences, tuples)
        }
        [Batch, Frames] => (Rule::BatchAndFrames, combinations(&[&[1, 4, 16], &[500, 750, 1000]])),
        [Sequence] => {
            (Rule::Sequence, combinations(&[&[16, 32, 64, 128, 256, 512, 1024, 2048, 4096]]))
        }
        _ => return None,
    };
    Some(found)
}

/// Plausible values of a role, ascending. Image sizes are multiples of 32, as most networks halve five times.
fn ladder(role: Role) -> &'static [i64] {
    match role {
        Role::Batch => &[1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256],
        Role::Image => &[32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 448, 512],
        Role::Sequence => {
            &[4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096]
        }
        Role::Frames => &[100, 150, 200, 250, 300, 400, 500, 600, 750, 1000, 1500, 2000, 3000],
        Role::Unknown => &[],
    }
}

/// All tuples with one value of each ladder.
fn combinations(ladders: &[&[i64]]) -> Vec<Vec<i64>> {
    let mut tuples = vec![Vec::new()];
    for ladder in ladders {
        let extend = |tuple: &Vec<i64>| -> Vec<Vec<i64>> {
            ladder.iter().map(|&value| [tuple.as_slice(), &[value]].concat()).collect()
        };
        tuples = tuples.iter().flat_map(extend).collect();
    }
    tuples
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLENTY: u64 = 1 << 40;

    /// Inputs written as shapes separated by spaces; a size that is no number is a symbol with example value 7.
    pub(in crate::vary) fn constraints(shapes: &str) -> Constraints {
        let dim = |text: &str| match text.parse() {
            Ok(size) => ShapeDim::Size(size),
            Err(_) => ShapeDim::Symbol(text.to_string()),
        };
        let shape = |text: &str| text.split(',').map(dim).collect();
        let mut names: Vec<&str> = shapes.split([' ', ',']).collect();
        names.retain(|name| name.parse::<i64>().is_err());
        names.sort_unstable();
        names.dedup();
        Constraints {
            symbols: names.into_iter().map(|name| (name.to_string(), 7)).collect(),
            input_shapes: shapes
                .split(' ')
                .enumerate()
                .map(|(i, text)| (format!("in_{i}"), shape(text)))
                .collect(),
        }
    }

    fn values(reified: &Reified) -> Vec<Vec<i64>> {
        let values = |variant: &Assignment| variant.iter().map(|(_, value)| *value).collect();
        reified.variants.iter().map(values).collect()
    }

    fn chosen(shapes: &str, domain: Domain) -> (Rule, Vec<Vec<i64>>) {
        let reified = reify(&constraints(shapes), domain, PLENTY).unwrap();
        (reified.rule, values(&reified))
    }

    fn column(shapes: &str, domain: Domain) -> (Rule, Vec<i64>) {
        let (rule, rows) = chosen(shapes, domain);
        (rule, rows.into_iter().map(|row| row[0]).collect())
    }

    #[test]
    fn the_usual_inputs_have_their_usual_sizes() {
        use Domain::{Audio, General, Segmentation};
        assert_eq!(
            column("S0,3,224,224", General),
            (Rule::Batch, vec![1, 2, 4, 16, 32, 64, 128, 256, 512])
        );
        assert_eq!(
            column("S0,3,512,512", Segmentation),
            (Rule::SegmentationBatch, vec![1, 2, 4, 8, 12, 16, 24, 32, 64])
        );
        assert_eq!(
            column("1,3,S0,S0", General),
            (Rule::Image, vec![128, 192, 256, 320, 384, 448, 512, 576, 640])
        );
        let (rule, rows) = chosen("S0,3,S1,S1", General);
        assert_eq!(rule, Rule::BatchAndImage);
        assert_eq!((rows[0].as_slice(), rows[8].as_slice()), (&[1, 224][..], &[128, 384][..]));
        let (rule, rows) = chosen("S0,1 S0,S1 S0,S1", General);
        assert_eq!(rule, Rule::BatchAndSequence);
        assert_eq!(
            rows,
            [
                [1, 16],
                [4, 16],
                [1, 256],
                [16, 16],
                [4, 256],
                [256, 16],
                [1, 4096],
                [16, 256],
                [16, 4096]
            ]
        );
        let (rule, rows) = chosen("S0,S1 S0,S2", General);
        assert_eq!(rule, Rule::BatchAndTwoSequences);
        assert_eq!(
            (rows[0].as_slice(), rows[8].as_slice()),
            (&[1, 16, 16][..], &[16, 256, 256][..])
        );
        let (rule, rows) = chosen("S0 S0,80,S1", Audio);
        assert_eq!(rule, Rule::BatchAndFrames);
        assert_eq!((rows[0].as_slice(), rows[8].as_slice()), (&[1, 500][..], &[16, 1000][..]));
    }

    #[test]
    fn height_and_width_stay_equal_and_unknown_dimensions_keep_their_example() {
        let (rule, rows) = chosen("S0,3,S1,S2", Domain::General);
        assert_eq!(rule, Rule::BatchAndImage);
        assert!(rows.iter().all(|row| row[1] == row[2]));
        let (rule, rows) = chosen("1,S0,3,S1,S1", Domain::General);
        assert_eq!(rule, Rule::Image);
        assert!(rows.iter().all(|row| row[0] == 7));
    }

    #[test]
    fn other_inputs_take_points_of_a_grid() {
        let (rule, rows) = chosen("S0,3,S1,S1 S0,S2", Domain::General);
        assert_eq!(rule, Rule::Grid);
        assert_eq!(
            (rows[0].as_slice(), rows[8].as_slice()),
            (&[1, 32, 4][..], &[256, 512, 4096][..])
        );
    }

    #[test]
    fn a_small_budget_gives_small_variants() {
        let inputs = constraints("S0,3,S1,S1");
        let reified = reify(&inputs, Domain::General, 1_000_000).unwrap();
        assert_eq!(reified.rule, Rule::Grid);
        let largest = values(&reified)[8].clone();
        assert!(largest[0] * 3 * largest[1] * largest[1] <= 1_000_000);
    }

    #[test]
    fn a_refusal_names_its_reason() {
        let refusal = |shapes: &str, budget| {
            reify(&constraints(shapes), Domain::General, budget).unwrap_err().to_string()
        };
        assert_eq!(refusal("1,3,224,224", PLENTY), "no input has a symbolic dimension");
        assert_eq!(refusal("1,S0,3,224,S0", PLENTY), "the meaning of every symbol is unknown");
        assert_eq!(
            refusal("S0,1000 5000,5000", 4000),
            "only 4 of 9 shape variants fit within 4000 input elements"
        );
        let mut nameless = constraints("1,S0,3,S1,S1");
        nameless.symbols.clear();
        assert_eq!(
            reify(&nameless, Domain::General, PLENTY),
            Err(NotReified::NoExample { symbol: "S0".to_string() })
        );
    }

    fn any_shapes() -> impl Strategy<Value = String> {
        let dim = prop::sample::select(vec![
            "1",
            "3",
            "-2",
            "64",
            "9223372036854775807",
            "S0",
            "S1",
            "S2",
            "S3",
        ]);
        let shape = prop::collection::vec(dim, 1..6).prop_map(|dims| dims.join(","));
        prop::collection::vec(shape, 1..5).prop_map(|shapes| shapes.join(" "))
    }

    proptest! {
        #[test]
        fn nine_ascending_distinct_variants_within_the_budget(
            shapes in any_shapes(),
            audio in any::<bool>(),
            budget in prop_oneof![1u64..100_000, Just(u64::MAX)],
        ) {
            let inputs = constraints(&shapes);
            let domain = if audio { Domain::Audio } else { Domain::General };
            let Ok(reified) = reify(&inputs, domain, budget) else { return Ok(()) };
            let rows = values(&reified);
            prop_assert_eq!(rows.len(), VARIANTS);
            let products: Vec<i64> = rows.iter().map(|row| row.iter().product()).collect();
            prop_assert!(products.is_sorted());
            let mut distinct = rows.clone();
            distinct.sort();
            distinct.dedup();
            prop_assert_eq!(distinct.len(), VARIANTS);
            for variant in &reified.variants {
                let size = |dim: &ShapeDim| match dim {
                    ShapeDim::Size(size) => *size,
                    ShapeDim::Symbol(name) => variant.iter().find(|(n, _)| n == name).unwrap().1,
                };
                let elements = |shape: &Vec<ShapeDim>| -> u64 {
                    let sizes = shape.iter().map(|dim| size(dim).max(0).unsigned_abs());
                    sizes.fold(1, u64::saturating_mul)
                };
                let varies = |shape: &Vec<ShapeDim>| shape.iter().any(|d| matches!(d, ShapeDim::Symbol(_)));
                let varying = inputs.input_shapes.iter().filter(|(_, shape)| varies(shape));
                let total = varying.map(|(_, shape)| elements(shape));
                prop_assert!(total.fold(0, u64::saturating_add) <= budget);
            }
        }
    }
}
