"""Where the reference keeps what it does with PyTorch."""
