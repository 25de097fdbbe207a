"""The programs that run inside the sandbox, beside text that nobody trusts; the binary carries them and starts them.

`compile_kernels.py` compiles a kernel cut out of a pass. `run_pass.py` imports a whole pass, for the compatibility tier;
`poison.py` and `triton_driver.py` are its parts.
"""
