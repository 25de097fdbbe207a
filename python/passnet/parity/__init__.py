"""PyTorch as the judge: what PassNet infers, prints, computes and matches, compared with what PyTorch says.

`python -m passnet.parity COMMAND` has the checks of whole graphs; `yardstick.py` is the rule by which outputs are called
equal, which the backend of `torch.compile` follows too.
"""
