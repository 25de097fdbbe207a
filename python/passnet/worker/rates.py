"""What the device can do, measured: how fast it copies, and how fast it multiplies matrices."""

import torch

from passnet.worker.clock import device_seconds

REPEATS = 12
# Rows and columns of the matrices that are multiplied.
SIDES = {"cuda": 8192, "cpu": 512}


def copy_seconds(device: torch.device, size: int) -> float:
    """Seconds to move `size` bytes, half of them read and half written; what fits into a cache is copied there."""
    source = torch.ones(max(size // 2, 1), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return min(device_seconds(device, lambda: target.copy_(source)) for _ in range(REPEATS))


def flops_per_second(device: torch.device, dtype: torch.dtype) -> float:
    side = SIDES[device.type]
    matrix = torch.full((side, side), 0.5, dtype=dtype, device=device)
    return 2 * side**3 / min(device_seconds(device, lambda: matrix @ matrix) for _ in range(REPEATS))
