"""PyTorch models become graph folders: captured with dynamo, described from their initialisation, never run.

Start at `capture.py` (a module to graphs) and `job.py` (one model to one folder); `pool.py` does many.
"""
