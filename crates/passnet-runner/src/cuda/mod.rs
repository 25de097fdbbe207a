//! Plans on CUDA: cubins are loaded and kernel parameters laid out once; a call patches addresses and launches.

mod driver;
mod fill;
#[cfg(test)]
mod tests;

pub(crate) use driver::Driver;

use crate::failure::Failure;
use crate::request::{CompiledKernel, Request};
use driver::{Function, Module, Stream};
use fill::Fill;
use passnet_kernel::plan::{ArgValue, Launch, Step};
use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::ffi::{CString, c_int, c_void};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Threads of a warp.
const WARP: u32 = 32;
const MAX_WARPS: u32 = 32;
/// More shared memory than any GPU has for a block.
const MAX_SHARED: u32 = 1 << 20;
const MAX_SCRATCH: usize = 8;

#[derive(Debug)]
pub(crate) struct CudaPlan {
    driver: &'static Driver,
    /// Name and bytes of each buffer.
    buffers: Vec<(String, u64)>,
    fills: Vec<Fill>,
    steps: Vec<CudaStep>,
    modules: Vec<Module>,
    /// Taken by the call that runs the plan: the parameters are patched in place.
    busy: AtomicBool,
}

// SAFETY: module and function handles may be used from any thread that has their context; the parameters in `steps` are
// touched only by the call that took `busy`.
unsafe impl Send for CudaPlan {}
// SAFETY: as above.
unsafe impl Sync for CudaPlan {}

#[derive(Debug)]
enum CudaStep {
    Launch(CudaLaunch),
    /// A copy or a fill of a view: the caller does it between two ranges.
    Torch(&'static str),
}

#[derive(Debug)]
struct CudaLaunch {
    kernel: String,
    function: Function,
    grid: [u32; 3],
    threads: u32,
    shared: u32,
    /// The address of every parameter, as `cuLaunchKernel` takes them; they point into `_values`.
    pointers: Box<[*mut c_void]>,
    /// One word for each parameter.
    _values: Box<[UnsafeCell<u64>]>,
    addresses: Box<[Address]>,
}

/// A parameter that is an address: the buffer's, moved by a fixed offset.
#[derive(Debug)]
struct Address {
    parameter: usize,
    buffer: usize,
    offset: i64,
    /// Bits that must be zero.
    mask: u64,
}

impl CudaPlan {
    pub(crate) fn new(
        driver: &'static Driver,
        request: Request<CompiledKernel>,
        cubins: &[u8],
    ) -> Result<Self, Failure> {
        driver.require_context()?;
        let Request { plan, kernels } = request;
        let mut this = CudaPlan {
            driver,
            buffers: plan.buffers.iter().map(|spec| (spec.name.clone(), spec.bytes())).collect(),
            fills: Fill::of(&plan.buffers),
            steps: Vec::with_capacity(plan.steps.len()),
            modules: Vec::new(),
            busy: AtomicBool::new(false),
        };
        let mut loaded: BTreeMap<(usize, usize), Module> = BTreeMap::new();
        let mut kernels = kernels.iter();
        for step in &plan.steps {
            let launch = match step {
                Step::Launch(launch) => launch,
                Step::Copy { .. } => {
                    this.steps.push(CudaStep::Torch("copy"));
                    continue;
                }
                Step::Fill { .. } => {
                    this.steps.push(CudaStep::Torch("fill"));
                    continue;
                }
            };
            let Some(kernel) = kernels.next() else {
                return Err(Failure::call("the plan has more launches than kernels"));
            };
            let place = (kernel.offset, kernel.length);
            let module = match loaded.get(&place) {
                Some(module) => *module,
                None => {
                    let module = driver.load(cubin(cubins, place)?)?;
                    this.modules.push(module);
                    loaded.insert(place, module);
                    module
                }
            };
            let launch = CudaLaunch::new(driver, module, launch, kernel, this.buffers.len())
                .map_err(|failure| failure.about(&format!("kernel `{}`", launch.kernel)))?;
            this.steps.push(CudaStep::Launch(launch));
        }
        if kernels.next().is_some() {
            return Err(Failure::call("the plan has fewer launches than kernels"));
        }
        Ok(this)
    }

    pub(crate) fn buffers(&self) -> usize {
        self.buffers.len()
    }

    pub(crate) fn steps(&self) -> usize {
        self.steps.len()
    }

    /// Queues the steps. `addresses` has one entry for each buffer and `steps` lies inside the plan.
    pub(crate) fn run(
        &self,
        addresses: &[u64],
        steps: Range<usize>,
        stream: u64,
    ) -> Result<(), Failure> {
        let stream: Stream = std::ptr::with_exposed_provenance_mut(stream as usize);
        let _turn = Turn::take(&self.busy)?;
        for ((name, bytes), address) in self.buffers.iter().zip(addresses) {
            if *address == 0 && *bytes > 0 {
                return Err(Failure::call(format!("`{name}` has no address")));
            }
        }
        if steps.start == 0 {
            for fill in &self.fills {
                fill.queue(self.driver, addresses[fill.buffer], stream)?;
            }
        }
        for (index, step) in self.steps[steps.clone()].iter().enumerate() {
            match step {
                CudaStep::Launch(launch) => launch.queue(self.driver, addresses, stream)?,
                CudaStep::Torch(what) => {
                    return Err(Failure::call(format!(
                        "step {} is a {what}, which the caller does on CUDA",
                        steps.start + index
                    )));
                }
            }
        }
        Ok(())
    }
}

impl Drop for CudaPlan {
    fn drop(&mut self) {
        for module in &self.modules {
            // A context that is gone took its modules along: then this fails, and nothing is lost.
            // SAFETY: each module was loaded by this plan and nothing launches from it any more.
            let _ = unsafe { (self.driver.functions.unload_module)(*module) };
        }
    }
}

/// The right to patch parameters, given back when dropped.
struct Turn<'a>(&'a AtomicBool);

impl<'a> Turn<'a> {
    #[inline]
    fn take(busy: &'a AtomicBool) -> Result<Self, Failure> {
        match busy.swap(true, Ordering::Acquire) {
            false => Ok(Turn(busy)),
            true => Err(Failure::call("another thread runs this plan")),
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl CudaLaunch {
    fn new(
        driver: &Driver,
        module: Module,
        launch: &Launch,
        kernel: &CompiledKernel,
        buffers: usize,
    ) -> Result<Self, Failure> {
        let fits = kernel.num_warps.is_power_of_two()
            && kernel.num_warps <= MAX_WARPS
            && kernel.shared <= MAX_SHARED
            && kernel.scratch <= MAX_SCRATCH;
        if !fits {
            return Err(Failure::call("warps, shared memory or scratch pointers out of range"));
        }
        let name = CString::new(kernel.name.as_str())
            .map_err(|_| Failure::call("the entry's name holds a zero byte"))?;
        let mut values = Vec::with_capacity(kernel.parameters.len() + kernel.scratch);
        let mut addresses = Vec::new();
        for (parameter, &index) in kernel.parameters.iter().enumerate() {
            let Some(arg) = launch.args.get(index) else {
                return Err(Failure::call(format!("the launch has no argument {index}")));
            };
            let value = match &arg.value {
                ArgValue::Buffer(view) => {
                    let size = view.dtype.size() as i64;
                    let offset = view.offset.checked_mul(size);
                    let (Some(offset), true) = (offset, view.buffer < buffers) else {
                        return Err(Failure::call(format!("`{}` points nowhere", arg.name)));
                    };
                    let aligned = if kernel.aligned.contains(&index) { 16 } else { size };
                    addresses.push(Address {
                        parameter,
                        buffer: view.buffer,
                        offset,
                        mask: aligned as u64 - 1,
                    });
                    0
                }
                ArgValue::Int { value, .. } => *value as u64,
                ArgValue::Float(value) => u64::from((*value as f32).to_bits()),
                ArgValue::Const(_) => {
                    return Err(Failure::call(format!("`{}` is compiled in", arg.name)));
                }
            };
            values.push(UnsafeCell::new(value));
        }
        values.extend((0..kernel.scratch).map(|_| UnsafeCell::new(0)));
        let values = values.into_boxed_slice();
        let pointers = values.iter().map(|value| value.get().cast()).collect();
        Ok(CudaLaunch {
            kernel: launch.kernel.clone(),
            function: driver.function(module, &name, kernel.shared as c_int)?,
            grid: launch.grid,
            threads: kernel.num_warps * WARP,
            shared: kernel.shared,
            pointers,
            _values: values,
            addresses: addresses.into_boxed_slice(),
        })
    }

    #[inline]
    fn queue(&self, driver: &Driver, buffers: &[u64], stream: Stream) -> Result<(), Failure> {
        for address in &self.addresses {
            let value = buffers[address.buffer].wrapping_add_signed(address.offset);
            if value & address.mask != 0 {
                return Err(Failure::call(format!(
                    "kernel `{}` was compiled for addresses divisible by {}, not {value:#x}",
                    self.kernel,
                    address.mask + 1
                )));
            }
            // SAFETY: the pointer leads to this launch's own word, an `UnsafeCell` that only the holder of the plan's turn
            // touches.
            unsafe { self.pointers[address.parameter].cast::<u64>().write(value) };
        }
        let [x, y, z] = self.grid;
        // SAFETY: the function belongs to a loaded module; there is one pointer for each of its parameters, each to a word at
        // least as wide as the parameter. The driver copies the parameters before it returns and does not write them.
        let code = unsafe {
            (driver.functions.launch)(
                self.function,
                x,
                y,
                z,
                self.threads,
                1,
                1,
                self.shared,
                stream,
                self.pointers.as_ptr().cast_mut(),
                std::ptr::null_mut(),
            )
        };
        if code == 0 {
            return Ok(());
        }
        driver.check(&format!("launching `{}`", self.kernel), code)
    }
}

/// One cubin among all: an ELF file that is as long as it says.
fn cubin(cubins: &[u8], (offset, length): (usize, usize)) -> Result<&[u8], Failure> {
    let cubin = offset.checked_add(length).and_then(|end| cubins.get(offset..end));
    match cubin {
        Some(cubin) if cubin.len() >= 64 && cubin.starts_with(b"\x7fELF") => Ok(cubin),
        Some(_) => Err(Failure::call("a cubin is an ELF file, and this is none")),
        None => Err(Failure::call(format!(
            "a cubin at {offset} of {length} bytes, but there are {} bytes",
            cubins.len()
        ))),
    }
}
