//! Types as people read them: `float32[2, 3, S0*4]`, `int 4`, `(float32[2], int64[2])`.

use super::value::{Scalar, TensorType, Value};
use std::fmt;

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims: Vec<String> = self.shape.iter().map(ToString::to_string).collect();
        write!(f, "{}[{}]", self.dtype.name(), dims.join(", "))?;
        if !self.is_contiguous() {
            let strides: Vec<String> = self.strides.iter().map(ToString::to_string).collect();
            write!(f, " stride({})", strides.join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Tensor(tensor) => tensor.fmt(f),
            Value::Scalar(Scalar::Bool(Some(value))) => write!(f, "bool {value}"),
            Value::Scalar(Scalar::Int(Some(value))) => write!(f, "int {value}"),
            Value::Scalar(Scalar::Float(Some(value))) => write!(f, "float {value}"),
            Value::Sequence(items) => {
                let items: Vec<String> = items.iter().map(ToString::to_string).collect();
                write!(f, "({})", items.join(", "))
            }
            Value::Dtype(dtype) => dtype.fmt(f),
            Value::Unknown(reason) => write!(f, "unknown: {reason}"),
            other => f.write_str(other.type_name()),
        }
    }
}
