"""The catalogue's newer sources: their lists are well formed, and one small model of each is captured; needs PyTorch."""

from __future__ import annotations

import importlib.util
import tempfile
import unittest
from pathlib import Path

try:
    import torch  # noqa: F401 - the extractor needs it
except ImportError as error:
    raise unittest.SkipTest("PyTorch is not installed") from error

from passnet.extract import catalogue
from passnet.extract.catalogue import diffusers_inputs, diffusers_models
from passnet.extract.compare import compare
from passnet.extract.errors import CaptureError
from passnet.extract.model import Entry

# Of each package a model that is built and run in seconds.
SMALL = {
    "diffusers": ["AutoencoderTiny_taesd", "T2IAdapter_sd15_light"],
    "open_clip": ["ViT-S-32-alt_vision", "ViT-S-16-alt_text"],
    "segmentation_models_pytorch": ["unet_resnet18", "fpn_mobilenet_v2"],
}


def is_there(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


class Sources(unittest.TestCase):
    def test_every_listed_model_has_a_name_of_its_own_and_plain_options(self) -> None:
        with tempfile.TemporaryDirectory() as place:
            for package in filter(is_there, SMALL):
                with self.subTest(package):
                    entries = catalogue.SOURCES[package].entries()
                    self.assertEqual(len({entry.id for entry in entries}), len(entries))
                    self.assertTrue({f"{package}/{name}" for name in SMALL[package]} <= {entry.id for entry in entries})
                    # A list on disk is the same list.
                    catalogue.write_list(Path(place) / package, entries)
                    self.assertEqual(catalogue.read_list(Path(place) / package), entries)

    def test_small_models_equal_their_graphs_bit_by_bit(self) -> None:
        for package, names in SMALL.items():
            if not is_there(package):
                continue
            listed = {entry.name: entry for entry in catalogue.SOURCES[package].entries()}
            for name in names:
                with self.subTest(f"{package}/{name}"), tempfile.TemporaryDirectory() as folder:
                    answer = compare(catalogue.build(listed[name]), Path(folder) / "net", {})
                    self.assertEqual(answer["outcome"], "captured", answer)
                    self.assertEqual(answer["largest_difference"], 0.0)


class Diffusers(unittest.TestCase):
    def test_every_class_of_the_table_has_inputs_and_is_used(self) -> None:
        classes = {entry.options["class"] for entry in diffusers_models.entries()}
        self.assertEqual(classes, set(diffusers_inputs._MAKERS))

    @unittest.skipUnless(is_there("diffusers"), "needs diffusers")
    def test_a_class_that_the_package_lacks_is_an_error_in_words(self) -> None:
        entry = Entry("diffusers", "none", "diffusers", {"class": "NobodysModel", "changes": {}})
        with self.assertRaisesRegex(CaptureError, "has no NobodysModel"):
            diffusers_models.build(entry)

    @unittest.skipUnless(is_there("diffusers"), "needs diffusers")
    def test_every_published_configuration_is_one_of_its_class(self) -> None:
        import inspect

        import diffusers

        for entry in diffusers_models.entries():
            with self.subTest(entry.name):
                made = getattr(diffusers, entry.options["class"])
                self.assertLessEqual(set(entry.options["changes"]), set(inspect.signature(made.__init__).parameters))


if __name__ == "__main__":
    unittest.main()
