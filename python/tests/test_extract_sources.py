"""The catalogue's newer sources: their lists are well formed, and one small model of each is captured; needs PyTorch."""

from __future__ import annotations

import importlib.util
import tempfile
import unittest
from pathlib import Path

try:
    import torch
except ImportError as error:
    raise unittest.SkipTest("PyTorch is not installed") from error

from passnet.extract import catalogue
from passnet.extract.capture import capture
from passnet.extract.catalogue import diffusers_inputs, diffusers_models, transformers_forms
from passnet.extract.compare import compare
from passnet.extract.errors import CaptureError
from passnet.extract.model import Entry

# Of each source models that are built and run in seconds.
SMALL = {
    "diffusers": ["AutoencoderTiny_taesd", "T2IAdapter_sd15_light"],
    "open_clip": ["ViT-S-32-alt_vision", "ViT-S-16-alt_text"],
    "segmentation_models_pytorch": ["unet_resnet18", "fpn_mobilenet_v2"],
    "timm": ["resnet18.features"],
    "pytorchcv": ["resnet10", "quartznet5x5_en_ls"],
    "transformers_forms": [
        "GPT2LMHeadModel.decode", "DistilBertForSequenceClassification.lora", "DistilBertForMaskedLM.int8",
        "BlenderbotSmallForConditionalGeneration.encoder",
    ],
    "vit_pytorch": ["simple_vit_with_qk_norm_tiny"],
    "x_transformers": ["decoder_llama_small"],
    "monai": ["basic_unet_2d", "dynunet_residual_2d"],
    "tabular": ["resnet_2_192", "ft_transformer_both_2", "PeriodicEmbeddings_16"],
    "deepctr_torch": ["DeepFM_4", "MMOE_4"],
    "esm": ["esm2_t6_8M"],
}  # fmt: skip
# Sources that are named after what they hold, and a package that all of it needs.
PACKAGES = {"transformers_forms": "peft", "tabular": "rtdl_num_embeddings"}


def is_there(source: str) -> bool:
    return importlib.util.find_spec(PACKAGES.get(source, source)) is not None


class Sources(unittest.TestCase):
    def test_every_listed_model_has_a_name_of_its_own_and_plain_options(self) -> None:
        with tempfile.TemporaryDirectory() as place:
            for source in filter(is_there, SMALL):
                with self.subTest(source):
                    entries = catalogue.SOURCES[source].entries()
                    self.assertEqual(len({entry.id for entry in entries}), len(entries))
                    self.assertTrue(set(SMALL[source]) <= {entry.name for entry in entries})
                    # A list on disk is the same list.
                    catalogue.write_list(Path(place) / source, entries)
                    self.assertEqual(catalogue.read_list(Path(place) / source), entries)

    def test_a_list_says_which_line_is_no_model(self) -> None:
        good = '{"family": "own", "name": "a", "source": "timm", "options": {}}\n'
        bad = {
            "not JSON": "{",
            "no object": "[1]",
            "a key too many": good.replace("}}", '}, "x": 1}'),
            "no name": '{"family": "own", "source": "timm"}',
            "a name that leads out": good.replace('"a"', '"../../a"'),
            "an absolute name": good.replace('"own"', '"/own"'),
            "a line break in a name": good.replace('"a"', '"a\\nb"'),
            "a name that never ends": good.replace('"a"', f'"{"a" * 300}"'),
            "options that are none": good.replace("{}", "3"),
        }
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "list.jsonl"
            path.write_text(good + "\n" + good)
            self.assertEqual(catalogue.read_list(path), [Entry("own", "a", "timm")])
            for what, line in bad.items():
                with self.subTest(what):
                    path.write_text(f"{good}{line}\n")
                    with self.assertRaisesRegex(CaptureError, r"list\.jsonl:2: no model: "):
                        catalogue.read_list(path)

    def test_small_models_equal_their_graphs_bit_by_bit(self) -> None:
        for source, names in SMALL.items():
            if not is_there(source):
                continue
            listed = {entry.name: entry for entry in catalogue.SOURCES[source].entries()}
            for name in names:
                with self.subTest(f"{source}/{name}"), tempfile.TemporaryDirectory() as folder:
                    answer = compare(catalogue.build(listed[name]), Path(folder) / "net", {})
                    self.assertEqual(answer["outcome"], "captured", answer)
                    self.assertEqual(answer["largest_difference"], 0.0)


class Forms(unittest.TestCase):
    @unittest.skipUnless(is_there("transformers"), "needs transformers")
    def test_a_step_of_decoding_takes_one_token_and_its_cache(self) -> None:
        listed = {entry.name: entry for entry in catalogue.SOURCES["transformers_forms"].entries()}
        model = catalogue.build(listed["GPT2LMHeadModel.decode"])()
        found = capture(model.module, model.args, model.kwargs)
        self.assertEqual(len(found.graphs), 1)
        sizes = [tuple(argument.value.shape) for argument in found.graphs[0].arguments if hasattr(argument.value, "shape")]
        self.assertIn((1, 1), sizes)
        layers = len(model.kwargs["past_key_values"].layers)
        # Keys and values of every layer, with room for more tokens than one.
        self.assertEqual(sizes.count((1, 12, transformers_forms.CACHE, 64)), 2 * layers)

    def test_a_quantised_layer_is_the_layer_within_its_steps(self) -> None:
        layer = torch.nn.Linear(64, 8)
        quantised = transformers_forms.Int8Linear(layer)
        self.assertEqual(quantised.weight.dtype, torch.int8)
        x = torch.randn(5, 64)
        wide = (quantised.weight.float() * quantised.scale[:, None]).T
        torch.testing.assert_close(quantised(x), x @ wide + layer.bias)
        # The spread of its weights is that of a fresh layer.
        self.assertAlmostEqual(float(wide.std()), 64**-0.5, delta=0.02)


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
