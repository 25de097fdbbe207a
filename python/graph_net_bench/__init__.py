"""The name that `pass_bench` had before."""
