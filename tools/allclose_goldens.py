"""Writes crates/passnet-bench/tests/data/allclose.txt: what torch.allclose says at each tolerance level.

    python tools/allclose_goldens.py > crates/passnet-bench/tests/data/allclose.txt

Each line: dtype, bits of the expected value, bits of the actual value, and the first level at which allclose holds
(`-` for never). Pairs are drawn close to the borders of the ladder, where rounding decides.
"""

import random

import torch

EXPONENTS = {
    torch.float16: (0.6, 1.0, torch.int16),
    torch.bfloat16: (0.3592, 1.0, torch.int16),
    torch.float32: (1.1772, 1.0, torch.int32),
    torch.float64: (1.4, 1.4, torch.int64),
}
LEVELS = range(-10, 6)
SPECIAL = [0.0, -0.0, 1.0, float("inf"), float("-inf"), float("nan"), 65504.0, -65504.0, 1e-8, 3e38]


def tolerance(dtype, t):
    k_r, k_a, _ = EXPONENTS[dtype]
    return float(f"{10 ** (t * k_r):.2e}"), float(f"{10 ** (t * k_a):.2e}")


def first_level(expected, actual):
    right = []
    for t in LEVELS:
        rtol, atol = tolerance(expected.dtype, t)
        right.append(torch.allclose(expected, actual, rtol=rtol, atol=atol))
    first = next((t for t, ok in zip(LEVELS, right) if ok), None)
    # Every looser level must hold too, or one number could not describe the ladder.
    assert all(ok for t, ok in zip(LEVELS, right) if first is not None and t >= first)
    return "-" if first is None else str(first)


def line(dtype, a, b):
    bits = EXPONENTS[dtype][2]
    a, b = torch.tensor([a], dtype=dtype), torch.tensor([b], dtype=dtype)
    width = torch.finfo(dtype).bits // 4
    mask = (1 << (4 * width)) - 1
    hexes = [f"{x.view(bits).item() & mask:0{width}x}" for x in (a, b)]
    return f"{str(dtype)[6:]} {hexes[0]} {hexes[1]} {first_level(a, b)}"


def main():
    random.seed(1)
    lines = []
    for dtype in EXPONENTS:
        for a in SPECIAL:
            for b in SPECIAL:
                lines.append(line(dtype, a, b))
        for _ in range(300):
            b = random.choice([-1, 1]) * 10 ** random.uniform(-8, 5)
            rtol, atol = tolerance(dtype, random.choice(LEVELS))
            allowed = atol + rtol * abs(b)
            a = b + random.choice([-1, 1]) * allowed * random.choice([0.5, 0.99, 1 - 1e-7, 1, 1 + 1e-7, 1.01])
            lines.append(line(dtype, a, b))
    print(f"# Made by tools/allclose_goldens.py with torch {torch.__version__.split('+')[0]}.")
    print("\n".join(dict.fromkeys(lines)))


main()
