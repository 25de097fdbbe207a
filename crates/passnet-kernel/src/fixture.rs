//! Kernel files that describe their own inputs in comments, so that they can run without a graph.
//!
//! ```text
//! # wrapper: fused_add
//! # input: x float32 [64, 100] normal
//! # input: index int64 [16] int 0 64
//! # input: y float32 [100, 64] uniform -1 1 stride [1, 100]
//! # value: 1e-5
//! # expect: out-of-bounds
//! ```
//! Data come from a counter-based generator that `python/passnet/kernels/triton_fixtures.py` repeats bit for bit.

use crate::consts::Const;
use crate::exec::{PreparedPlan, RunError, RunOptions, element_bytes, gather};
use crate::modules::ModuleSet;
use crate::plan::{HostArg, Init, LaunchPlan, PlanLimits, TensorSpec, View, plan};
use passnet_graph::syntax::Source;
use passnet_graph::{DType, Diagnostic};

/// How an input tensor is filled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Filling {
    /// About standard normal: the sum of four uniform numbers, scaled.
    Normal,
    /// Between two numbers, each equally likely.
    Uniform(f64, f64),
    /// Integers from the first number on, below the second.
    Int(i64, i64),
    /// 0, 1, 2, …
    Arange,
    /// One number in all places.
    Constant(f64),
}

/// One argument of the wrapper.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "fields are what the header says of the tensor")]
pub enum Input {
    /// A tensor, with the name it has in the header.
    Tensor { name: String, spec: TensorSpec, filling: Filling },
    /// A value that is no tensor.
    Value(Const),
}

/// The header of a kernel file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Header {
    /// The host function; `None` where the file has one kernel and no wrapper.
    pub wrapper: Option<String>,
    /// Its arguments, in order.
    pub inputs: Vec<Input>,
    /// Rules the checker must report, and no others.
    pub expect: Vec<String>,
    /// Largest relative error allowed against the golden, where not the default.
    pub tolerance: Option<f64>,
}

/// Input data of one header may take this many bytes.
const MAX_INPUT_BYTES: u64 = 4 << 30;

impl Header {
    /// Reads the comment at the top of a file.
    pub fn parse(source: &Source) -> Result<Header, Diagnostic> {
        let mut header = Header::default();
        for (index, line) in source.text().lines().enumerate() {
            let Some(comment) = line.strip_prefix('#') else {
                if line.trim().is_empty() {
                    continue;
                }
                break;
            };
            let Some((key, rest)) = comment.split_once(':') else { continue };
            let rest = rest.trim();
            let bad = |message: String| {
                let mut d = Diagnostic::file(source.path(), message);
                d.line = index + 1;
                d.column = 1;
                d
            };
            match key.trim() {
                "wrapper" => header.wrapper = Some(rest.to_string()),
                "input" => header.inputs.push(parse_input(rest).map_err(bad)?),
                "value" => header.inputs.push(Input::Value(parse_value(rest).map_err(bad)?)),
                "expect" => header.expect.extend(rest.split_whitespace().map(str::to_string)),
                "tolerance" => {
                    header.tolerance =
                        Some(rest.parse().map_err(|_| bad(format!("`{rest}` is not a number")))?);
                }
                _ => {}
            }
        }
        Ok(header)
    }

    /// Inputs are made by us: their size is bounded.
    fn check_size(&self, path: &str) -> Result<(), Diagnostic> {
        let bytes = self.inputs.iter().fold(0u64, |n, i| match i {
            Input::Tensor { spec, .. } => n.saturating_add(
                spec.storage_elements()
                    .unwrap_or(u64::MAX)
                    .saturating_mul(spec.dtype.size() as u64),
            ),
            Input::Value(_) => n,
        });
        if bytes > MAX_INPUT_BYTES {
            return Err(Diagnostic::file(path, format!("inputs need {bytes} bytes")));
        }
        Ok(())
    }

    /// The arguments as planning takes them.
    pub fn host_args(&self) -> Vec<HostArg> {
        let arg = |input: &Input| match input {
            Input::Tensor { spec, .. } => HostArg::Tensor(spec.clone()),
            Input::Value(c) => HostArg::Const(c.clone()),
        };
        self.inputs.iter().map(arg).collect()
    }

    /// The bytes of input `index`, which must be a tensor.
    pub fn data(&self, index: usize) -> Vec<u8> {
        let Some(Input::Tensor { spec, filling, .. }) = self.inputs.get(index) else {
            return Vec::new();
        };
        let elements = spec.storage_elements().unwrap_or(0);
        let mut out = Vec::with_capacity(elements as usize * spec.dtype.size());
        for i in 0..elements {
            let value = match *filling {
                Filling::Normal => {
                    let sum: f64 = (0..4).map(|k| unit(random(index as u64, i * 4 + k))).sum();
                    Const::Float((sum - 2.0) * 1.732_050_807_568_877_2)
                }
                Filling::Uniform(low, high) => {
                    Const::Float(low + (high - low) * unit(random(index as u64, i)))
                }
                Filling::Int(low, high) => {
                    let span = high.saturating_sub(low).max(1) as u64;
                    Const::Int(low + (random(index as u64, i) % span) as i64)
                }
                Filling::Arange => Const::Int(i as i64),
                Filling::Constant(v) => Const::Float(v),
            };
            out.extend(element_bytes(&value, spec.dtype));
        }
        out
    }
}

/// SplitMix64 of a counter; each input has its own stream.
fn random(stream: u64, index: u64) -> u64 {
    let mut z =
        (stream << 40).wrapping_add(index).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn unit(bits: u64) -> f64 {
    (bits >> 40) as f64 / (1u64 << 24) as f64
}

fn parse_value(text: &str) -> Result<Const, String> {
    Ok(match text {
        "None" => Const::None,
        "True" => Const::Bool(true),
        "False" => Const::Bool(false),
        _ => {
            if let Some(inner) = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')) {
                Const::Str(inner.to_string())
            } else if let Ok(i) = text.parse::<i64>() {
                Const::Int(i)
            } else if text.starts_with('[') {
                Const::Tuple(parse_list(text)?.into_iter().map(Const::Int).collect())
            } else {
                Const::Float(text.parse().map_err(|_| format!("`{text}` is not a value"))?)
            }
        }
    })
}

fn parse_list(text: &str) -> Result<Vec<i64>, String> {
    let inner = text.trim().strip_prefix('[').and_then(|t| t.strip_suffix(']'));
    let inner = inner.ok_or_else(|| format!("`{text}` is not a list"))?;
    inner
        .split(',')
        .map(str::trim)
        .filter(|t| !t.is_empty())
        .map(|t| t.parse().map_err(|_| format!("`{t}` is not an integer")))
        .collect()
}

fn parse_input(text: &str) -> Result<Input, String> {
    let (front, rest) = text.split_once('[').ok_or("an input needs a shape in brackets")?;
    let (shape, rest) = rest.split_once(']').ok_or("an input needs a shape in brackets")?;
    let shape = parse_list(&format!("[{shape}]"))?;
    let mut words = front.split_whitespace();
    let (Some(name), Some(dtype)) = (words.next(), words.next()) else {
        return Err("an input is a name, a dtype and a shape".into());
    };
    let dtype = DType::from_name(dtype).ok_or_else(|| format!("unknown dtype `{dtype}`"))?;
    let mut spec = TensorSpec::contiguous(&shape, dtype, TensorSpec::DEVICE);
    let (filling, stride) = match rest.split_once("stride") {
        Some((filling, stride)) => (filling, Some(parse_list(stride)?)),
        None => (rest, None),
    };
    if let Some(stride) = stride {
        spec.stride = stride;
    }
    if spec.storage_elements().is_none() {
        return Err("impossible shape or strides".into());
    }
    let words: Vec<&str> = filling.split_whitespace().collect();
    let number = |i: usize| {
        words
            .get(i)
            .and_then(|w| w.parse::<f64>().ok())
            .ok_or_else(|| format!("`{filling}` needs numbers"))
    };
    let filling = match words.first().copied() {
        None | Some("normal") => Filling::Normal,
        Some("uniform") => Filling::Uniform(number(1)?, number(2)?),
        Some("int") => Filling::Int(number(1)? as i64, number(2)? as i64),
        Some("arange") => Filling::Arange,
        Some("constant") => Filling::Constant(number(1)?),
        Some(other) => return Err(format!("unknown filling `{other}`")),
    };
    Ok(Input::Tensor { name: name.to_string(), spec, filling })
}

/// Returned tensors of a run: view and packed bytes, row-major.
#[derive(Debug)]
pub struct Outputs {
    /// Where each output lies.
    pub views: Vec<View>,
    /// The bytes of each output, row by row.
    pub data: Vec<Vec<u8>>,
}

/// A kernel file ready to run on the data its header describes.
#[derive(Debug)]
pub struct Fixture {
    /// What the comment at the top says.
    pub header: Header,
    /// The parsed file.
    pub modules: ModuleSet,
    /// What its wrapper does with these inputs.
    pub plan: LaunchPlan,
}

impl Fixture {
    /// Reads, plans and checks.
    pub fn new(source: Source) -> Result<Fixture, Diagnostic> {
        Fixture::with_helpers(source, Vec::new())
    }

    /// A kernel file with the helper files it imports, each by its stem.
    pub fn with_helpers(
        source: Source,
        helpers: Vec<(String, Source)>,
    ) -> Result<Fixture, Diagnostic> {
        let header = Header::parse(&source)?;
        let mut files = vec![("pass".into(), source)];
        files.extend(helpers);
        Fixture::of(header, ModuleSet::new(files)?)
    }

    /// The files of a pass, planned for the inputs of a header.
    pub fn of(header: Header, modules: ModuleSet) -> Result<Fixture, Diagnostic> {
        header.check_size(modules.source(0).path())?;
        let wrapper = match &header.wrapper {
            Some(name) => name.clone(),
            None => crate::plan::entry_name(&modules)?,
        };
        let plan = plan(&modules, &wrapper, &header.host_args(), PlanLimits::default())?;
        Ok(Fixture { header, modules, plan })
    }

    /// Name of the wrapper that was planned.
    pub fn wrapper(&self) -> Result<String, Diagnostic> {
        match &self.header.wrapper {
            Some(name) => Ok(name.clone()),
            None => crate::plan::entry_name(&self.modules),
        }
    }

    /// Name, view and packed bytes of each tensor argument.
    pub fn input_tensors(&self) -> Vec<(String, View, Vec<u8>)> {
        let mut tensors = Vec::new();
        for (index, input) in self.header.inputs.iter().enumerate() {
            if let Input::Tensor { name, spec, .. } = input {
                let (shape, stride) = (spec.shape.clone(), spec.stride.clone());
                let view = View { buffer: 0, offset: 0, shape, stride, dtype: spec.dtype };
                let data = gather(&view, &self.header.data(index));
                tensors.push((name.clone(), view, data));
            }
        }
        tensors
    }

    /// Compiles the kernels of the plan.
    pub fn prepare(&self) -> Result<PreparedPlan, Diagnostic> {
        PreparedPlan::new(&self.modules, self.plan.clone())
    }

    /// Buffers for one run: inputs filled, the rest poisoned so that reading them shows.
    pub fn buffers(&self, prepared: &PreparedPlan) -> Vec<Vec<u8>> {
        let mut buffers: Vec<Vec<u8>> = self
            .plan
            .buffers
            .iter()
            .map(|b| match &b.init {
                Init::Input(index) => self.header.data(*index),
                _ => vec![0xcb; b.bytes() as usize],
            })
            .collect();
        let mut borrowed: Vec<&mut [u8]> = buffers.iter_mut().map(Vec::as_mut_slice).collect();
        prepared.initialize(&mut borrowed);
        buffers
    }

    /// Runs the plan on inputs that the header describes.
    pub fn run(&self, prepared: &PreparedPlan, options: RunOptions) -> Result<Outputs, RunError> {
        let mut buffers = self.buffers(prepared);
        prepared.run(buffers.iter_mut().map(Vec::as_mut_slice).collect(), options)?;
        let data = self.plan.returns.iter().map(|v| gather(v, &buffers[v.buffer])).collect();
        Ok(Outputs { views: self.plan.returns.clone(), data })
    }
}
