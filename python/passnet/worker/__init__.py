"""The trusted host worker: runs graphs and launch plans with PyTorch, for the Rust side.

    python -m passnet.worker --runner libpassnet_runner.so --device cpu

It is started by the torch engine and speaks frames on its standard input and output (`frames.py`). Graphs come as text
that the Rust side printed from its own table of operations, plans as data; a pass file never comes here.
"""
