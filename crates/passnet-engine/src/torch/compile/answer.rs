//! What the compiling process answers: a line of JSON, and after it the cubin. It read untrusted text, so nothing it says
//! is taken as it comes.

use super::request::Request;
use crate::engine::{EngineError, ErrorKind};
use passnet_kernel::plan::Launch;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::fmt;

const MAX_LINE: usize = 64 << 10;
const MAX_WARPS: u32 = 32;
const MAX_SHARED: u32 = 1 << 20;
const MAX_SCRATCH: usize = 4;
const MAX_NAME: usize = 512;

/// A kernel compiled for a GPU.
#[derive(Clone, PartialEq, Eq)]
pub struct Cubin {
    /// Its entry.
    pub name: String,
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// Warps of a program, as it was compiled.
    pub num_warps: u32,
    /// Indices of the launch's arguments that it takes, in order.
    pub parameters: Vec<usize>,
    /// Those of them that must be addresses divisible by 16.
    pub aligned: Vec<usize>,
    /// Null pointers it takes after them.
    pub scratch: usize,
    /// Registers of a thread, where the cubin says.
    pub registers: Option<u32>,
    /// The cubin itself.
    pub code: Vec<u8>,
}

impl fmt::Debug for Cubin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} and {} bytes of code", self.describe(0), self.code.len())
    }
}

impl Cubin {
    /// The kernel as the plan runner's JSON describes it, its code beginning at `offset` among all cubins.
    pub fn describe(&self, offset: usize) -> Json {
        json!({
            "name": self.name,
            "offset": offset,
            "length": self.code.len(),
            "shared": self.shared,
            "num_warps": self.num_warps,
            "parameters": self.parameters,
            "aligned": self.aligned,
            "scratch": self.scratch,
        })
    }

    /// All kernels of a plan as the plan runner takes them: their descriptions, and the code of all, each cubin once.
    pub fn pack(cubins: &[Cubin]) -> (Vec<Json>, Vec<u8>) {
        let mut code: Vec<u8> = Vec::new();
        let mut places: Vec<(&[u8], usize)> = Vec::new();
        let mut kernels = Vec::with_capacity(cubins.len());
        for cubin in cubins {
            let known = places.iter().find(|(known, _)| *known == cubin.code).map(|(_, at)| *at);
            let offset = known.unwrap_or_else(|| {
                // ELF headers are read in place.
                code.resize(code.len().next_multiple_of(64), 0);
                let offset = code.len();
                code.extend_from_slice(&cubin.code);
                places.push((&cubin.code, offset));
                offset
            });
            kernels.push(cubin.describe(offset));
        }
        (kernels, code)
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Ok(Description),
    Error { message: String, module: Option<String>, line: Option<u32> },
}

#[derive(Debug, Deserialize)]
struct Description {
    name: String,
    shared: u32,
    num_warps: u32,
    num_ctas: u32,
    parameters: Vec<usize>,
    scratch: usize,
    global_scratch: u64,
    profile_scratch: u64,
    registers: Option<u32>,
    bytes: usize,
}

pub(super) fn read(
    bytes: Vec<u8>,
    request: &Request,
    launch: &Launch,
) -> Result<Cubin, EngineError> {
    let kernel = &launch.kernel;
    let failed = |kind, text: &str| {
        let place = format!("{}:{}", launch.file, launch.line);
        Err(EngineError::graph(kind, format!("{place}: kernel `{kernel}`: {text}")))
    };
    let nonsense = |text: &str| failed(ErrorKind::Plan, &format!("the compiler's answer {text}"));
    let Some(end) = bytes.iter().take(MAX_LINE).position(|byte| *byte == b'\n') else {
        return nonsense("has no first line");
    };
    let description = match serde_json::from_slice::<Answer>(&bytes[..end]) {
        Ok(Answer::Ok(description)) => description,
        Ok(Answer::Error { message, module, line }) => {
            let file = module.as_deref().and_then(|module| request.path(module));
            let place = match (file, line) {
                (Some(file), Some(line)) => format!("{file}:{line}"),
                _ => format!("{}:{}", launch.file, launch.line),
            };
            let text = format!("{place}: kernel `{kernel}` does not compile: {message}");
            return Err(EngineError::graph(ErrorKind::Plan, text));
        }
        Err(error) => return nonsense(&format!("cannot be read: {error}")),
    };
    let code = bytes[end + 1..].to_vec();
    let named = (1..=MAX_NAME).contains(&description.name.len())
        && description.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$');
    let sensible = named
        && description.shared <= MAX_SHARED
        && description.num_warps.is_power_of_two()
        && description.num_warps <= MAX_WARPS
        && description.parameters == request.run_time
        && description.scratch <= MAX_SCRATCH
        && description.bytes == code.len()
        && code.len() >= 64
        && code.starts_with(b"\x7fELF");
    if !sensible {
        return nonsense("does not describe a cubin of this kernel");
    }
    if description.num_ctas != 1 || description.global_scratch + description.profile_scratch > 0 {
        let text = "it needs clusters of blocks or scratch memory, which plans do not have";
        return failed(ErrorKind::Unsupported, text);
    }
    Ok(Cubin {
        name: description.name,
        shared: description.shared,
        num_warps: description.num_warps,
        parameters: description.parameters,
        aligned: request.aligned.clone(),
        scratch: description.scratch,
        registers: description.registers,
        code,
    })
}
