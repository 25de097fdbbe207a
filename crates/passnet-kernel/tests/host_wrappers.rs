//! Host wrappers mean what Python means by them: each statement here holds in CPython, with `x` a tensor of 64 elements.

use passnet_graph::syntax::Source;
use passnet_graph::{DType, Device, Diagnostic};
use passnet_kernel::plan::{HostArg, Init, LaunchPlan, PlanLimits, Step, TensorSpec, plan};
use passnet_kernel::{Const, ModuleSet};

const TOP: &str = r#"
import dataclasses
import enum
import math
import torch
import triton
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import ClassVar, NamedTuple

COUNT = 0
SEEN = {}
LAST = [None, None]
LAST_X = None
LAST_OUT = None

class Sizes:
    """Block sizes."""
    BLOCK = 64
    WIDE: int = BLOCK * 2

    @staticmethod
    def warps(n):
        return 4 if n > Sizes.BLOCK else 1

class Small(Sizes):
    BLOCK = 16

@dataclass
class Tuning:
    block: int = 256
    stages: int = 3

    @property
    def bytes(self):
        return self.block * 4

    def grid(self, n):
        return (triton.cdiv(n, self.block),)

@dataclass(frozen=True)
class Frozen:
    size: int = 3

@dataclass
class Table:
    block: int = 1
    blocks: list = field(default_factory=lambda: [1, 2])
    LIMIT: ClassVar[int] = 9

    @classmethod
    def make(cls, block):
        return cls(block)

TUNED = Tuning(block=512)

class Mode(IntEnum):
    FAST = enum.auto()
    EXACT = enum.auto()

class Route(Enum):
    ADD = "add"
    MUL = "mul"

class Pair(NamedTuple):
    first: int
    second: int = 4

if __name__ == "__main__":
    def hidden():
        return 1
    import pytest
    pytest.main()
"#;

#[test]
fn statements_that_hold_in_python_hold_in_wrappers() {
    for statement in [
        "assert [n * n for n in range(4) if n != 2] == [0, 1, 9]",
        "assert len({n % 2 for n in range(4)}) == 2",
        "assert len({1, 1.0, 2}) == 2 and len(set([3, 3])) == 1",
        "assert tuple(a + b for a in (1, 2) for b in (10, 20)) == (11, 21, 12, 22)",
        "assert {n: n + 1 for n in range(3)}[2] == 3",
        "assert sorted([3, 1, 2]) == [1, 2, 3] and list(reversed([1, 2])) == [2, 1]",
        "assert -7 // 2 == -4 and -7 % 2 == 1 and 2 ** 3 == 8",
        "assert x.numel() == 64 and x.stride(0) == 1 and x.element_size() == 4",
        "assert triton.cdiv(65, 16) == 5 and triton.next_power_of_2(65) == 128",
        "assert triton.cdiv(7, -2) == -2 and triton.cdiv(2 ** 62, -2 ** 62 * 2) == 0 and math.gcd(-12, 18) == 6",
        "assert triton.next_power_of_2(0) == 0 and triton.next_power_of_2(-3) == 0",
        "first, *rest = (1, 2, 3)\nassert first == 1 and rest == [2, 3]",
        "total = 0\nfor i, n in enumerate([5, 7]):\n    total += i * n\nassert total == 7",
        // Classes are configuration at the top level of a file.
        "assert Sizes.BLOCK == 64 and Sizes.WIDE == 128 and Sizes.warps(128) == 4",
        "assert Small.BLOCK == 16 and Small.WIDE == 128",
        "assert Tuning().block == 256 and Tuning(8, stages=2).stages == 2",
        "assert Tuning(block=32) == Tuning(32) and Tuning(32) != Tuning(64)",
        "assert TUNED.block == 512 and TUNED.bytes == 2048 and TUNED.grid(1024) == (2,)",
        "assert dataclasses.replace(TUNED, block=4).block == 4 and TUNED.block == 512",
        "assert dataclasses.asdict(Frozen()) == dataclasses.asdict(Frozen(3))",
        "tuning = Tuning()\ntuning.block += 1\nassert tuning.block == 257 and Tuning().block == 256",
        "assert Mode.FAST == 1 and Mode.EXACT.value == 2 and Mode(2) == Mode.EXACT",
        "assert [int(mode) for mode in Mode] == [1, 2] and isinstance(Mode.FAST, Mode)",
        "assert Route.ADD.value == 'add' and Route.ADD is Route('add') and Route.ADD != Route.MUL",
        "assert Pair(3).second == 4 and sum(Pair(3)) == 7 and Pair(1, 2)[1] == 2",
        "a, b = Pair(5, 6)\nassert a == 5 and b == 6",
        "assert Table.make(2).block == 2 and Table.LIMIT == 9 and Table().blocks == [1, 2]",
        // State at the top level is as it is written, in every call.
        "global COUNT\nCOUNT += 1\nassert COUNT == 1",
        "SEEN['n'] = 3\nassert SEEN == SEEN and SEEN['n'] == 3 and len(SEEN) == 1",
        "assert SEEN.setdefault('m', 4) == 4 and SEEN.setdefault('m', 5) == 4",
        // An operation is one, however it is spelled.
        "y = x.view(4, 16)\nassert y.transpose(0, 1).stride() == torch.swapdims(y, 0, 1).stride() == (1, 16)",
        "y = x.reshape(2, -1, 8)\nassert y.permute(2, 0, 1).shape == (8, 2, 4) and torch.flatten(y, 1).shape == (2, 32)",
        // New tensors keep the layout of old ones, unless the call names another.
        "y = x.view(4, 16).t()\nassert torch.empty_like(y).stride() == y.clone().stride() == y.half().stride() == (1, 16)",
        "y = x.view(4, 16).t()\nassert y.contiguous().stride() == (4, 1)",
        "y = x.view(4, 16).t()\nassert y.clone(memory_format=torch.contiguous_format).stride() == (4, 1)",
        "y = x.view(4, 16).t()\nassert y.clone(memory_format=torch.preserve_format).stride() == (1, 16)",
        "y = x.view(1, 4, 4, 4)\nassert torch.empty_like(y, memory_format=torch.channels_last).stride() == (64, 1, 16, 4)",
        "y = x[:20].view(5, 4).t()\nassert y.expand(3, 4, 5).clone().stride() == (20, 1, 4)",
        "assert x.unflatten(0, (8, -1)).t().stride() == (1, 8) and x.unsqueeze(0).squeeze().shape == (64,)",
        "assert [p.shape[0] for p in torch.split(x, 24)] == [24, 24, 16] and len(x.chunk(3)) == 3",
        "assert x.narrow(0, 8, 4).storage_offset() == 8 and torch.select(x, 0, -1).storage_offset() == 63",
        "assert len(x.view(4, 16).unbind(1)) == 16 and x.view(64, 1).expand(64, 3).stride() == (1, 0)",
        "assert torch.broadcast_to(x, (2, 64)).stride() == x.as_strided((2, 64), (0, 1)).stride() == (0, 1)",
        "y = x.view(4, 4, 4)\nassert y.mT.stride() == (16, 1, 4) and y.T.stride() == (1, 4, 16) and y.data.ndim == 3",
        "assert x.half().dtype == torch.float16 and torch.numel(x.long()) == x.nelement() == 64",
        "assert x.new_zeros(2, 3).shape == (2, 3) and torch.full((4,), 1).dtype == torch.int64",
        "assert torch.is_floating_point(x) and not x.is_complex() and torch.broadcast_shapes((4, 1), (3,)) == (4, 3)",
        // Of an address nothing but its alignment can be known; beyond 16 bytes nothing is.
        "assert x.data_ptr() % 16 == 0 and x.data_ptr() & 15 == 0 and x[1:].data_ptr() % 16 == 4",
        "assert x.data_ptr() % 64 != 0 and x[1:].data_ptr() % 4 == 0",
        "assert str(x.dtype).replace('torch.', '') == 'float32'",
    ] {
        let body: String = statement.lines().map(|line| format!("    {line}\n")).collect();
        let text = format!("{TOP}\ndef run(x):\n{body}    return x\n");
        let planned = planned(&text, &[64]);
        assert!(planned.is_ok(), "{statement}\n{}", planned.unwrap_err());
    }
}

fn planned(text: &str, shape: &[i64]) -> Result<LaunchPlan, Diagnostic> {
    let modules = ModuleSet::new(vec![("pass".into(), Source::new("pass.py", text))]).unwrap();
    let x = HostArg::Tensor(TensorSpec::contiguous(shape, DType::Float32, Device::CPU));
    plan(&modules, "run", &[x], PlanLimits::default())
}

/// What a wrapper must not do, and the line that says so. The body starts in the line after `def`.
#[test]
fn what_a_wrapper_must_not_do_is_refused_at_its_line() {
    let first = TOP.lines().count() + 2;
    for (body, line, message) in [
        ("hidden()", 1, "`hidden` is not defined"),
        ("Sizes.BLOCK = 3", 1, "an attribute of a class would outlive the call"),
        ("run.last = x", 1, "an attribute of the function `run` would outlive the call"),
        ("f = Frozen()\nf.size = 4", 2, "cannot be changed: it is frozen"),
        ("Mode.FAST.value.x = 4", 1, "would outlive the call"),
        ("Mode(3)", 1, "3 is no member of this enum"),
        ("Tuning(1, 2, 3)", 1, "too many arguments for `Tuning`"),
        ("Tuning(size=2)", 1, "`Tuning` has no field `size`"),
        ("Sizes.NONE", 1, "class `Sizes` has no attribute `NONE`"),
        // The address itself never becomes a value.
        ("p = x.data_ptr()", 1, "an address is no value in a wrapper"),
        ("SEEN[x.data_ptr()] = 1", 1, "an address is no value in a wrapper"),
        ("x.data_ptr() % 4096 == 0", 1, "an address is no value in a wrapper"),
        ("x.data_ptr() % 48 == 0", 1, "an address is no value in a wrapper"),
        ("x.data_ptr() & 0xFFFFF0 == 0", 1, "an address is no value in a wrapper"),
        ("x.data_ptr() // 16", 1, "an address is no value in a wrapper"),
        ("triton.cdiv(x.numel(), 0)", 1, "division by zero"),
        ("triton.cdiv(-2 ** 62 * 2, -1)", 1, "does not fit in 64 bits"),
        ("math.gcd(-2 ** 62 * 2, 0)", 1, "does not fit in 64 bits"),
        ("x.clone(memory_format=torch.channels_last)", 1, "is no layout of 1 dimensions"),
        ("x.clone(memory_format=3)", 1, "is no memory format"),
        // Nothing of one call is there in the next.
        ("global LAST_X\nLAST_X = x", 2, "`LAST_X` keeps the argument `x` beyond the call"),
        ("if x is LAST[0]:\n    return LAST[1]\nLAST[0] = x", 3, "`LAST` keeps the argument `x`"),
        ("LAST.append((1, x.view(8, 8)))", 1, "`LAST` keeps the argument `x` beyond the call"),
        ("SEEN.setdefault('x', [x])", 1, "`SEEN` keeps the argument `x` beyond the call"),
        ("TUNED.last = {'x': x}", 1, "`TUNED` keeps the argument `x` beyond the call"),
        ("global COUNT\nCOUNT = lambda: x", 2, "`COUNT` keeps the argument `x` beyond the call"),
        (
            "out = torch.empty_like(x)\nSEEN[1] = out\nreturn out.view(8, 8)",
            2,
            "`SEEN` keeps a result",
        ),
        // Views that change the tensor itself, and what reads its elements.
        ("x.t_()", 1, "`.t_()` cannot be called on a tensor in a wrapper"),
        ("x.unsqueeze_(0)", 1, "`.unsqueeze_()` cannot be called on a tensor in a wrapper"),
        ("torch.detach(x)", 1, "`torch.detach` cannot be called in a wrapper"),
        ("torch.relu(x)", 1, "`torch.relu` cannot be called in a wrapper"),
        ("torch.reshape((1, 2), (2,))", 1, "`torch.reshape` needs a tensor, not "),
        ("x.item()", 1, "`.item()` reads tensor data"),
        ("x.numpy()", 1, "`.numpy()` reads tensor data"),
        // Fills.
        ("torch.empty(4, dtype=torch.int8).fill_(300)", 1, "300 does not fit into torch.int8"),
        ("torch.empty(4).fill_('a')", 1, "`fill_` takes a number"),
        ("torch.empty(64).fill_(x)", 1, "`fill_` takes a number"),
    ] {
        let lines: String = body.lines().map(|line| format!("    {line}\n")).collect();
        let text = format!("{TOP}\ndef run(x):\n{lines}    return torch.zeros_like(x)\n");
        let error = planned(&text, &[64]).expect_err(body);
        assert!(error.to_string().contains(message), "{body}\n{error}");
        assert_eq!(error.line, first + line, "{body}\n{error}");
    }
}

/// A workspace may be kept in the text: every call gets a fresh one.
#[test]
fn a_workspace_at_the_top_level_is_made_in_every_call() {
    let body = "    global LAST_OUT\n    if LAST_OUT is None:\n        LAST_OUT = torch.empty(8)\n";
    let plan = planned(&format!("{TOP}\ndef run(x):\n{body}    return x\n"), &[64]).unwrap();
    assert_eq!(plan.buffers.len(), 2);
}

/// `fill_` and `zero_` make a fresh buffer so, and are steps where something was there before.
#[test]
fn fills_become_initial_values_or_steps() {
    let body = "    out = torch.empty_like(x)\n    out.fill_(1.5)\n    part = torch.empty(4)\n    part[:2].zero_()\n";
    let text = format!("{TOP}\ndef run(x):\n{body}    x.zero_()\n    return out, part\n");
    let plan = planned(&text, &[64]).unwrap();
    assert_eq!(plan.buffers[1].init, Init::Fill(Const::Float(1.5)));
    let filled: Vec<(usize, i64)> = plan
        .steps
        .iter()
        .map(|step| match step {
            Step::Fill { view, .. } => (view.buffer, view.numel()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(filled, [(2, 2), (0, 64)], "arguments are written by a step, which the judge sees");
}

#[test]
fn an_empty_input_returns_early() {
    let body = "    if x.numel() == 0:\n        return torch.empty_like(x)\n    raise ValueError('not empty')\n";
    let text = format!("{TOP}\ndef run(x):\n{body}");
    let plan = planned(&text, &[0, 4]).unwrap();
    assert_eq!((plan.steps.len(), plan.returns[0].shape.as_slice()), (0, &[0, 4][..]));
    assert!(planned(&text, &[1, 4]).unwrap_err().to_string().contains("not empty"));
}

/// Classes that need themselves come to an end.
#[test]
fn circles_of_classes_end() {
    for classes in [
        "class A:\n    X = A.X\n",
        "class A(B):\n    X = 1\nclass B(A):\n    Y = 2\n",
        "class A:\n    X = B.X\nclass B:\n    X = A.X\n",
    ] {
        let text = format!("import torch\n{classes}def run(x):\n    A.X\n    return x\n");
        let error = planned(&text, &[64]).unwrap_err().to_string();
        assert!(error.contains("levels deep"), "{classes}\n{error}");
    }
}
