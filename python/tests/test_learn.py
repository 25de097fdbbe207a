"""The learning loop's Python side on a tiny model of random weights."""

from __future__ import annotations

import importlib.util
import io
import json
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

from tests.byte_tokenizer import write_byte_model

LACKS = [name for name in ("torch", "transformers", "tokenizers", "safetensors") if importlib.util.find_spec(name) is None]

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CONVERSATIONS = [
    [
        {"role": "system", "content": "You write passes."},
        {"role": "user", "content": f"task {number}"},
        {"role": "assistant", "content": "wrong", "weight": 0},
        {"role": "user", "content": "no match"},
        {"role": "assistant", "content": "right" * number},
    ]
    for number in range(1, 6)
]


def write_model(folder: Path) -> None:
    write_byte_model(folder, TEMPLATE)


@unittest.skipIf(LACKS, f"needs {', '.join(LACKS)}")
class LearnTest(unittest.TestCase):
    folder: tempfile.TemporaryDirectory[str]

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.model_path = str(Path(cls.folder.name) / "model")
        write_model(Path(cls.model_path))
        cls.data = str(Path(cls.folder.name) / "data.jsonl")
        lines = (json.dumps({"messages": messages}) + "\n" for messages in CONVERSATIONS)
        Path(cls.data).write_text("".join(lines), encoding="utf-8")

    @classmethod
    def tearDownClass(cls) -> None:
        cls.folder.cleanup()

    def job(self, out: str, **other: Any) -> Any:
        from passnet.learn.job import TrainJob

        given: dict[str, Any] = {
            "model": self.model_path, "device": "cpu", "data": [self.data], "out": str(Path(self.folder.name) / out),
            "adapter": None, "rank": 4, "alpha": 8.0, "learning_rate": 0.01, "epochs": 3, "length": 256,
            "blocks_per_step": 1, "seed": 3, "checkpoint_steps": 2,
        }
        return TrainJob(**{**given, **other})

    def load(self) -> Any:
        from passnet.learn import weights

        return weights.load(self.model_path, "cpu")

    def test_only_the_models_own_right_turns_are_learned(self) -> None:
        from passnet.learn.packing import IGNORED, encode

        _, tokenizer = self.load()
        example = encode(tokenizer, CONVERSATIONS[2])
        learned = [token for token, label in zip(example.tokens, example.labels, strict=True) if label != IGNORED]
        self.assertEqual(tokenizer.decode(learned), "rightrightright<|im_end|>\n")
        whole = tokenizer.apply_chat_template(CONVERSATIONS[2], tokenize=False)
        self.assertEqual(tokenizer.decode(example.tokens), whole)

    def test_a_template_that_changes_earlier_messages_is_refused(self) -> None:
        from passnet.learn.job import JobError
        from passnet.learn.packing import encode

        _, tokenizer = self.load()
        tokenizer.chat_template = "{{ messages | length }}" + TEMPLATE
        with self.assertRaisesRegex(JobError, "changes earlier messages"):
            encode(tokenizer, CONVERSATIONS[0])

    def test_a_block_has_the_loss_of_its_parts(self) -> None:
        from passnet.learn.packing import encode, tensors
        from passnet.learn.train import block_loss

        model, tokenizer = self.load()
        examples = [encode(tokenizer, messages) for messages in CONVERSATIONS[:3]]
        together = float(block_loss(model, tensors(examples, "cpu")))
        apart = sum(float(block_loss(model, tensors([example], "cpu"))) for example in examples)
        self.assertAlmostEqual(together, apart, delta=1e-3 * apart)
        everything = model(**{k: v for k, v in tensors(examples[:1], "cpu").items()}).loss
        mean = float(block_loss(model, tensors(examples[:1], "cpu"))) / examples[0].learned()
        self.assertAlmostEqual(float(everything), mean, places=4)

    def test_blocks_hold_every_example_once_and_no_more_tokens_than_they_may(self) -> None:
        import random

        from passnet.learn.packing import Example, pack

        lengths = [1, 7, 3, 3, 10, 2, 2, 9, 1, 4]
        examples = [Example([5] * length, [5] * length) for length in lengths]
        for length in (10, 25, 1000):
            blocks = pack(examples, length, random.Random(length))
            self.assertEqual(sorted(number for block in blocks for number in block), list(range(len(lengths))))
            self.assertTrue(all(len(block) * max(lengths[i] for i in block) <= length for block in blocks), blocks)
        self.assertEqual(len(blocks), 1)

    def test_training_killed_twice_ends_as_if_it_had_not_been(self) -> None:
        from safetensors.torch import load_file

        from passnet.learn import train as module

        with mock.patch.object(module, "say"):
            module.train(self.job("whole"))

        class Killed(Exception):
            pass

        def killer(at: int) -> Any:
            def note(out: Path, step: int, loss: float) -> None:
                original(out, step, loss)
                if step == at:
                    raise Killed

            return note

        original = module.note_loss
        job = self.job("killed")
        for at in (3, 4):
            with mock.patch.object(module, "say"), mock.patch.object(module, "note_loss", killer(at)):
                with self.assertRaises(Killed):
                    module.train(job)
        with mock.patch.object(module, "say") as said:
            module.train(job)
        self.assertGreater(said.call_args_list[0].kwargs["first"], 0, "it went on from a checkpoint")
        whole = load_file(Path(self.folder.name) / "whole/adapter_model.safetensors")
        killed = load_file(Path(self.folder.name) / "killed/adapter_model.safetensors")
        self.assertEqual(whole.keys(), killed.keys())
        for name, tensor in whole.items():
            self.assertTrue(tensor.equal(killed[name]), name)
        losses = [json.loads(line) for line in (Path(job.out) / "losses.jsonl").read_text().splitlines()]
        self.assertEqual([loss["step"] for loss in losses], list(range(len(losses))))
        self.assertLess(losses[-1]["loss"], losses[0]["loss"])

    def test_a_training_whose_starter_was_killed_writes_nothing_more(self) -> None:
        from passnet.learn import train as module
        from passnet.learn.job import JobError

        job = self.job("orphan")
        with mock.patch.object(module, "say"), mock.patch.object(module.os, "getppid", side_effect=[7, 7, 1]):
            with self.assertRaisesRegex(JobError, "is gone"):
                module.train(job)
        losses = (Path(job.out) / module.LOSSES).read_text(encoding="utf-8").splitlines()
        self.assertEqual([json.loads(line)["step"] for line in losses], [0])

    def test_bad_data_is_named_by_place(self) -> None:
        from passnet.learn.job import JobError
        from passnet.learn.packing import read_conversations

        path = Path(self.folder.name) / "bad.jsonl"
        for text in ("{}", "[]", "nonsense", '{"messages": [{"role": "user"}]}', '{"messages": 3}'):
            path.write_text(json.dumps({"messages": []}) + "\n" + text + "\n", encoding="utf-8")
            with self.assertRaisesRegex(JobError, "bad.jsonl:2:1"):
                read_conversations([str(path)])

    def test_replies_in_a_batch_are_those_one_by_one(self) -> None:
        from passnet.learn.job import ReplyJob
        from passnet.learn.reply import reply, serve

        model, tokenizer = self.load()
        job = ReplyJob(self.model_path, "cpu", None, 12, 120, 0.0, 0)
        asked = [messages[:2] for messages in CONVERSATIONS]
        asked[1] = [{"role": "user", "content": "a much longer question than the others"}]
        together = reply(model, tokenizer, asked, job)
        self.assertEqual(together, [reply(model, tokenizer, [one], job)[0] for one in asked])
        long = [{"role": "user", "content": "x" * 200}]
        self.assertEqual(reply(model, tokenizer, [long], job)[0]["stop"], "too_long")
        out = io.StringIO()
        serve(job, io.StringIO(json.dumps({"conversations": asked}) + "\nnonsense\n"), out)
        ready, answer, error = (json.loads(line) for line in out.getvalue().splitlines())
        self.assertEqual((ready, answer), ({"ready": True}, {"replies": together}))
        self.assertIn("error", error)

    def test_rows_that_end_leave_the_batch_and_change_nothing(self) -> None:
        import torch

        from passnet.learn.decode import decode, pick_by

        model, tokenizer = self.load()
        prompts = [list(range(3, 3 + length)) for length in (4, 9, 30)]
        whole = []
        for prompt in prompts:
            found = model.generate(
                input_ids=torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
                max_new_tokens=40, do_sample=False, eos_token_id=None, pad_token_id=tokenizer.pad_token_id,
            )
            whole.append(found[0, len(prompt) :].tolist())
        for end in {whole[0][17], whole[1][3], whole[2][0], -1}:
            expected = [row[: row.index(end)] if end in row else row for row in whole]
            for most in ([40, 40, 40], [40, 21, 2]):
                found = decode(model, prompts, tokenizer.pad_token_id, {end}, most, pick_by(0.0))
                self.assertEqual(found, [row[:limit] for row, limit in zip(expected, most, strict=True)])
        # The nucleus of a sure model is its first choice.
        logits = torch.tensor([[0.0, 9.0, 1.0], [9.0, 0.0, 1.0]])
        self.assertEqual(pick_by(1.0)(logits).tolist(), [1, 0])

    def test_recorded_steps_say_what_others_say(self) -> None:
        import torch

        from passnet.learn.decode import decode, pick_by

        if not torch.cuda.is_available():
            self.skipTest("needs a GPU")
        model, tokenizer = self.load()
        prompts = [list(range(3, 3 + length)) for length in (4, 9, 30)]
        ask = lambda end: decode(model, prompts, tokenizer.pad_token_id, {end}, [70, 60, 50], pick_by(0.0))  # noqa: E731
        ends = {-1} | {row[33] for row in ask(-1)}
        expected = {end: ask(end) for end in ends}
        model.to("cuda")
        self.assertEqual({end: ask(end) for end in ends}, expected)

    def test_an_adapter_says_the_same_merged_and_in_peft(self) -> None:
        import torch

        from passnet.learn import lora
        from passnet.learn.packing import tokens_of

        model, tokenizer = self.load()
        layers = lora.add(model, 4, 8.0, 1)
        generator = torch.Generator().manual_seed(5)
        with torch.no_grad():
            for layer in layers.values():
                # Numbers that bfloat16 holds.
                for part in (layer.lora_A, layer.lora_B):
                    part.copy_(torch.randn(part.shape, generator=generator).to(torch.bfloat16) * 0.125)
        folder = str(Path(self.folder.name) / "adapter")
        lora.save(layers, folder, self.model_path, 4, 8.0)
        tokens = torch.tensor([tokens_of(tokenizer, CONVERSATIONS[0][:2], reply_next=True)])
        expected = model(tokens).logits
        merged, _ = self.load()
        lora.merge(lora.load(merged, folder), merged)
        torch.testing.assert_close(merged(tokens).logits, expected, rtol=1e-4, atol=1e-4)
        plain, _ = self.load()
        self.assertGreater(float((plain(tokens).logits - expected).abs().max()), 0.01)
        if importlib.util.find_spec("peft") is None:
            self.skipTest("the rest needs peft")
        from peft import PeftModel

        other = PeftModel.from_pretrained(plain, folder)
        torch.testing.assert_close(other(tokens).logits, expected, rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    unittest.main()
