"""The PyTorch side of PassNet."""
