"""Small models taught to write passes: PyTorch and transformers, nothing else.

`passnet learn` starts this as a process. Which tasks there are, what is right and how fast it is, the Rust side knows;
here are weights, tokens and gradients.
"""
