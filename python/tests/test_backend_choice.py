"""What a graph keeps after its first call, and what it gives back: `python -m unittest tests.test_backend_choice`
(needs PyTorch and the `passnet` program)."""

import gc
import io
import json
import unittest
import warnings
import weakref
from contextlib import redirect_stdout

from tests.backend_library import RIGHT, ROOT, WRONG, BackendCase, program
from tests.test_backend import torch

if torch is not None:
    from tests.test_backend import Model

# Two values, of which the program takes both.
TWO = (
    RIGHT.replace(
        "    return torch.nn.functional.gelu(x) + residual\n",
        "    gelu = torch.nn.functional.gelu(x)\n    return gelu, gelu + residual\n",
    )
    .replace("out, mask=inside)", "out, mask=inside)\n    tl.store(gelu_ptr + at, gelu, mask=inside)")
    .replace("out_ptr, count, BLOCK", "out_ptr, gelu_ptr, count, BLOCK")
    .replace("    count = x.numel()\n", "    gelu = torch.empty_like(x)\n    count = x.numel()\n")
    .replace("(x, residual, out, count", "(x, residual, out, gelu, count")
    .replace("    return out\n", "    return gelu, out\n")
)


def living_graph():
    from passnet.backend import reporting

    return reporting._graphs[-1]()


@unittest.skipIf(torch is None, "PyTorch is not installed")
@unittest.skipIf(program() is None, "the passnet program is not built")
class ChoiceTest(BackendCase):
    def times_of_regions(self, eager: float, ours: float) -> None:
        """What every region takes, from now on."""
        from passnet.backend import site

        original = site.Site.seconds
        site.Site.seconds = lambda *_: (eager, ours)
        self.addCleanup(setattr, site.Site, "seconds", original)
        self.addCleanup(site.MEASURED.clear)
        site.MEASURED.clear()

    def race_won_by(self, winner: str) -> list[list[str]]:
        """The ways of every race, from now on."""
        from passnet.backend import fastest

        seen, original = [], fastest.race

        def race(ways, device):
            seen.append(list(ways))
            for way in ways.values():
                way()
            return {name: 1.0 if name == winner else 2.0 for name in ways}

        fastest.race = race
        self.addCleanup(setattr, fastest, "race", original)
        return seen

    def calls_of_inductor(self) -> list[weakref.ref]:
        """What TorchInductor makes, from now on."""
        from passnet.backend import inductor

        made, original = [], inductor.compiled

        def compiled(*given):
            call = original(*given)
            made.append(weakref.ref(call))
            return call

        inductor.compiled = compiled
        self.addCleanup(setattr, inductor, "compiled", original)
        return made

    def check(self, model, compiled, calls=3):
        with torch.inference_mode():
            for _ in range(calls):
                x = torch.randn(4, 32)
                torch.testing.assert_close(compiled(x), model(x))

    def site_calls(self) -> int:
        return sum("site_" in str(node.target) for node in living_graph().graph.nodes)

    def forgotten(self) -> None:
        """As in a process that has compiled nothing; what is noted in the library stays."""
        from passnet.backend import site

        torch._dynamo.reset()
        site.MEASURED.clear()

    def questions(self) -> list[str]:
        """What the program is asked from now on."""
        from passnet.backend.server import Server

        asked, original = [], Server.ask
        Server.ask = lambda server, message: asked.append(message["call"]) or original(server, message)
        self.addCleanup(setattr, Server, "ask", original)
        return asked

    def test_a_known_way_without_passes_asks_nobody_what_fits(self):
        from passnet.backend import fastest

        self.library.add(RIGHT)
        for winner in fastest.WITHOUT_PASSES:
            with self.subTest(winner):
                self.forgotten()
                for noted in (self.library.folder / fastest.CHOICES).glob("*"):
                    noted.unlink()
                races, freeze = self.race_won_by(winner), winner == fastest.FROZEN
                model = Model()
                self.check(model, self.compiled(model, rest="fastest", freeze=freeze))
                self.forgotten()
                asked, made = self.questions(), self.calls_of_inductor()
                self.check(model, self.compiled(model, rest="fastest", freeze=freeze))
                self.assertEqual(living_graph().way, winner)
                self.assertNotIn("match", asked)
                self.assertEqual((len(races), len(made)), (1, winner == fastest.ALONE))

    def test_a_known_way_with_passes_replaces_what_it_replaced_and_times_nothing(self):
        from passnet.backend import fastest, site

        self.library.add(RIGHT)
        for winner in (fastest.EAGER, fastest.INDUCTOR):
            with self.subTest(winner):
                self.forgotten()
                for noted in (self.library.folder / fastest.CHOICES).glob("*"):
                    noted.unlink()
                # The first and the third region are faster with the pass.
                times, original = iter([(3.0, 2.0), (1.0, 2.0), (3.0, 2.0)]), site.Site.measure
                site.Site.measure = lambda region, kind, plan, arguments: measured(region, kind, next(times))
                self.addCleanup(setattr, site.Site, "measure", original)

                def measured(region, kind, seconds):
                    kind.seconds = seconds
                    if seconds[1] > seconds[0]:
                        kind.plan, kind.reason = None, "slower"

                self.race_won_by(winner)
                model = Model()
                self.check(model, self.compiled(model, measure=True, rest="fastest"))
                self.assertEqual([region.state for region in living_graph().sites], ["used", "eager", "used"])
                kept = [region.removed for region in living_graph().sites if region.state == "used"]
                self.forgotten()
                made = self.calls_of_inductor()
                # Another time would be one too many.
                self.check(model, self.compiled(model, measure=True, rest="fastest"))
                graph = living_graph()
                self.assertEqual((graph.way, [region.removed for region in graph.sites]), (winner, kept))
                self.assertEqual([region.state for region in graph.sites], ["used", "used"])
                # Held against eager all the same.
                self.assertTrue(all(region.kinds[0].checks >= 1 for region in graph.sites))
                self.assertEqual(len(made), winner == fastest.INDUCTOR)

    def test_a_wrong_pass_is_dropped_where_the_way_is_known(self):
        from passnet.backend import DROPPED, PassWarning, fastest

        self.library.add(WRONG)
        for winner in (fastest.EAGER, fastest.INDUCTOR):
            with self.subTest(winner), warnings.catch_warnings():
                warnings.simplefilter("ignore", PassWarning)
                self.forgotten()
                races = self.race_won_by(winner)
                model = Model()
                compiled = self.compiled(model, rest="fastest", verify="never")
                with torch.inference_mode():
                    self.assertFalse(torch.allclose(compiled(torch.ones(4, 32)), model(torch.ones(4, 32)), atol=1e-3))
                self.forgotten()
                self.check(model, self.compiled(model, rest="fastest"))
                self.assertEqual((len(races), len(DROPPED.reasons)), (1, 1))
                DROPPED.reasons.clear()
                for noted in (self.library.folder / fastest.CHOICES).glob("*"):
                    noted.unlink()

    def test_a_library_that_changed_is_asked_again_and_ways_are_not_timed_again(self):
        from passnet.backend import fastest

        self.library.add(RIGHT)
        races = self.race_won_by(fastest.ALONE)
        model = Model()
        self.check(model, self.compiled(model, rest="fastest"))
        # A pass for what the model does not do.
        self.library.add(RIGHT.replace("gelu(x) + residual", "gelu(x) @ residual"), "another")
        for asks in (True, False):
            self.forgotten()
            asked = self.questions()
            self.check(model, self.compiled(model, rest="fastest"))
            self.assertEqual((living_graph().way, "match" in asked, len(races)), (fastest.ALONE, asks, 1))

    def test_what_is_no_choice_is_none(self):
        from passnet.backend.fastest import Choice

        for text in ("", "no passes", "[]", '{"way": "walk", "kept": []}', '{"way": "eager"}', '{"way": "eager", "kept": 3}', "[" * 9999):
            self.assertIsNone(Choice.read(text), text[:40])
        for choice in (Choice("eager", frozenset({("gelu", "add"), ("add_1",)})), Choice("no passes")):
            self.assertEqual(Choice.read(choice.text()), choice)

    def test_a_region_that_stays_eagers_is_the_programs_own_nodes_again(self):
        self.library.add(RIGHT)
        for eager, left in ((1.0, 0), (3.0, 3)):
            with self.subTest(eager=eager):
                torch._dynamo.reset()
                self.times_of_regions(eager, 2.0)
                self.race_won_by("eager")
                model = Model()
                self.check(model, self.compiled(model, measure=True))
                self.assertEqual(self.site_calls(), left)

    def test_a_region_of_two_values_is_given_back(self):
        self.library.add(TWO)
        self.times_of_regions(1.0, 2.0)

        def model(x):
            gelu = torch.nn.functional.gelu(x)
            return gelu * 2, (gelu + x).relu()

        self.check(model, self.compiled(model, measure=True))
        self.assertEqual([len(site.outputs) for site in living_graph().sites], [2])
        self.assertEqual(self.site_calls(), 0)

    def test_what_takes_a_part_of_a_region_that_is_given_back(self):
        self.library.add(RIGHT)
        self.times_of_regions(1.0, 2.0)

        def model(x):
            return (torch.nn.functional.gelu(x) + x)[1:, ::2].relu()

        self.check(model, self.compiled(model, measure=True))
        self.assertEqual(self.site_calls(), 0)

    def test_inductor_gets_only_regions_that_are_faster(self):
        from passnet.backend import inductor

        self.library.add(RIGHT)
        seen, original = [], inductor.compiled
        inductor.compiled = lambda module, rewritten, *given: (
            seen.append(len(rewritten.sites)) or original(module, rewritten, *given)
        )
        self.addCleanup(setattr, inductor, "compiled", original)
        for eager in (1.0, 3.0):
            torch._dynamo.reset()
            self.times_of_regions(eager, 2.0)
            model = Model()
            self.check(model, self.compiled(model, measure=True, rest="inductor"))
        self.assertEqual(seen, [0, 3])

    def test_what_lost_is_gone_after_the_choice(self):
        from passnet.backend import fastest

        self.library.add(RIGHT)
        for winner, alive in zip(fastest.WAYS, (0, 0, 1, 1), strict=True):
            with self.subTest(winner):
                torch._dynamo.reset()
                for noted in (self.library.folder / fastest.CHOICES).glob("*"):
                    noted.unlink()
                self.race_won_by(winner)
                made = self.calls_of_inductor()
                model = Model()
                compiled = self.compiled(model, rest="fastest")
                self.check(model, compiled)
                self.assertEqual(living_graph().way, winner)
                self.assertEqual(not living_graph().rechecked, winner in fastest.WITHOUT_PASSES)
                self.assertEqual(len(made), 2)
                self.assertEqual(sum(call() is not None for call in made), alive)

    def test_passes_that_save_next_to_nothing_are_not_tried_with_inductor(self):
        from passnet.backend import fastest

        self.library.add(RIGHT)
        ways = self.race_won_by(fastest.EAGER)
        for width, saved in ((32, 1e-12), (16, 1e3)):
            torch._dynamo.reset()
            self.times_of_regions(1.0 + saved, 1.0)
            model = Model(width)
            compiled = self.compiled(model, measure=True, rest="fastest")
            with torch.inference_mode():
                compiled(torch.randn(4, width))
        self.assertEqual(ways, [[fastest.EAGER, fastest.PLAIN, fastest.ALONE], list(fastest.WAYS)])

    def test_passes_that_slow_down_the_whole_graph_are_left(self):
        from passnet.backend import fastest, report

        self.library.add(RIGHT)
        self.times_of_regions(2.0, 1.0)
        for winner, replaced in ((fastest.EAGER, True), (fastest.PLAIN, False)):
            torch._dynamo.reset()
            ways = self.race_won_by(winner)
            model = Model()
            compiled = self.compiled(model, measure=True)
            self.check(model, compiled)
            self.assertEqual((living_graph().way, ways), (winner, [[fastest.EAGER, fastest.PLAIN]]))
            self.assertEqual(report().graphs[-1]["replaced"] > 0, replaced)

    def test_what_inductor_compiled_once_comes_from_its_cache(self):
        from torch._dynamo.utils import counters
        from torch._inductor.utils import fresh_cache

        found = []
        with fresh_cache():
            for _ in range(2):
                torch._dynamo.reset()
                counters.clear()
                model = Model()
                self.check(model, self.compiled(model, rest="inductor"))
                found.append([counters["inductor"][f"fxgraph_cache_{word}"] for word in ("hit", "miss", "bypass")])
        # Dynamo's own cache of whole graphs may answer first.
        self.assertEqual(found[0], [0, 1, 0])
        self.assertEqual(found[1][1:], [0, 0])

    def test_ways_that_are_close_are_timed_more_often(self):
        from passnet.backend.fastest import CLOSE_TURNS, TURNS, turns_of

        self.assertEqual(turns_of({"eager": [], "inductor": []}), TURNS)
        self.assertEqual(turns_of({"eager": [2.0, 1.0], "inductor": [1.05, 3.0]}), CLOSE_TURNS)
        self.assertEqual(turns_of({"eager": [2.0, 1.0], "inductor": [1.5, 1.2]}), TURNS)
        self.assertEqual(turns_of({"eager": [1.0]}), TURNS)

    def test_a_pool_is_left_when_no_recording_lives_in_it(self):
        from passnet.backend.cuda_graph import Lane, shared_lane

        class Graph:
            pass

        handles = iter(range(10))
        original = torch.cuda.graph_pool_handle
        torch.cuda.graph_pool_handle = lambda: next(handles)
        self.addCleanup(setattr, torch.cuda, "graph_pool_handle", original)
        device = torch.device("cuda", 0)
        self.assertIs(shared_lane(device), shared_lane(torch.device("cuda", 0)))
        lane, one, two = Lane(device), Graph(), Graph()
        self.assertEqual(lane.pool(), 0)
        lane.users.append(weakref.ref(one))
        self.assertEqual(lane.pool(), 0)
        lane.users.append(weakref.ref(two))
        del one
        self.assertEqual(lane.pool(), 0)
        del two
        gc.collect()
        self.assertEqual(lane.pool(), 1)

    def test_a_table_says_where_its_times_come_from(self):
        from passnet.backend import bench
        from passnet.backend.server import server

        spec = f"{ROOT / 'tools/model_set.py'}:small_unet"
        given = ["--ways", "eager,passnet", "--device", "cpu", "--seconds", "0.01", "--json", "--options"]
        options = json.dumps({"library": str(self.library.folder), "trust": "all"})
        said = io.StringIO()
        with redirect_stdout(said):
            self.assertEqual(bench.main([spec, *given, options]), 0)
        identity = json.loads(said.getvalue())["identity"]
        self.assertEqual(identity["build"], server().identity["build"])
        self.assertTrue(identity["build"]["version"])
        self.assertEqual(identity["torch"], torch.__version__)
        self.assertEqual((identity["device"]["kind"], identity["cores"]), ("cpu", torch.get_num_threads()))

    def test_a_way_that_takes_too_long_is_given_up_and_the_others_are_not(self):
        import time

        from passnet.backend import bench

        with self.assertRaises(bench.TooLate), bench.given_up(time.monotonic() - 1.0):
            try:
                while True:
                    time.sleep(0.001)
            except Exception:  # noqa: BLE001 - as compilers do
                self.fail("it went on")


if __name__ == "__main__":
    unittest.main()
