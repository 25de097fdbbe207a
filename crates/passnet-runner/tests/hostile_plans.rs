//! Damaged plans through the C interface: each is refused with the field that is wrong, or runs inside its buffers.

use passnet_graph::syntax::Source;
use passnet_kernel::fixture::Fixture;
use passnet_kernel::plan::{LaunchPlan, Step};
use passnet_runner::{
    BAD_CALL, KERNEL_FAILED, Plan, pn_error, pn_plan_cpu, pn_plan_free, pn_plan_run,
};
use serde_json::{Value, json};
use std::path::Path;

/// Kernels whose plans have every kind of field: launches, copies, fills, several results, floats, offsets.
const SEEDS: [&str; 7] = [
    "relu.py",
    "contiguous_copy.py",
    "view_offsets.py",
    "two_outputs.py",
    "atomic_add_sum.py",
    "layer_norm.py",
    "heuristics.py",
];
/// Bytes around a buffer, and what they hold.
const MARGIN: usize = 4096;
const CANARY: u8 = 0xa5;

fn request(name: &str) -> Value {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../passnet-kernel/tests/kernels").join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    let prepared = Fixture::new(Source::new(name, text)).unwrap().prepare().unwrap();
    let kernels: Vec<String> = prepared.functions().map(ToString::to_string).collect();
    json!({ "plan": prepared.plan(), "kernels": kernels })
}

fn last_error() -> String {
    let mut text = vec![0u8; 1 << 16];
    // SAFETY: as long as it says.
    let length = unsafe { pn_error(text.as_mut_ptr(), text.len()) };
    text.truncate(length);
    String::from_utf8(text).unwrap()
}

struct Handle(*mut Plan);

impl Handle {
    fn new(request: &Value) -> Result<Handle, String> {
        let json = request.to_string();
        // SAFETY: a string is as long as it says.
        let plan = unsafe { pn_plan_cpu(json.as_ptr(), json.len()) };
        if plan.is_null() { Err(last_error()) } else { Ok(Handle(plan)) }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: made by `pn_plan_cpu`, freed once.
        unsafe { pn_plan_free(self.0) };
    }
}

fn refusal(request: &Value) -> String {
    match Handle::new(request) {
        Ok(_) => panic!("accepted: {request}"),
        Err(text) => text,
    }
}

/// Runs all steps on buffers with margins; nothing beside them changes.
fn run(plan: &Handle, read: &LaunchPlan, what: &str) -> i32 {
    let mut buffers: Vec<Vec<u64>> = Vec::new();
    for spec in &read.buffers {
        let words = (spec.bytes() as usize).div_ceil(8);
        let margin = MARGIN / 8;
        let mut buffer = vec![u64::from_ne_bytes([CANARY; 8]); words + 2 * margin];
        buffer[margin..margin + words].fill(0);
        buffers.push(buffer);
    }
    let inside: Vec<u64> = buffers
        .iter_mut()
        .map(|buffer| buffer[MARGIN / 8..].as_mut_ptr().expose_provenance() as u64)
        .collect();
    let steps = read.steps.len();
    // SAFETY: a live plan, and for each of its buffers an address with as many bytes as it says.
    let code = unsafe { pn_plan_run(plan.0, inside.as_ptr(), inside.len(), 0, steps, 0) };
    for (buffer, spec) in buffers.iter().zip(&read.buffers) {
        let bytes: Vec<u8> = buffer.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let (before, rest) = bytes.split_at(MARGIN);
        let behind = &rest[(spec.bytes() as usize).next_multiple_of(8)..];
        let mut beside = before.iter().chain(behind);
        assert!(beside.all(|byte| *byte == CANARY), "{what}: wrote beside a buffer");
    }
    code
}

/// Every leaf and every list of a value, as JSON pointers.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            found.push(at.to_string());
            for (index, item) in items.iter().enumerate() {
                places(item, &format!("{at}/{index}"), found);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                places(field, &format!("{at}/{name}"), found);
            }
        }
        _ => found.push(at.to_string()),
    }
}

/// Whether running what was accepted is little work.
fn is_small(read: &LaunchPlan, place: &str) -> bool {
    let bytes = read.buffers.iter().fold(0u64, |n, spec| n.saturating_add(spec.bytes()));
    let programs = read.steps.iter().fold(0u64, |n, step| match step {
        Step::Launch(launch) => n.saturating_add(launch.programs()),
        _ => n,
    });
    // Integer arguments may bound loops.
    bytes < 1 << 24 && programs < 1 << 12 && !place.contains("/int/")
}

#[test]
fn damaged_fields_are_refused_or_harmless() {
    let damage = [
        json!(0),
        json!(-1),
        json!(-4),
        json!(7),
        json!(1 << 20),
        json!(i64::from(i32::MAX) + 1),
        json!(1i64 << 40),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(1e300),
        json!(null),
        json!(true),
        json!("int64"),
        json!("complex128"),
        json!([]),
        json!([-1, -1, -1]),
        json!({}),
    ];
    let (mut refused, mut ran) = (0, 0);
    for name in SEEDS {
        let whole = request(name);
        assert!(Handle::new(&whole).is_ok(), "{name}: {}", last_error());
        let mut found = Vec::new();
        places(&whole["plan"], "/plan", &mut found);
        for place in found {
            for value in &damage {
                let mut damaged = whole.clone();
                *damaged.pointer_mut(&place).unwrap() = value.clone();
                let what = format!("{name}: {place} = {value}");
                let plan = match Handle::new(&damaged) {
                    Ok(plan) => plan,
                    Err(text) => {
                        assert!(!text.is_empty() && !text.contains("bug in"), "{what}: {text}");
                        refused += 1;
                        continue;
                    }
                };
                let read: LaunchPlan = serde_json::from_value(damaged["plan"].clone()).unwrap();
                if is_small(&read, &place) {
                    let code = run(&plan, &read, &what);
                    assert!([0, BAD_CALL, KERNEL_FAILED].contains(&code), "{what}: {code}");
                    ran += usize::from(code == 0);
                }
            }
        }
    }
    assert!(refused > 1000 && ran > 100, "{refused} {ran}");
}

/// Each refusal names the field.
#[test]
fn the_wrong_field_is_named() {
    let copy = request("contiguous_copy.py");
    let steps = copy["plan"]["steps"].as_array().unwrap();
    let at = steps.iter().position(|step| step.get("copy").is_some()).unwrap();
    let launch = steps.iter().position(|step| step.get("launch").is_some()).unwrap();
    let arg = "args/0/value/buffer";
    for (place, value, field) in [
        (format!("steps/{at}/copy/to/stride/0"), json!(-1), "copy.to.stride[0]: -1 is negative"),
        (format!("steps/{at}/copy/from/stride/0"), json!(-4096), "copy.from.stride[0]"),
        (format!("steps/{at}/copy/from/offset"), json!(-1), "copy.from.offset"),
        (format!("steps/{at}/copy/from/offset"), json!(1 << 30), "copy.from: offset"),
        (format!("steps/{at}/copy/to/shape/0"), json!(1), "copy.to.shape: [1"),
        (format!("steps/{at}/copy/to/dtype"), json!("complex64"), "copy.to: offset"),
        (format!("steps/{at}/copy/to/buffer"), json!(99), "copy.to.buffer: 99 of"),
        (format!("steps/{launch}/launch/{arg}/stride/0"), json!(-1), "value.buffer.stride[0]"),
        (format!("steps/{launch}/launch/{arg}/offset"), json!(i64::MIN), "value.buffer.offset"),
        (format!("steps/{launch}/launch/{arg}/dtype"), json!("complex64"), "buffer.dtype"),
        (format!("steps/{launch}/launch/grid/1"), json!(65536), "launch.grid[1]: 65536"),
        (format!("steps/{launch}/launch/grid/0"), json!(0), "launch.grid[0]: 0"),
        (format!("steps/{launch}/launch/num_warps"), json!(1 << 20), "launch.num_warps"),
        (format!("steps/{launch}/launch/config"), json!(3), "launch.config: 3 of 0"),
        ("buffers/0/elements".into(), json!(1u64 << 60), "buffers[0].elements"),
        ("buffers/0/init".into(), json!({ "input": 1u64 << 40 }), "buffers[0].init.input"),
        ("buffers/0/init".into(), json!({ "values": [] }), "buffers[0].init.values: 0 values"),
        ("returns/0/stride/0".into(), json!(-2), "returns[0].stride[0]"),
        ("version".into(), json!(99), "version: 99"),
    ] {
        let mut damaged = copy.clone();
        *damaged["plan"].pointer_mut(&format!("/{place}")).expect(&place) = value;
        let text = refusal(&damaged);
        assert!(text.starts_with("the plan's ") && text.contains(field), "{place}: {text}");
    }
    let mut twice = copy.clone();
    let args = twice["plan"]["steps"][launch]["launch"]["args"].as_array_mut().unwrap();
    args.push(args[0].clone());
    let text = refusal(&twice);
    assert!(text.contains(".name: ") && text.contains("a second time"), "{text}");
}

/// Types and shapes of tile IR on whose agreement the executor relies.
#[test]
fn kernels_that_disagree_with_themselves_are_refused() {
    let mut request = request("relu.py");
    let name = &request["plan"]["steps"][0]["launch"]["args"][0]["name"];
    let param = name.as_str().unwrap().to_string();
    let head = format!("kernel k(%0 {param}: *fp32) {{\n");
    for (body, reason) in [
        // The lanes of this shape are 2^64, which is 0 in 64 bits.
        ("%1: i32 = const[0] @0:1\n%2: i32<2147483648x2147483648x4> = splat %1 @0:1", "legal size"),
        ("%1: i32<8x8> = arange[0] @0:1", "one dimension"),
        ("%1: i32<8> = arange[2147483647] @0:1", "does not fit i32"),
        ("%1: *fp32 = const[0] @0:1", "not pointers"),
        ("%1: *fp32 = neg %0 @0:1", "not pointers"),
        ("%1: fp32 = program_id[0] @0:1", "type fp32 where i32 belongs"),
        ("%1: i64 = const[0] @0:1\nassert[\"no\"] %1 @0:1", "type i64 where i1 belongs"),
        (
            "%1: i1 = const[0] @0:1\n%2: i1<16x16> = splat %1 @0:1\n%3: fp64 = const[0] @0:1\n\
             %4: fp64<16x16> = splat %3 @0:1\n%5: fp64<16x16> = dot %2, %2, %4 @0:1",
            "do not make fp64<16x16>",
        ),
        (
            "%1: fp32 = const[0] @0:1\n%2: fp32<8> = splat %1 @0:1\n%3: fp32<64> = splat %1 @0:1\n\
             %4: fp32, %5: fp32 = reduce_with[0] %2, %3 @0:1 {(%6: fp32, %7: fp32, %8: fp32, %9: fp32)\n\
             yield %6, %7}",
            "shapes differ",
        ),
    ] {
        request["kernels"] = json!([format!("{head}{body}\n}}")]);
        let text = refusal(&request);
        assert!(text.contains(reason), "{body}\n{text}");
    }
    let typed = format!("kernel k(%0 {param}: *fp64) {{\n}}");
    request["kernels"] = json!([typed]);
    let text = refusal(&request);
    assert!(text.contains("no argument of type *fp64"), "{text}");
}

/// Texts cut off anywhere, and texts of any nesting.
#[test]
fn cut_and_nested_texts_are_refused() {
    let whole = request("relu.py").to_string();
    for end in (0..whole.len()).step_by(7).filter(|end| whole.is_char_boundary(*end)) {
        // SAFETY: a string is as long as it says.
        let plan = unsafe { pn_plan_cpu(whole.as_ptr(), end) };
        assert!(plan.is_null(), "{end}");
        assert!(last_error().starts_with("the plan's JSON: "), "{}", last_error());
    }
    let deep = "[".repeat(1 << 20);
    // SAFETY: as above.
    assert!(unsafe { pn_plan_cpu(deep.as_ptr(), deep.len()) }.is_null());
    let mut tuple = json!("none");
    for _ in 0..100 {
        tuple = json!({ "tuple": [tuple] });
    }
    let mut nested = request("relu.py");
    nested["plan"]["steps"][0]["launch"]["args"][0]["value"] = json!({ "const": tuple });
    assert!(!refusal(&nested).contains("bug in"));
}
