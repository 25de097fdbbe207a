"""The reference's command lines, answered by `passnet`.

`python3 -m pass_bench.torch.test_compiler` and `python3 -m pass_bench.aggregate_es_scores` take the arguments that they
take in the reference and hand them to `passnet reference`. Nothing else of the reference is here.
"""
