"""Triton kernels on the PyTorch side: fixtures run by Triton itself, and what a launch costs the host."""
