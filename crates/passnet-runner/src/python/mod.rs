//! Calls straight from Python: no conversion of arguments, no Python between a graph and the launch of its kernel.
//!
//! `pn_python` tells this library once what it must know about the process; `pn_call_new` makes a Python function for a
//! replaced node, `pn_call_add` gives it a plan. Load the library with `ctypes.PyDLL` for these: the interpreter's lock
//! stays held. On systems without `dlopen(NULL)` there is no such module.

mod api;
mod call;

pub use api::{Object, Ref};
pub use call::Call;

use crate::failure::Failure;
use crate::{Plan, bytes};
use api::{Api, FASTCALL, MethodDef, index};
use std::ffi::{CStr, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// More bytes than what Python says about itself or about a call.
const MAX_TEXT: usize = 1 << 24;

/// The name of the capsules that hold calls.
const CAPSULE: &CStr = c"passnet_runner.call";

static ENTRY: MethodDef = MethodDef {
    name: c"passnet_plan".as_ptr(),
    function: entry,
    flags: FASTCALL,
    doc: c"Replays a launch plan on its arguments.".as_ptr(),
};

/// Says what calls must know: JSON with the place of the C++ tensor in a Python tensor (`tensor_offset`) and the
/// addresses of PyTorch's C functions (`get_data_ptr`, …), then `torch.Tensor` and the exception to raise. 0 is success.
///
/// # Safety
/// The interpreter's lock is held; `json` points to `len` bytes; the objects live; the addresses are right.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pn_python(json: *const u8, len: usize, tensor: Ref, error: Ref) -> i32 {
    code_of(|| {
        // SAFETY: the caller's promise.
        unsafe {
            Api::set_up(bytes("the description of PyTorch", (json, len), MAX_TEXT)?, tensor, error)
        }
    })
}

/// Makes a Python function that knows no plan yet: it calls `slow`. `handle` gets what the other functions take, valid as
/// long as the function lives. Null where that fails.
///
/// # Safety
/// The interpreter's lock is held, `slow` lives, and `handle` points to room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pn_call_new(slow: Ref, handle: *mut *const Call) -> Ref {
    let make = || {
        // SAFETY: the caller's promise.
        let call = Box::into_raw(Box::new(unsafe { Call::new(slow)? }));
        let api = Api::get()?;
        // SAFETY: the capsule owns the call from here on; the function owns the capsule.
        unsafe {
            let capsule = (api.capsule_new)(call.cast::<c_void>(), CAPSULE.as_ptr(), Some(forget));
            if capsule.is_null() {
                drop(Box::from_raw(call));
                return Err(Failure::call("Python has no memory for a call"));
            }
            let function = (api.function_new)(&ENTRY, capsule, std::ptr::null_mut());
            (api.decref)(capsule);
            if !function.is_null() && !handle.is_null() {
                *handle = call;
            }
            Ok(function)
        }
    };
    match catch_unwind(AssertUnwindSafe(make)) {
        Ok(Ok(function)) => function,
        Ok(Err(failure)) => {
            failure.record();
            std::ptr::null_mut()
        }
        Err(panic) => {
            Failure::panic(&*panic).record();
            std::ptr::null_mut()
        }
    }
}

/// Gives a call the plan for arguments that look like `arguments` (a tuple). `json` says which argument each buffer is
/// (`buffers`, null for a fresh one), which buffers are results (`returns`, `is_sequence`) and
/// which of these are views (`views`), how many `steps` the plan has
/// and on which GPU (`device`, null for the CPU). `fresh` has a pair (function, arguments) for every fresh buffer,
/// then one for every view, whose function takes the buffer's tensor first.
///
/// # Safety
/// The interpreter's lock is held; the call lives; the plan lives as long as the call; the objects are tuples.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pn_call_add(
    call: *const Call,
    plan: *const Plan,
    json: *const u8,
    len: usize,
    arguments: Ref,
    fresh: Ref,
) -> i32 {
    code_of(|| {
        // SAFETY: the caller's promise.
        let (call, json) =
            unsafe { (known(call)?, bytes("the layout of a call", (json, len), MAX_TEXT)?) };
        if plan.is_null() || arguments.is_null() || fresh.is_null() {
            return Err(Failure::call("the plan or its arguments are null"));
        }
        let layout = serde_json::from_slice(json)
            .map_err(|error| Failure::call(format!("the layout of a call: {error}")))?;
        // SAFETY: as above.
        unsafe { call.add(plan, layout, arguments, fresh) }
    })
}

/// Calls the plan that fits `arguments` (a tuple) `repeats` times, dropping results. `nanoseconds` gets three sums: looking
/// at the arguments, allocating, launching.
///
/// # Safety
/// The interpreter's lock is held, the call lives, and `nanoseconds` points to room for three numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pn_call_measure(
    call: *const Call,
    arguments: Ref,
    repeats: usize,
    nanoseconds: *mut u64,
) -> i32 {
    code_of(|| {
        if nanoseconds.is_null() || arguments.is_null() {
            return Err(Failure::call("the arguments or the place for results are null"));
        }
        // SAFETY: the caller's promise.
        unsafe {
            let sums = known(call)?.measure(arguments, repeats)?;
            nanoseconds.copy_from_nonoverlapping(sums.as_ptr(), sums.len());
        }
        Ok(())
    })
}

/// # Safety
/// Null, or a living call.
unsafe fn known<'a>(call: *const Call) -> Result<&'a Call, Failure> {
    // SAFETY: the caller's promise.
    unsafe { call.as_ref() }.ok_or_else(|| Failure::call("the call is null"))
}

fn code_of(work: impl FnOnce() -> Result<(), Failure>) -> i32 {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => 0,
        Ok(Err(failure)) => failure.record(),
        Err(panic) => Failure::panic(&*panic).record(),
    }
}

/// What Python calls. The capsule is the function's own; arguments are borrowed.
///
/// # Safety
/// CPython calls it: with the capsule of the function and `count` living objects, its lock held.
unsafe extern "C" fn entry(capsule: Ref, arguments: *const Ref, count: isize) -> Ref {
    let Ok(api) = Api::get() else { return std::ptr::null_mut() };
    let work = || {
        // SAFETY: CPython passes the capsule that `pn_call_new` made and `count` living objects, and holds its lock.
        unsafe {
            let call = (api.capsule_get)(capsule, CAPSULE.as_ptr()).cast::<Call>();
            let arguments = match index(count) {
                Some(count) if count > 0 => std::slice::from_raw_parts(arguments, count),
                _ => &[],
            };
            // Null here means that Python has raised already.
            call.as_ref().map_or(std::ptr::null_mut(), |call| call.run(arguments))
        }
    };
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        // SAFETY: the lock is held.
        unsafe { api.raise(&Failure::panic(&*panic).to_string()) };
        std::ptr::null_mut()
    })
}

/// The capsule is gone, and with it the call.
///
/// # Safety
/// CPython calls it: with the capsule that dies, its lock held.
unsafe extern "C" fn forget(capsule: Ref) {
    let Ok(api) = Api::get() else { return };
    // SAFETY: the pointer that `pn_call_new` put there; nobody can call the function any more.
    unsafe {
        let call = (api.capsule_get)(capsule, CAPSULE.as_ptr()).cast::<Call>();
        if !call.is_null() {
            drop(Box::from_raw(call));
        }
    }
}
