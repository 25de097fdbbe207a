"""`passnet reference test-compiler`."""

from pass_bench.program import become

if __name__ == "__main__":
    become("test-compiler")
