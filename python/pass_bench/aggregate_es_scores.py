"""`passnet reference aggregate`."""

from pass_bench.program import become

if __name__ == "__main__":
    become("aggregate")
