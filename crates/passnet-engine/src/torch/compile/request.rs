//! What the compiling process is asked.

use crate::engine::{EngineError, ErrorKind};
use passnet_kernel::excerpt::{Excerpt, excerpt};
use passnet_kernel::plan::{ArgValue, Launch};
use passnet_kernel::types::Elem;
use passnet_kernel::{Const, ModuleSet};
use serde_json::{Value as Json, json};

const VERSION: u32 = 1;

/// A request and what its answer must agree with.
#[derive(Debug)]
pub(super) struct Request {
    text: String,
    excerpt: Excerpt,
    /// Indices of the launch's arguments that stay parameters of the cubin.
    pub(super) run_time: Vec<usize>,
    /// Those of them that are pointers compiled for addresses divisible by 16.
    pub(super) aligned: Vec<usize>,
}

impl Request {
    pub(super) fn new(
        modules: &ModuleSet,
        launch: &Launch,
        alignment: &[bool],
        target: &str,
    ) -> Result<Request, EngineError> {
        let mut given = Vec::new();
        for arg in &launch.args {
            if let ArgValue::Const(value) = &arg.value {
                functions_in(value, &mut given);
            }
        }
        let excerpt = excerpt(modules, launch.module, &launch.kernel, &given)
            .map_err(|error| EngineError::graph(ErrorKind::Plan, error.to_string()))?;
        let (mut run_time, mut aligned) = (Vec::new(), Vec::new());
        let mut parameters = Vec::new();
        for (index, arg) in launch.args.iter().enumerate() {
            if let Some(name) = descriptor_part(&arg.name) {
                return Err(EngineError::graph(
                    ErrorKind::Plan,
                    format!(
                        "`{name}` of `{}` is a descriptor that the wrapper made, which this engine cannot pass: make it in \
                         the kernel with `tl.make_tensor_descriptor`",
                        launch.kernel
                    ),
                ));
            }
            let specialised = specialise(&arg.value, alignment);
            parameters.push(match &specialised {
                Specialised::Constant(value) => json!({ "name": arg.name, "constant": value }),
                Specialised::Parameter { kind, divisible } => {
                    run_time.push(index);
                    if *divisible && matches!(arg.value, ArgValue::Buffer(_)) {
                        aligned.push(index);
                    }
                    json!({ "name": arg.name, "type": kind, "divisible": divisible })
                }
            });
        }
        let files = excerpt.files.iter();
        let files: Vec<Json> =
            files.map(|file| json!({ "name": file.module, "text": file.text })).collect();
        let text = json!({
            "version": VERSION,
            "target": target,
            "modules": files,
            "module": excerpt.files[excerpt.main].module,
            "kernel": launch.kernel,
            "parameters": parameters,
            "options": {
                "num_warps": launch.num_warps,
                "num_stages": launch.num_stages,
                "enable_fp_fusion": launch.enable_fp_fusion,
                "maxnreg": launch.maxnreg,
            },
        });
        Ok(Request { text: text.to_string(), excerpt, run_time, aligned })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The digest of everything that the cubin depends on.
    pub(super) fn key(&self, triton: &str, script: &str) -> String {
        let mut hasher = blake3::Hasher::new();
        for part in [self.text.as_str(), triton, script] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    /// The pass's file that a module of the request was cut from.
    pub(super) fn path(&self, module: &str) -> Option<&str> {
        let files = &self.excerpt.files;
        files.iter().find(|file| file.module == module).map(|file| file.path.as_str())
    }
}

/// The functions that a constant holds.
fn functions_in(value: &Const, found: &mut Vec<(usize, String)>) {
    match value {
        Const::Function(module, name) => found.push((*module, name.clone())),
        Const::Tuple(items) => items.iter().for_each(|item| functions_in(item, found)),
        _ => {}
    }
}

/// The descriptor that an argument is a part of; parts of tuples have numbers for names.
fn descriptor_part(name: &str) -> Option<&str> {
    let (owner, part) = name.split_once('.')?;
    part.split('.').any(|word| word.parse::<usize>().is_err()).then_some(owner)
}

/// How Triton specialises a kernel for one argument.
#[derive(Debug, PartialEq)]
enum Specialised {
    Constant(Const),
    Parameter {
        kind: String,
        /// By 16.
        divisible: bool,
    },
}

/// Triton's own rules: constants and the integer 1 are compiled in, pointers and integers divisible by 16 are known to be
/// so, `bool` and `float` are not specialised.
fn specialise(value: &ArgValue, alignment: &[bool]) -> Specialised {
    let parameter = |kind: String, divisible| Specialised::Parameter { kind, divisible };
    match value {
        ArgValue::Const(value) => Specialised::Constant(value.clone()),
        ArgValue::Int { value, elem: Elem::I1 } => {
            debug_assert!((0..=1).contains(value));
            parameter("u1".into(), false)
        }
        ArgValue::Int { value: 1, .. } => Specialised::Constant(Const::Int(1)),
        ArgValue::Int { value, elem } => parameter(elem.name().into(), value % 16 == 0),
        ArgValue::Float(_) => parameter(Elem::F32.name().into(), false),
        ArgValue::Buffer(view) => {
            let elem = Elem::from_dtype(view.dtype).unwrap_or(Elem::U8);
            let start = view.offset.wrapping_mul(view.dtype.size() as i64);
            let aligned = alignment.get(view.buffer).copied().unwrap_or(false);
            parameter(format!("*{}", elem.name()), aligned && start % 16 == 0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use passnet_graph::DType;
    use passnet_kernel::plan::View;

    fn parameter(kind: &str, divisible: bool) -> Specialised {
        Specialised::Parameter { kind: kind.into(), divisible }
    }

    #[test]
    fn arguments_are_specialised_as_triton_does() {
        let int = |value, elem| specialise(&ArgValue::Int { value, elem }, &[]);
        assert_eq!(int(1, Elem::I32), Specialised::Constant(Const::Int(1)));
        assert_eq!(int(0, Elem::I32), parameter("i32", true));
        assert_eq!(int(64, Elem::I32), parameter("i32", true));
        assert_eq!(int(63, Elem::I32), parameter("i32", false));
        assert_eq!(int(1 << 40, Elem::I64), parameter("i64", true));
        assert_eq!(int(1, Elem::I1), parameter("u1", false));
        assert_eq!(specialise(&ArgValue::Float(16.0), &[]), parameter("fp32", false));
        let none = ArgValue::Const(Const::None);
        assert_eq!(specialise(&none, &[]), Specialised::Constant(Const::None));
    }

    #[test]
    fn parts_of_descriptors_are_told_from_parts_of_tuples() {
        assert_eq!(descriptor_part("x"), None);
        assert_eq!(descriptor_part("x.0"), None);
        assert_eq!(descriptor_part("x.1.0"), None);
        assert_eq!(descriptor_part("x.base"), Some("x"));
        assert_eq!(descriptor_part("x.shape.0"), Some("x"));
    }

    #[test]
    fn a_pointer_is_aligned_if_its_buffer_and_its_offset_are() {
        let pointer = |buffer, offset, dtype, alignment: &[bool]| {
            let view = View { buffer, offset, shape: vec![4], stride: vec![1], dtype };
            specialise(&ArgValue::Buffer(view), alignment)
        };
        assert_eq!(pointer(1, 0, DType::Float32, &[false, true]), parameter("*fp32", true));
        assert_eq!(pointer(1, 4, DType::Float32, &[false, true]), parameter("*fp32", true));
        assert_eq!(pointer(1, 2, DType::Float32, &[false, true]), parameter("*fp32", false));
        assert_eq!(pointer(0, 0, DType::Bool, &[false, true]), parameter("*i1", false));
        assert_eq!(pointer(2, 0, DType::BFloat16, &[false, true]), parameter("*bf16", false));
    }
}
