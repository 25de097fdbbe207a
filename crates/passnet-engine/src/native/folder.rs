//! The inputs of a graph as its folder records them.

use super::error::{Result, TensorError, err};
use super::inputs::{self, InputMeta};
use super::tensor::{Scalar, Tensor};
use crate::engine::Value;
use passnet_graph::read::{Number, TensorMeta, read_tensor_metas};
use passnet_graph::{DType, Diagnostic, FileName, Graph, GraphFiles};

/// Why a folder's inputs could not be drawn.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "fields are the input's name and what went wrong")]
pub enum InputError {
    /// The metadata cannot be read.
    Metadata(Vec<Diagnostic>),
    /// An argument could not be drawn.
    Draw { name: String, error: TensorError },
}

impl std::fmt::Display for InputError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            InputError::Metadata(errors) => match errors.first() {
                Some(error) => write!(f, "{error}"),
                None => f.write_str("the metadata cannot be read"),
            },
            InputError::Draw { name, error } if name.is_empty() => write!(f, "{error}"),
            InputError::Draw { name, error } => write!(f, "input `{name}`: {error}"),
        }
    }
}

impl std::error::Error for InputError {}

/// Draws one value per placeholder. With `dtype`, float32 inputs are drawn in that type instead.
pub fn draw_inputs(
    files: &GraphFiles,
    graph: &Graph,
    seed: u64,
    dtype: Option<DType>,
) -> std::result::Result<Vec<Value>, InputError> {
    InputDrawer::new(files, graph, dtype)?.draw(seed)
}

/// What a folder says of a graph's inputs, read once and drawn from many times.
#[derive(Debug, Clone)]
pub struct InputDrawer {
    inputs: Vec<InputMeta>,
    weights: Vec<InputMeta>,
    placeholders: Vec<String>,
}

impl InputDrawer {
    /// With `dtype`, float32 inputs are drawn in that type instead.
    pub fn new(
        files: &GraphFiles,
        graph: &Graph,
        dtype: Option<DType>,
    ) -> std::result::Result<InputDrawer, InputError> {
        let read = |name: FileName| -> std::result::Result<Vec<InputMeta>, InputError> {
            let Some(source) = files.source(name) else { return Ok(Vec::new()) };
            let metas = source
                .map_err(|error| vec![error])
                .and_then(|source| read_tensor_metas(&source))
                .map_err(InputError::Metadata)?;
            metas.into_iter().map(|meta| input_meta(meta, dtype)).collect()
        };
        Ok(InputDrawer {
            inputs: read(FileName::InputMeta)?,
            weights: read(FileName::WeightMeta)?,
            placeholders: graph.placeholders().iter().map(|node| node.name.to_string()).collect(),
        })
    }

    /// One value per placeholder.
    pub fn draw(&self, seed: u64) -> std::result::Result<Vec<Value>, InputError> {
        let drawn = inputs::materialise(&self.inputs, &self.weights, seed)
            .map_err(|error| InputError::Draw { name: String::new(), error })?;
        let find = |name: &String| -> Result<Tensor> {
            drawn
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, tensor)| tensor.clone())
                .ok_or_else(|| err!(Value, "there is no metadata for this argument"))
        };
        self.placeholders
            .iter()
            .map(|name| {
                find(name)
                    .map(Value::Tensor)
                    .map_err(|error| InputError::Draw { name: name.clone(), error })
            })
            .collect()
    }

    /// Of every placeholder: the only values it may have, where the folder lists them.
    pub fn is_fixed(&self) -> Vec<bool> {
        let is_listed = |meta: &InputMeta| meta.data.is_some();
        self.metas().map(|meta| meta.is_some_and(is_listed)).collect()
    }

    /// Of every placeholder: the least and the largest integer that the folder allows.
    pub fn integer_ranges(&self) -> Vec<Option<(i64, i64)>> {
        let range = |meta: &InputMeta| Some((meta.min_val?.to_i64(), meta.max_val?.to_i64()));
        self.metas().map(|meta| meta.and_then(range)).collect()
    }

    /// Of every placeholder; a later entry of the same name replaces an earlier one.
    fn metas(&self) -> impl Iterator<Item = Option<&InputMeta>> {
        self.placeholders.iter().map(|name| {
            let mut all = self.weights.iter().rev().chain(self.inputs.iter().rev());
            all.find(|meta| meta.name == *name)
        })
    }
}

fn input_meta(
    meta: TensorMeta,
    dtype: Option<DType>,
) -> std::result::Result<InputMeta, InputError> {
    let number = |number: Number| match number {
        Number::Bool(value) => Scalar::Bool(value),
        Number::Int(value) => Scalar::Int(value),
        Number::Float(value) => Scalar::Float(value),
    };
    let sizes = meta.shape.iter().map(|size| usize::try_from(*size)).collect();
    let shape = match sizes {
        Ok(shape) => shape,
        Err(_) => {
            let error = err!(Shape, "a size is negative: {:?}", meta.shape);
            return Err(InputError::Draw { name: meta.name, error });
        }
    };
    Ok(InputMeta {
        class_name: meta.class_name,
        name: meta.name,
        shape,
        dtype: match (meta.dtype, dtype) {
            (DType::Float32, Some(dtype)) => dtype,
            (own, _) => own,
        },
        mean: meta.mean,
        std: meta.std,
        data: meta.data.map(|data| data.into_iter().map(number).collect()),
        min_val: meta.min_val.map(number),
        max_val: meta.max_val.map(number),
    })
}
