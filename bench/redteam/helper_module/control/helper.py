"""Sizes that several passes of a folder share."""

import triton

BLOCK = 1024


def grid_for(count):
    return (triton.cdiv(count, BLOCK),)
