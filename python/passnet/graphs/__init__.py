"""A recorded graph on the PyTorch side: its statements, its inputs, the types of its values, a run under the profiler."""
