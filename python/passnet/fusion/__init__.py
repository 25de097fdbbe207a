"""How many kernels TorchInductor launches for a graph: the counts that the fusion model of `passnet-graph` is judged by."""
