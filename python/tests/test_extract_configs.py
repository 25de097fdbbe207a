"""Models from published configurations: a small mirror made here, the layout of a cache, and a hub on this machine."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
import threading
import unittest
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest import mock

try:
    import torch  # noqa: F401 - the extractor needs it

    from passnet.extract.__main__ import main
    from passnet.extract.catalogue import configurations
    from passnet.extract.errors import CaptureError
except ImportError:
    main = None

try:
    import transformers  # noqa: F401
except ImportError:
    transformers = None

BERT = {
    "architectures": ["BertForSequenceClassification"], "model_type": "bert", "vocab_size": 100, "hidden_size": 16,
    "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32, "max_position_embeddings": 64,
    "id2label": {"0": "no", "1": "yes"}, "label2id": {"no": 0, "yes": 1}, "transformers_version": "4.1.0",
}
# The same graph: only labels and versions have other names.
TUNED = {**BERT, "id2label": {"0": "bad", "1": "good"}, "label2id": {"bad": 0, "good": 1}, "_name_or_path": "a/first"}
WIDE = {**BERT, "hidden_size": 32}
STRANGE = {"architectures": ["NobodysModel"], "model_type": "nobodys", "auto_map": {"AutoModel": "code.NobodysModel"}}


def write(folder: Path, path: str, content: object) -> None:
    file = folder / path / "config.json"
    file.parent.mkdir(parents=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))


def mirror(folder: Path) -> None:
    write(folder, "a/first", BERT)
    write(folder, "b/tuned", TUNED)
    write(folder, "models--c--wide/snapshots/0123abcd", WIDE)
    write(folder, "d/strange", STRANGE)
    write(folder, "e/broken", "{ not json")
    write(folder, "f/sentence/1_Pooling", {"word_embedding_dimension": 16})
    write(folder, "g/deep", "[" * 100_000)
    write(folder, "h/huge", " " * (5 << 20))


@contextlib.contextmanager
def hub(listing: bytes | int | None = None) -> Iterator[str]:
    """Two pages of models, as the hub's interface has them; or a listing that is as given, or an error of that code."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            configs = {"/a/first/resolve/main/config.json": BERT, "/c/wide/resolve/main/config.json": WIDE}
            if isinstance(listing, int):
                self.send_error(listing)
            elif listing is not None:
                self.send_bytes(listing)
            elif self.path.startswith("/api/models?") and "cursor" not in self.path:
                following = f'<http://{self.headers["Host"]}/api/models?cursor=2>; rel="next"'
                self.answer([{"id": "a/first"}, {"id": "b/gated"}], {"Link": following})
            elif self.path.startswith("/api/models?"):
                self.answer([{"id": "c/wide"}])
            elif self.path in configs:
                self.answer(configs[self.path])
            else:
                self.send_error(403)

        def answer(self, content: object, headers: dict[str, str] | None = None) -> None:
            self.send_bytes(json.dumps(content).encode(), headers)

        def send_bytes(self, body: bytes, headers: dict[str, str] | None = None) -> None:
            self.send_response(200)
            for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@unittest.skipIf(main is None, "needs PyTorch")
class Listing(unittest.TestCase):
    def test_a_mirror_is_read_and_repeats_are_one_model(self) -> None:
        with tempfile.TemporaryDirectory() as place:
            mirror(Path(place))
            found = {entry.name: entry for entry in configurations.entries(place)}
        self.assertEqual(sorted(found), ["a_first", "c_wide", "d_strange"])
        self.assertEqual(found["c_wide"].options["repository"], "c/wide")
        self.assertEqual(found["a_first"].id, "transformers-auto-model/a_first")
        # An entry carries its configuration: whoever captures it needs no mirror.
        self.assertEqual(found["c_wide"].options["config"]["hidden_size"], 32)

    def test_the_number_of_labels_counts_and_their_names_do_not(self) -> None:
        three = {**BERT, "id2label": {"0": "a", "1": "b", "2": "c"}}
        with tempfile.TemporaryDirectory() as place:
            write(Path(place), "a", BERT)
            write(Path(place), "b", TUNED)
            write(Path(place), "c", three)
            self.assertEqual([entry.name for entry in configurations.entries(place)], ["a", "c"])

    def test_a_hub_is_asked_page_by_page(self) -> None:
        with hub() as address, mock.patch.dict(os.environ, {"HF_ENDPOINT": address}):
            self.assertEqual([entry.name for entry in configurations.entries("hub")], ["a_first", "c_wide"])
            self.assertEqual([entry.name for entry in configurations.entries("hub:1")], ["a_first"])

    def test_what_is_passed_over_is_counted(self) -> None:
        told = io.StringIO()
        with tempfile.TemporaryDirectory() as place, contextlib.redirect_stderr(told):
            mirror(Path(place))
            configurations.entries(place)
        self.assertEqual(
            told.getvalue(), "4 files config.json passed over: 1 larger than 4 MiB, 2 not JSON, 1 of no model\n"
        )
        told = io.StringIO()
        with hub() as address, mock.patch.dict(os.environ, {"HF_ENDPOINT": address}), contextlib.redirect_stderr(told):
            configurations.entries("hub")
        self.assertEqual(told.getvalue(), "1 files config.json passed over: 1 answered with HTTP 403\n")

    def test_a_listing_that_is_none_is_an_error_in_words(self) -> None:
        listings: list[tuple[bytes | int, str]] = [
            (503, "listing .* with HTTP 503"),
            (b'[{"id": "a/first"}, {"i', "is no JSON, or was cut off"),
            (b'[{"name": "a/first"}]', 'no list of models with an "id" each'),
            (b'{"error": "busy"}', 'no list of models with an "id" each'),
            (b"[3]", 'no list of models with an "id" each'),
        ]
        for listing, words in listings:
            with self.subTest(listing), hub(listing) as address, mock.patch.dict(os.environ, {"HF_ENDPOINT": address}):
                with self.assertRaisesRegex(CaptureError, words):
                    configurations.entries("hub")

    def test_what_cannot_be_had_is_said(self) -> None:
        with tempfile.TemporaryDirectory() as place:
            with self.assertRaisesRegex(CaptureError, "there is no config.json"):
                configurations.entries(place)
        with self.assertRaisesRegex(CaptureError, "is no folder"):
            configurations.entries("/no/such/mirror")
        with mock.patch.dict(os.environ, {"HF_ENDPOINT": "http://127.0.0.1:9"}):
            with self.assertRaisesRegex(CaptureError, "the hub cannot be reached"):
                configurations.entries("hub")


@unittest.skipIf(main is None or transformers is None, "needs PyTorch and transformers")
class Capturing(unittest.TestCase):
    def test_models_of_a_mirror_are_captured_in_their_own_sizes(self) -> None:
        with tempfile.TemporaryDirectory() as place:
            mirror(Path(place) / "mirror")
            out = Path(place) / "out"
            code = main(["--configs", str(Path(place) / "mirror"), "--out", str(out)])
            self.assertEqual(code, 1, "one of them is unknown")
            lines = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
            records = {line["id"].rpartition("/")[2]: line for line in lines}
            self.assertEqual(records["a_first"]["outcome"], "captured", records["a_first"])
            self.assertEqual(records["c_wide"]["outcome"], "captured", records["c_wide"])
            self.assertEqual(records["d_strange"]["kind"], "unknown architecture")
            samples = out / "samples" / "transformers-auto-model"
            texts = {name: (samples / name / "weight_meta.py").read_text() for name in ("a_first", "c_wide")}
            self.assertIn("shape = [100, 16]", texts["a_first"])
            self.assertIn("shape = [100, 32]", texts["c_wide"])
            # The configuration's own limit, not the catalogue's.
            self.assertIn("shape = [1, 64]", texts["a_first"])


if __name__ == "__main__":
    unittest.main()
