//! Launch plans replayed behind a C interface, for a Python process that owns the tensors.
//!
//! A plan is made once (`pn_plan_cpu`, `pn_plan_cuda`), run any number of times on the addresses of its buffers
//! (`pn_plan_run`), and freed (`pn_plan_free`). These functions allocate no tensors, choose no streams and know no Python;
//! what does is in `python`, for calls that must cost next to nothing.
//!
//! Failures are negative codes or null; `pn_error` gives the calling thread the text of its last one. Panics stop here.
//!
//! ```
//! // A plan that cannot be read is a null pointer, and says why.
//! let json = b"{";
//! // SAFETY: the pointer and the length are those of one slice.
//! let plan = unsafe { passnet_runner::pn_plan_cpu(json.as_ptr(), json.len()) };
//! assert!(plan.is_null());
//! let mut text = [0u8; 256];
//! // SAFETY: likewise.
//! let length = unsafe { passnet_runner::pn_error(text.as_mut_ptr(), text.len()) };
//! assert!(length > 0);
//! ```

#![warn(missing_docs)]

mod cpu;
mod cuda;
mod failure;
#[cfg(unix)]
pub mod python;
mod request;

pub use failure::{BAD_CALL, CUDA_FAILED, KERNEL_FAILED, OUR_BUG};

use failure::Failure;
use passnet_kernel::plan::MAX_BUFFERS;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Changes whenever a function's meaning or the JSON it reads does.
const VERSION: u32 = 2;

/// A plan ready to run; opaque to callers.
#[derive(Debug)]
pub struct Plan(Target);

#[derive(Debug)]
enum Target {
    Cpu(cpu::CpuPlan),
    Cuda(cuda::CudaPlan),
}

impl Plan {
    fn run(
        &self,
        buffers: &[u64],
        first_step: usize,
        last_step: usize,
        stream: u64,
    ) -> Result<(), Failure> {
        let (specs, steps) = match &self.0 {
            Target::Cpu(plan) => (plan.buffers(), plan.steps()),
            Target::Cuda(plan) => (plan.buffers(), plan.steps()),
        };
        if buffers.len() != specs {
            return Err(Failure::call(format!(
                "{} buffer addresses for a plan with {specs} buffers",
                buffers.len()
            )));
        }
        if first_step > last_step || last_step > steps {
            return Err(Failure::call(format!(
                "steps {first_step} to {last_step} of a plan with {steps} steps"
            )));
        }
        match &self.0 {
            Target::Cpu(plan) => plan.run(buffers, first_step..last_step),
            Target::Cuda(plan) => plan.run(buffers, first_step..last_step, stream),
        }
    }
}

/// The version of this interface.
#[unsafe(no_mangle)]
pub extern "C" fn pn_version() -> u32 {
    VERSION
}

/// Makes a plan that runs on the CPU from `{"plan": LaunchPlan, "kernels": [tile IR text, …one per launch]}`.
/// Null where that fails.
///
/// # Safety
/// `json` must point to `len` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pn_plan_cpu(json: *const u8, len: usize) -> *mut Plan {
    hand_out(|| {
        // SAFETY: the caller's promise.
        let json = unsafe { bytes("the plan's JSON", (json, len), MAX_JSON) }?;
        Ok(Plan(Target::Cpu(cpu::CpuPlan::new(request::read(json)?)?)))
    })
}

/// Makes a plan that runs on the current CUDA context, from
/// `{"plan": LaunchPlan, "kernels": [{"name", "offset", "length", "shared", "num_warps", "parameters", "scratch"}, …]}`
/// (one kernel per launch; its cubin is `cubins[offset..offset + length]`). Null where that fails.
///
/// # Safety
/// `json` must point to `len` readable bytes, `cubins` to `cubins_len`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pn_plan_cuda(
    json: *const u8,
    len: usize,
    cubins: *const u8,
    cubins_len: usize,
) -> *mut Plan {
    hand_out(|| {
        // SAFETY: the caller's promise.
        let json = unsafe { bytes("the plan's JSON", (json, len), MAX_JSON) }?;
        // SAFETY: as above.
        let cubins = unsafe { bytes("the cubins", (cubins, cubins_len), MAX_CUBINS) }?;
        let request = request::read(json)?;
        Ok(Plan(Target::Cuda(cuda::CudaPlan::new(
            cuda::Driver::of_this_machine()?,
            request,
            cubins,
        )?)))
    })
}

/// Runs the steps `first_step..last_step` on buffers given by address, in the order of the plan's buffers. Where
/// `first_step` is 0, the buffers that the plan fills itself are filled first. On CUDA the work is queued on `stream`
/// (a `CUstream`; 0 is the default stream); on the CPU it is done when the call returns.
/// 0 is success, anything else a failure.
///
/// # Safety
/// `plan` must come from this library and not be freed yet. `buffers` must point to `count` addresses; each buffer is
/// as long as the plan says and stays valid until its work is done, and nobody else touches it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pn_plan_run(
    plan: *const Plan,
    buffers: *const u64,
    count: usize,
    first_step: usize,
    last_step: usize,
    stream: u64,
) -> i32 {
    // SAFETY: null or a live plan, as the caller promises; plans are shared between threads without harm.
    let Some(plan) = (unsafe { plan.as_ref() }) else {
        return Failure::call("the plan is null").record();
    };
    if (buffers.is_null() && count > 0) || !buffers.is_aligned() || count > MAX_BUFFERS {
        return Failure::call("the buffer addresses are null, unaligned or too many").record();
    }
    let addresses = match count {
        0 => &[][..],
        // SAFETY: not null, aligned, and `count` addresses long by the caller's promise.
        _ => unsafe { std::slice::from_raw_parts(buffers, count) },
    };
    let run = || plan.run(addresses, first_step, last_step, stream);
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => 0,
        Ok(Err(failure)) => failure.record(),
        Err(panic) => Failure::panic(&*panic).record(),
    }
}

/// Frees a plan; null is allowed.
///
/// # Safety
/// `plan` must come from this library, is freed once, and nobody runs it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pn_plan_free(plan: *mut Plan) {
    if plan.is_null() {
        return;
    }
    // SAFETY: made by `Box::into_raw` in `hand_out`, and handed back once.
    let plan = unsafe { Box::from_raw(plan) };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(plan))) {
        Failure::panic(&*panic).record();
    }
}

/// Writes the text of this thread's last failure (UTF-8, no terminator) and returns its whole length in bytes, which
/// may be more than `len`.
///
/// # Safety
/// `buffer` must point to `len` writable bytes, or be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pn_error(buffer: *mut u8, len: usize) -> usize {
    failure::with_last(|text| {
        if !buffer.is_null() {
            // SAFETY: at most `len` bytes, as the caller promises; the text is ours and apart.
            unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), buffer, text.len().min(len)) };
        }
        text.len()
    })
}

/// More bytes than the text of any plan has.
const MAX_JSON: usize = 1 << 28;
/// More bytes than all cubins of a plan have.
const MAX_CUBINS: usize = 1 << 31;

/// # Safety
/// `start` must point to `len` readable bytes that stay as they are for `'a`.
unsafe fn bytes<'a>(
    what: &str,
    (start, len): (*const u8, usize),
    most: usize,
) -> Result<&'a [u8], Failure> {
    if start.is_null() || len > most {
        return Err(Failure::call(format!("{what}: null or longer than {most} bytes")));
    }
    // SAFETY: not null, and `len` bytes by the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(start, len) })
}

fn hand_out(make: impl FnOnce() -> Result<Plan, Failure>) -> *mut Plan {
    let failure = match catch_unwind(AssertUnwindSafe(make)) {
        Ok(Ok(plan)) => return Box::into_raw(Box::new(plan)),
        Ok(Err(failure)) => failure,
        Err(panic) => Failure::panic(&*panic),
    };
    failure.record();
    std::ptr::null_mut()
}
