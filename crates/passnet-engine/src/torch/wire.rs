//! Values as frames carry them.

use crate::engine::{EngineError, ErrorKind, Value};
use crate::native::tensor::Region;
use crate::native::{Scalar, Tensor, TensorError};
use passnet_graph::DType;
use serde_json::{Map, Value as Json, json};

/// Values laid out behind each other.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    pub(super) parts: Vec<Vec<u8>>,
    length: usize,
}

impl Outgoing {
    /// One value; tensors keep their strides.
    pub(super) fn value(&mut self, value: &Value) -> Result<Json, EngineError> {
        match value {
            Value::Tensor(tensor) => self.tensor(tensor).map_err(|error| tensor_error(&error)),
            Value::Number(Scalar::Bool(value)) => Ok(json!({ "value": value })),
            Value::Number(Scalar::Int(value)) => Ok(json!({ "value": value })),
            Value::Number(Scalar::Float(value)) if value.is_finite() => {
                Ok(json!({ "value": value }))
            }
            Value::None => Ok(json!({ "value": null })),
            other => Err(EngineError::graph(
                ErrorKind::Unsupported,
                format!("an input of type {} cannot be given to PyTorch", other.type_name()),
            )),
        }
    }

    pub(super) fn tensor(&mut self, tensor: &Tensor) -> Result<Json, TensorError> {
        let bytes = tensor.reached_bytes()?;
        let start = self.length;
        self.length += bytes.len();
        let described = json!({
            "dtype": tensor.dtype().name(),
            "shape": tensor.shape(),
            "stride": tensor.strides(),
            "bytes": [start, bytes.len()],
        });
        self.parts.push(bytes);
        Ok(described)
    }
}

/// A tensor of a reply, in row-major order.
pub(super) fn tensor(entry: &Map<String, Json>, bytes: &[u8]) -> Option<Tensor> {
    let dtype = DType::from_name(entry.get("dtype")?.as_str()?)?;
    let shape = sizes(entry.get("shape")?)?;
    let range = sizes(entry.get("bytes")?)?;
    let &[start, length] = range.as_slice() else { return None };
    let content = bytes.get(start..start.checked_add(length)?)?;
    Tensor::from_bytes(content, &shape, dtype).ok()
}

/// Outputs with the strides that the worker's have, in one memory where theirs are.
pub(super) fn laid_out(
    entries: &[&Map<String, Json>],
    contents: Vec<Tensor>,
) -> Option<Vec<Tensor>> {
    let number =
        |entry: &Map<String, Json>, key: &str| usize::try_from(entry.get(key)?.as_u64()?).ok();
    let mut places = Vec::new();
    for (entry, content) in entries.iter().zip(&contents) {
        let strides = sizes(entry.get("stride")?)?;
        let steps = content.shape().iter().zip(&strides);
        let reach = steps.map(|(size, stride)| size.saturating_sub(1).saturating_mul(*stride));
        let reach = reach.fold(1usize, usize::saturating_add);
        places.push((number(entry, "storage")?, number(entry, "offset")?, strides, reach));
    }
    let mut tensors = Vec::new();
    for (index, (storage, offset, strides, reach)) in places.iter().enumerate() {
        let content = &contents[index];
        let shares = |other: &usize| {
            places[*other].0 == *storage && contents[*other].dtype() == content.dtype()
        };
        let first = (0..index).find(shares);
        let group = || (0..places.len()).filter(shares).map(|other| &places[other]);
        let start = group().map(|place| place.1).min()?;
        let memory: Tensor = match first {
            Some(first) => Tensor::clone(&tensors[first]),
            None if group().count() == 1 && content.strides() == &strides[..] => {
                tensors.push(content.clone());
                continue;
            }
            None => {
                let end = group().map(|place| place.1.saturating_add(place.3)).max()?;
                // More than all elements take is a view with gaps, which nothing needs here.
                Tensor::zeros(&[end.checked_sub(start)?], content.dtype()).ok()?
            }
        };
        let region = Region {
            shape: content.shape().into(),
            strides: strides.as_slice().into(),
            offset: offset.checked_sub(start)?,
        };
        debug_assert!(*reach > 0);
        let tensor = memory.as_strided(region).ok()?;
        tensor.copy_from(content).ok()?;
        tensors.push(tensor);
    }
    Some(tensors)
}

/// The same elements as a view of an input, where the worker says that they share memory.
pub(super) fn view_of(
    input: &Tensor,
    entry: &Map<String, Json>,
    content: &Tensor,
) -> Option<Tensor> {
    let region = Region {
        shape: content.shape().into(),
        strides: sizes(entry.get("stride")?)?.as_slice().into(),
        offset: usize::try_from(entry.get("offset")?.as_u64()?).ok()?,
    };
    (input.dtype() == content.dtype()).then(|| input.as_strided(region).ok())?
}

pub(super) fn sizes(list: &Json) -> Option<Vec<usize>> {
    list.as_array()?.iter().map(|size| usize::try_from(size.as_u64()?).ok()).collect()
}

pub(super) fn tensor_error(error: &TensorError) -> EngineError {
    EngineError::graph(ErrorKind::from(error), error.to_string())
}
