"""Weights as constants, as long as they are the same: `python -m unittest tests.test_backend_freeze`
(needs PyTorch and the `passnet` program)."""

import unittest
import unittest.mock

from tests.backend_library import RIGHT, ROOT, BackendCase, program
from tests.test_backend import torch

MODEL = f"{ROOT / 'tools/model_set.py'}:small_unet"

if torch is not None:
    from torch import nn

    class Convolutions(nn.Module):
        """Convolutions with batch normalisations behind them, which freezing folds."""

        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
            self.norms = nn.ModuleList(nn.BatchNorm2d(8) for _ in range(2))
            for norm in self.norms:
                nn.init.uniform_(norm.weight, 0.5, 1.5)
                nn.init.uniform_(norm.running_mean, -0.5, 0.5)
                nn.init.uniform_(norm.running_var, 0.5, 1.5)
            self.head = nn.Linear(8, 5)

        def forward(self, x):
            x = self.norms[0](self.one(x)).relu()
            return self.head(self.norms[1](self.two(x)).relu().mean((2, 3)))

    class Transformer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(50, 16)
            self.layers = nn.ModuleList(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True) for _ in range(2))

        def forward(self, x):
            x = self.words((x.flatten(1)[:, :12].abs() * 20).long() % 50)
            for layer in self.layers:
                # Not the fused layer, which dynamo leaves alone.
                x = layer.norm1(x + layer._sa_block(x, None, None))
                x = layer.norm2(x + layer._ff_block(x))
            return x


def added(parameter: str):
    """As an optimizer's step does it."""

    def change(model):
        with torch.no_grad():
            dict(model.named_parameters())[parameter].add_(0.25)

    return change


def statistics(model):
    with torch.no_grad():
        for name, buffer in model.named_buffers():
            if "running_mean" in name:
                buffer.copy_(torch.randn_like(buffer))


def loaded(assign: bool):
    def change(model):
        model.load_state_dict(type(model)().state_dict(), assign=assign)

    return change


def replaced(model):
    name, parameter = next(iter(model.named_parameters()))
    parameter.data = torch.randn_like(parameter)


def stepped(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with torch.enable_grad():
        model(torch.randn(2, 3, 8, 8)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


@unittest.skipIf(torch is None, "PyTorch is not installed")
@unittest.skipIf(program() is None, "the passnet program is not built")
class FreezeTest(BackendCase):
    def won_by(self, winner: str) -> None:
        """Every race, from now on."""
        from passnet.backend import fastest

        original = fastest.race
        fastest.race = lambda ways, device: {name: 1.0 if name == winner else 2.0 for name in ways}
        self.addCleanup(setattr, fastest, "race", original)

    def check(self, model, compiled, calls=2):
        with torch.inference_mode():
            for _ in range(calls):
                x = torch.randn(2, 3, 8, 8)
                torch.testing.assert_close(compiled(x), model(x), atol=1e-4, rtol=1e-4)

    def graph(self):
        from passnet.backend import reporting

        return reporting._graphs[-1]()

    def frozen(self, model, rest="fastest"):
        from passnet.backend import fastest

        self.won_by(fastest.FROZEN)
        compiled = self.compiled(model.eval(), rest=rest, freeze=True)
        self.check(model, compiled)
        ways = {"fastest": fastest.FROZEN, "inductor": fastest.FROZEN_INDUCTOR}
        self.assertEqual(self.graph().way, ways[rest], self.graph().answer["notes"])
        return compiled

    def test_inductor_freezes_also_after_it_compiled_without(self):
        import torch._inductor.freezing as freezing

        from passnet.backend import bench

        model, x = Convolutions().eval(), torch.randn(2, 3, 8, 8)
        froze = unittest.mock.patch.object(freezing, "freeze", wraps=freezing.freeze)
        with torch.inference_mode(), bench.fresh_cache(), froze as freeze:
            for way, times in (("inductor", 0), ("inductor-freezing", 1)):
                run = bench.made(way, model, lambda called: called(x), {})
                torch.testing.assert_close(run(), model(x))
                self.assertEqual(freeze.call_count, times, way)

    def test_weights_of_a_measured_model_can_be_frozen(self):
        from passnet.backend import bench

        # As `passnet model bench` calls it; of weights made in inference mode, nobody can say whether they were updated.
        with torch.inference_mode():
            with unittest.mock.patch.object(bench, "made", wraps=bench.made) as made:
                bench.measure(MODEL, 1, ["eager"], torch.device("cpu"), torch.float32, 0.0, {})
        module = made.call_args.args[1]
        self.assertTrue(list(module.parameters()))
        self.assertFalse(any(weight.is_inference() for weight in module.parameters()))

    def test_weights_that_change_are_seen_in_the_next_call(self):
        changes = {"added": added("head.bias"), "statistics": statistics, "loaded": loaded(False), "assigned": loaded(True)}
        changes |= {"replaced": replaced, "stepped": stepped}
        for name, change in changes.items():
            with self.subTest(name):
                torch._dynamo.reset()
                model = Convolutions()
                compiled = self.frozen(model)
                x = torch.randn(2, 3, 8, 8)
                with torch.inference_mode():
                    before = model(x)
                change(model)
                with torch.inference_mode():
                    self.assertFalse(torch.allclose(model(x), before, atol=1e-3), "the change shows nothing")
                    torch.testing.assert_close(compiled(x), model(x), atol=1e-4, rtol=1e-4)
                self.check(model, compiled)

    def test_a_transformer_in_both_ways(self):
        self.library.add(RIGHT)
        for rest in ("fastest", "inductor"):
            with self.subTest(rest):
                torch._dynamo.reset()
                model = Transformer()
                compiled = self.frozen(model, rest)
                added("layers.1.linear2.weight")(model)
                self.check(model, compiled)

    def test_weights_are_constants(self):
        model = Convolutions()
        self.frozen(model)
        graph = self.graph()
        # Without its guard, what was frozen does not see the change.
        added("head.bias")(model)
        x = torch.randn(2, 3, 8, 8)
        given = [dict(model.named_parameters()).get(name) for name in ("head.bias",)]
        self.assertEqual(len(graph.frozen.weights.given), len(list(model.parameters())) + 4)
        self.assertTrue(any(weight is given[0] for weight in graph.frozen.weights.given))
        with torch.inference_mode():
            inputs = [x if index in graph.frozen.others else None for index in range(len(graph.frozen.weights.places))]
            (found,) = graph.frozen(*inputs)
            self.assertFalse(torch.allclose(found, model(x), atol=1e-2))

    def test_weights_that_stay_are_frozen_anew_and_so_often_only(self):
        from passnet.backend import fastest, frozen

        model = Convolutions()
        compiled = self.frozen(model)
        for number in range(frozen.MOST):
            added("head.bias")(model)
            self.check(model, compiled, frozen.CALM + 1)
            self.assertTrue(self.graph().frozen.weights.versions[-1] >= 0)
            self.assertEqual((self.graph().way, self.graph().frozen.again), (fastest.FROZEN, number + 1))
        added("head.bias")(model)
        self.check(model, compiled, frozen.CALM + 1)
        self.assertEqual(self.graph().way, fastest.ALONE)
        self.assertRegex(self.graph().answer["notes"][-1], "given up: .*change too often")
        added("head.bias")(model)
        self.check(model, compiled)

    def test_weights_that_change_in_every_call_are_not_frozen_anew(self):
        from passnet.backend import frozen

        model = Convolutions()
        compiled = self.frozen(model)
        for _ in range(2 * frozen.CALM):
            added("head.bias")(model)
            self.check(model, compiled, 1)
        self.assertEqual(self.graph().frozen.again, 0)

    def test_what_cannot_be_frozen_goes_another_way(self):
        class Weight(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.randn(8))

            def forward(self, x):
                return x.mean() + self.weight, self.weight.sum()

        with torch.inference_mode():
            made_inside = nn.Linear(8, 8)
        models = {"an output is a constant": Weight(), "made in inference mode": made_inside, "it has no weights": nn.ReLU()}
        for reason, model in models.items():
            for rest in ("inductor", "fastest"):
                with self.subTest(reason, rest=rest):
                    torch._dynamo.reset()
                    compiled = self.compiled(model, rest=rest, freeze=True)
                    with torch.inference_mode():
                        for _ in range(3):
                            x = torch.randn(2, 8)
                            torch.testing.assert_close(compiled(x), model(x))
                    self.assertNotIn("frozen", self.graph().way)
                    self.assertRegex("".join(self.graph().answer["notes"]), reason)

    def test_what_is_frozen_wrongly_is_not_used(self):
        from passnet.backend.frozen import Frozen

        original = Frozen.compiled

        def compiled(self, inputs):
            call = original(self, inputs)
            return lambda *given: tuple(value + 0.01 for value in call(*given))

        Frozen.compiled = compiled
        self.addCleanup(setattr, Frozen, "compiled", original)
        model = Convolutions().eval()
        self.check(model, self.compiled(model, rest="inductor", freeze=True))
        self.assertEqual(self.graph().way, "inductor")
        self.assertRegex("".join(self.graph().answer["notes"]), "off by")

    def test_freezing_is_asked_for(self):
        from passnet.backend import OptionError, Options, fastest

        with self.assertRaisesRegex(OptionError, "freeze=True is for"):
            Options.of({"freeze": True})
        with self.assertRaisesRegex(OptionError, "no inductor_mode"):
            Options.of({"freeze": True, "rest": "inductor", "inductor_mode": "max-autotune"})
        self.won_by(fastest.FROZEN)
        model = Convolutions().eval()
        self.check(model, self.compiled(model, rest="fastest"))
        self.assertNotEqual(self.graph().way, fastest.FROZEN)


if __name__ == "__main__":
    unittest.main()
