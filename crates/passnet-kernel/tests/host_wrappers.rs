//! Host wrappers mean what Python means by them: each statement here holds in CPython, with `x` a tensor of 64 elements.

use passnet_graph::syntax::Source;
use passnet_graph::{DType, Device};
use passnet_kernel::ModuleSet;
use passnet_kernel::plan::{HostArg, PlanLimits, TensorSpec, plan};

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
        "first, *rest = (1, 2, 3)\nassert first == 1 and rest == [2, 3]",
        "total = 0\nfor i, n in enumerate([5, 7]):\n    total += i * n\nassert total == 7",
    ] {
        let body: String = statement.lines().map(|line| format!("    {line}\n")).collect();
        let text = format!("import torch\nimport triton\n\ndef run(x):\n{body}    return x\n");
        let source = Source::new("pass.py", &*text);
        let modules = ModuleSet::new(vec![("pass".into(), source)]).unwrap();
        let x = HostArg::Tensor(TensorSpec::contiguous(&[64], DType::Float32, Device::CPU));
        let planned = plan(&modules, "run", &[x], PlanLimits::default());
        assert!(planned.is_ok(), "{statement}\n{}", planned.unwrap_err());
    }
}
