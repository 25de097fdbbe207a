//! Which dimensions of a graph's inputs may change: those recorded as symbols, or else those that inference says can
//! be one larger.

use super::{Assignment, Generalised};
use crate::graph::Annotation;
use crate::infer::{Dim, Failure, infer_folder};
use crate::read::{Constraints, GraphFolder, Number, ShapeDim, TensorMeta};
use crate::{NodeId, NodeKind};

/// Different sizes that are tried; inputs of one graph have fewer.
const MAX_TRIES: usize = 12;

/// Whether a graph's own constraints name dimensions that may change.
pub fn records_symbols(constraints: &Constraints) -> bool {
    let symbolic = |shape: &[ShapeDim]| shape.iter().any(|d| matches!(d, ShapeDim::Symbol(_)));
    constraints.input_shapes.iter().any(|(_, shape)| symbolic(shape))
}

/// The recorded symbols, or those found by trying.
pub fn find_symbols(folder: &GraphFolder) -> Constraints {
    if records_symbols(&folder.constraints) {
        return folder.constraints.clone();
    }
    let mut found = fixed(folder);
    let mut tried: Vec<i64> = Vec::new();
    for (index, meta) in folder.metas.iter().enumerate() {
        if !is_data(folder, index) {
            continue;
        }
        for (axis, &size) in meta.shape.iter().enumerate() {
            let can_vary = size > 1 || (size == 1 && axis == 0);
            if !can_vary || tried.contains(&size) || tried.len() >= MAX_TRIES {
                continue;
            }
            tried.push(size);
            let candidate = with_symbol(folder, &found, size);
            if follows(folder, &candidate, size) {
                found = candidate;
            }
        }
    }
    found
}

/// The symbols of a piece that was cut out of a model: dimensions of its inputs that follow the model's symbols. Dimensions
/// that are one expression there are one symbol here. A dimension that cannot be one larger by itself, because another one
/// depends on it, keeps its size. `parents` are the nodes of the model that the arguments of the piece stand for.
pub fn inherited_symbols(
    model: &Generalised,
    parents: &[NodeId],
    piece: &GraphFolder,
) -> Constraints {
    let mut groups: Vec<(&Dim, Vec<(usize, usize)>)> = Vec::new();
    for (argument, (meta, parent)) in piece.metas.iter().zip(parents).enumerate() {
        let shape = model.shape(*parent, meta.shape.len()).unwrap_or_default();
        for (axis, dim) in shape.iter().enumerate().filter(|(_, dim)| dim.is_symbolic()) {
            match groups.iter_mut().find(|(known, _)| known.is_identical(dim)) {
                Some((_, places)) => places.push((argument, axis)),
                None => groups.push((dim, vec![(argument, axis)])),
            }
        }
    }
    let mut found = fixed(piece);
    for (_, places) in groups.iter().take(MAX_TRIES) {
        let mut sizes = places.iter().map(|(argument, axis)| piece.metas[*argument].shape[*axis]);
        let Some(size) = sizes.next().filter(|size| *size > 0) else { continue };
        if !sizes.all(|other| other == size) {
            continue;
        }
        let mut candidate = found.clone();
        let name = format!("S{}", candidate.symbols.len());
        for (argument, axis) in places {
            candidate.input_shapes[*argument].1[*axis] = ShapeDim::Symbol(name.clone());
        }
        candidate.symbols.push((name, size));
        if follows(piece, &candidate, size) {
            found = candidate;
        }
    }
    match found.symbols.is_empty() {
        true => Constraints::default(),
        false => found,
    }
}

/// Every dimension with the size that is recorded for it.
fn fixed(folder: &GraphFolder) -> Constraints {
    let shape = |meta: &TensorMeta| meta.shape.iter().map(|size| ShapeDim::Size(*size)).collect();
    let shapes = folder.metas.iter().map(|meta| (meta.name.clone(), shape(meta)));
    Constraints { symbols: Vec::new(), input_shapes: shapes.collect() }
}

/// Whether an argument is data, not a weight.
fn is_data(folder: &GraphFolder, index: usize) -> bool {
    let (meta, node) = (&folder.metas[index], &folder.graph.placeholders()[index]);
    let annotation = match node.kind {
        NodeKind::Placeholder(annotation) => annotation,
        NodeKind::Call(_) => return false,
    };
    let name = meta.original_name.as_deref().unwrap_or(&meta.name);
    !matches!(annotation, Annotation::Parameter | Annotation::SymInt)
        && !name.contains("_self_")
        && !name.contains("_instance_modules_")
        && !meta.name.starts_with("w_")
}

/// Every dimension of this size in a data input becomes one more symbol.
fn with_symbol(folder: &GraphFolder, found: &Constraints, size: i64) -> Constraints {
    let mut constraints = found.clone();
    let name = format!("S{}", constraints.symbols.len());
    for (index, (_, shape)) in constraints.input_shapes.iter_mut().enumerate() {
        if !is_data(folder, index) {
            continue;
        }
        for (axis, dim) in shape.iter_mut().enumerate() {
            if *dim == ShapeDim::Size(size) && (size > 1 || axis == 0) {
                *dim = ShapeDim::Symbol(name.clone());
            }
        }
    }
    constraints.symbols.push((name, size));
    constraints
}

/// Whether the graph still fits together when the last symbol is one larger.
fn follows(folder: &GraphFolder, constraints: &Constraints, size: i64) -> bool {
    let symbolic = GraphFolder { constraints: constraints.clone(), ..folder.clone() };
    let mut values: Assignment = constraints.symbols.clone();
    if let Some((_, value)) = values.last_mut() {
        *value = size + 1;
    }
    with_sizes(&symbolic, &Generalised::new(&symbolic), &values).is_ok()
}

/// Why a graph does not exist for some values of its symbols.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoVariant {
    /// A literal has no value.
    Literal,
    /// The graph cannot be inferred at these sizes.
    Failure(Failure),
}

impl std::fmt::Display for NoVariant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Literal => f.write_str("a size in the code cannot be computed from the symbols"),
            Self::Failure(failure) => write!(f, "`{}`: {}", failure.name, failure.message),
        }
    }
}

/// The graph of `folder` for given values of its symbols, checked by inference.
pub fn with_sizes(
    folder: &GraphFolder,
    generalised: &Generalised,
    values: &Assignment,
) -> Result<(GraphFolder, crate::infer::Inference), NoVariant> {
    let value = |name: &str| values.iter().find(|(symbol, _)| symbol == name).map(|(_, v)| *v);
    // Integer arguments are symbols of their own and keep their value.
    let own = |name: &str| {
        let meta = folder.metas.iter().find(|meta| meta.name == name)?;
        meta.data.as_ref()?.first()?.as_i64()
    };
    let symbol = |name: &str| value(name).or_else(|| own(name));
    let graph = generalised.graph(&folder.graph, &symbol).ok_or(NoVariant::Literal)?;
    let mut metas = folder.metas.clone();
    for meta in &mut metas {
        let recorded = folder.constraints.input_shapes.iter().find(|(name, _)| *name == meta.name);
        for (size, dim) in meta.shape.iter_mut().zip(recorded.map_or(&[][..], |(_, shape)| shape)) {
            if let ShapeDim::Symbol(name) = dim
                && let Some(new) = value(name)
            {
                *size = new;
            }
        }
        fit_data(meta);
    }
    let mut constraints = folder.constraints.clone();
    for (name, example) in &mut constraints.symbols {
        *example = value(name).unwrap_or(*example);
    }
    let variant = GraphFolder {
        graph,
        metas,
        constraints,
        info: folder.info.clone(),
        sources: folder.sources.clone(),
    };
    let mut types = infer_folder(&variant);
    match types.failures.is_empty() {
        true => Ok((variant, types)),
        false => Err(NoVariant::Failure(types.failures.swap_remove(0))),
    }
}

/// Recorded elements are repeated or cut to the new number of elements.
fn fit_data(meta: &mut TensorMeta) {
    const MOST: usize = 1 << 16;
    let count = usize::try_from(meta.elements()).unwrap_or(usize::MAX);
    let Some(data) = &meta.data else { return };
    if data.is_empty() || data.len() == count {
        return;
    }
    if count <= MOST {
        meta.data = Some(data.iter().copied().cycle().take(count).collect());
        return;
    }
    // Too many to write down: integers keep their range, so that indices stay legal.
    let integers: Option<Vec<i64>> = data.iter().map(|number| number.as_i64()).collect();
    if let Some(integers) = integers.filter(|_| meta.dtype.is_integer()) {
        meta.min_val = integers.iter().min().copied().map(Number::Int);
        meta.max_val = integers.iter().max().copied().map(Number::Int);
    }
    meta.data = None;
}
