//! What a plan asks of the driver, seen by a driver that writes the calls down.

use super::driver::{Code, Function, Functions, Module, Stream};
use super::{CudaPlan, Driver};
use crate::request;
use passnet_graph::syntax::Source;
use passnet_kernel::fixture::Fixture;
use serde_json::json;
use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

thread_local! {
    static CALLS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn note(call: String) -> Code {
    CALLS.with(|calls| calls.borrow_mut().push(call));
    0
}

fn calls() -> Vec<String> {
    CALLS.with(|calls| std::mem::take(&mut *calls.borrow_mut()))
}

extern "C" fn init(_: c_uint) -> Code {
    0
}
/// # Safety
/// `to` points to room for a pointer.
unsafe extern "C" fn context(to: *mut *mut c_void) -> Code {
    // SAFETY: the caller passes a place for one pointer.
    unsafe { *to = std::ptr::without_provenance_mut(1) };
    0
}
/// # Safety
/// `to` points to room for a pointer.
unsafe extern "C" fn text(_: Code, to: *mut *const c_char) -> Code {
    // SAFETY: the caller passes a place for one pointer.
    unsafe { *to = c"out of luck".as_ptr() };
    0
}
/// # Safety
/// `to` points to room for a pointer.
unsafe extern "C" fn load(to: *mut Module, _: *const c_void) -> Code {
    // SAFETY: the caller passes a place for one pointer.
    unsafe { *to = std::ptr::without_provenance_mut(2) };
    note("load".into())
}
/// # Safety
/// None: the type asks for it.
unsafe extern "C" fn unload(_: Module) -> Code {
    note("unload".into())
}
/// # Safety
/// `to` points to room for a pointer, `name` to a terminated text.
unsafe extern "C" fn function(to: *mut Function, _: Module, name: *const c_char) -> Code {
    // SAFETY: the caller passes a place for one pointer, and a terminated name.
    unsafe {
        *to = std::ptr::without_provenance_mut(3);
        note(format!("function {:?}", CStr::from_ptr(name)))
    }
}
/// # Safety
/// None: the type asks for it.
unsafe extern "C" fn attribute(_: Function, attribute: c_int, value: c_int) -> Code {
    note(format!("attribute {attribute} = {value}"))
}
/// # Safety
/// `parameters` points to six pointers to words.
#[rustfmt::skip]
unsafe extern "C" fn launch(
    _: Function, x: c_uint, y: c_uint, z: c_uint, tx: c_uint, ty: c_uint, tz: c_uint, shared: c_uint, stream: Stream,
    parameters: *mut *mut c_void, _: *mut *mut c_void,
) -> Code {
    // The kernel of these tests takes two pointers, an int, a float and two scratch pointers.
    // SAFETY: as many words.
    let words: Vec<u64> = (0..6).map(|i| unsafe { *(*parameters.add(i)).cast::<u64>() }).collect();
    note(format!("launch {x},{y},{z} {tx},{ty},{tz} {shared} on {:?}: {words:x?}", stream.addr()))
}
/// # Safety
/// None: the type asks for it.
unsafe extern "C" fn set_bytes(at: u64, value: u8, count: usize, _: Stream) -> Code {
    note(format!("bytes {at:x} = {value:x} x {count}"))
}
/// # Safety
/// None: the type asks for it.
unsafe extern "C" fn set_halves(at: u64, value: u16, count: usize, _: Stream) -> Code {
    note(format!("halves {at:x} = {value:x} x {count}"))
}
/// # Safety
/// None: the type asks for it.
unsafe extern "C" fn set_words(at: u64, value: c_uint, count: usize, _: Stream) -> Code {
    note(format!("words {at:x} = {value:x} x {count}"))
}
/// # Safety
/// None: the type asks for it.
unsafe extern "C" fn set_rows(
    at: u64,
    pitch: usize,
    value: c_uint,
    width: usize,
    rows: usize,
    _: Stream,
) -> Code {
    note(format!("rows {at:x} by {pitch} = {value:x} x {width} x {rows}"))
}
/// # Safety
/// None: the type asks for it.
unsafe extern "C" fn upload(at: u64, _: *const c_void, bytes: usize, _: Stream) -> Code {
    note(format!("upload {at:x} {bytes}"))
}

fn driver() -> &'static Driver {
    Box::leak(Box::new(Driver::with_functions(Functions {
        init,
        current_context: context,
        error_name: text,
        error_text: text,
        load_module: load,
        unload_module: unload,
        get_function: function,
        set_attribute: attribute,
        launch,
        set_bytes,
        set_halves,
        set_words,
        set_word_rows: set_rows,
        upload,
    })))
}

const SOURCE: &str = "\
# wrapper: run
# input: x float32 [4, 16] normal
import torch
import triton
import triton.language as tl

@triton.jit
def scale(x_ptr, out_ptr, one, n, factor, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * factor * one, mask=i < n)

def run(x):
    out = torch.ones((16,), device=x.device)
    flags = torch.full((3,), True, dtype=torch.bool, device=x.device)
    halves = torch.full((3,), 1.0, dtype=torch.float16, device=x.device)
    longs = torch.full((3,), 5, dtype=torch.int64, device=x.device)
    zeros = torch.zeros((3,), dtype=torch.int64, device=x.device)
    scale[(1,)](x[1], out, 1, 16, 0.5, BLOCK=16)
    out.zero_()
    scale[(1,)](x[2], out, 1, 16, 2.0, BLOCK=16)
    return out, flags, halves, longs, zeros
";

fn kernel() -> serde_json::Value {
    json!({ "name": "scale", "offset": 8, "length": 64, "shared": 50_000, "num_warps": 4,
            "parameters": [0, 1, 3, 4], "scratch": 2, "aligned": [0, 1] })
}

fn plan(kernels: serde_json::Value) -> Result<CudaPlan, String> {
    let plan = Fixture::new(Source::new("scale.py", SOURCE)).unwrap().plan;
    let request = json!({ "plan": plan, "kernels": kernels }).to_string();
    let mut cubins = [0u8; 72];
    cubins[8..12].copy_from_slice(b"\x7fELF");
    let request = request::read(request.as_bytes()).unwrap();
    CudaPlan::new(driver(), request, &cubins).map_err(|failure| failure.to_string())
}

#[test]
fn a_call_patches_addresses_fills_buffers_and_launches() {
    let plan = plan(json!([kernel(), kernel()])).unwrap();
    assert_eq!(
        calls(),
        [
            "load",
            "function \"scale\"",
            "attribute 8 = 50000",
            "function \"scale\"",
            "attribute 8 = 50000"
        ]
    );
    let addresses = [0x1000, 0x2000, 0x3000, 0x4000, 0x5000, 0x6000];
    plan.run(&addresses, 0..1, 7).unwrap();
    assert_eq!(
        calls(),
        [
            "words 2000 = 3f800000 x 16",
            "bytes 3000 = 1 x 3",
            "halves 4000 = 3c00 x 3",
            "rows 5000 by 8 = 5 x 1 x 3",
            "rows 5004 by 8 = 0 x 1 x 3",
            "words 6000 = 0 x 6",
            "launch 1,1,1 128,1,1 50000 on 7: [1040, 2000, 10, 3f000000, 0, 0]",
        ]
    );
    // The second range begins after the fill that the caller does; other addresses are patched in.
    let addresses = [0x1100, 0x2200, 0x3000, 0x4000, 0x5000, 0x6000];
    plan.run(&addresses, 2..3, 0).unwrap();
    assert_eq!(calls(), ["launch 1,1,1 128,1,1 50000 on 0: [1180, 2200, 10, 40000000, 0, 0]"]);
    drop(plan);
    assert_eq!(calls(), ["unload"]);
}

#[test]
fn what_the_kernels_were_not_compiled_for_is_refused() {
    let plan = plan(json!([kernel(), kernel()])).unwrap();
    let refused =
        |addresses: [u64; 6], steps| plan.run(&addresses, steps, 0).unwrap_err().to_string();
    let text = refused([0x1008, 0x2000, 1, 1, 1, 1], 2..3);
    assert!(text.contains("divisible by 16"), "{text}");
    let text = refused([0x1000, 0, 1, 1, 1, 1], 0..1);
    assert!(text.contains("no address"), "{text}");
    let text = refused([0x1000, 0x2000, 1, 1, 1, 1], 1..3);
    assert!(text.contains("step 1 is a fill"), "{text}");
}

#[test]
fn bad_kernels_are_refused() {
    let broken = |key: &str, value: serde_json::Value| {
        let mut kernel = kernel();
        kernel[key] = value;
        plan(json!([kernel, kernel])).unwrap_err()
    };
    assert!(plan(json!([kernel()])).unwrap_err().contains("more launches"));
    assert!(plan(json!([kernel(), kernel(), kernel()])).unwrap_err().contains("fewer launches"));
    assert!(broken("offset", json!(u64::MAX)).contains("there are 72 bytes"));
    assert!(broken("offset", json!(4)).contains("ELF"));
    assert!(broken("length", json!(65)).contains("there are 72 bytes"));
    assert!(broken("num_warps", json!(3)).contains("out of range"));
    assert!(broken("num_warps", json!(0)).contains("out of range"));
    assert!(broken("shared", json!(1 << 30)).contains("out of range"));
    assert!(broken("parameters", json!([9])).contains("no argument 9"));
    assert!(broken("parameters", json!([5])).contains("compiled in"));
    assert!(broken("name", json!("a\0b")).contains("zero byte"));
}

#[test]
fn one_call_at_a_time() {
    let plan = plan(json!([kernel(), kernel()])).unwrap();
    let turn = super::Turn::take(&plan.busy).unwrap();
    let refused = plan.run(&[0x1000; 6], 2..3, 0).unwrap_err().to_string();
    assert!(refused.contains("another thread"), "{refused}");
    drop(turn);
    plan.run(&[0x1000; 6], 2..3, 0).unwrap();
}
