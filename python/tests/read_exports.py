"""Reads a folder of exports as the trainers they are for would: `python read_exports.py DIR [TRAINER]`.

A trainer that is not installed is said and left out; its documented form is checked all the same. With a TRAINER named,
the exit code is 77 then. Started by the test `trainers_read_what_is_written` of passnet-agent, and by `tools/full-check`
for each trainer, with the Python that has it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from byte_tokenizer import byte_tokenizer

# Tools and calls as the templates of the Qwen family put them in: arguments as JSON.
TEMPLATE = """{%- if tools %}<|im_start|>system
{{ messages[0].content }}{% for tool in tools %}
{{ tool | tojson }}{% endfor %}<|im_end|>
{% endif %}{%- for message in messages %}{%- if not (loop.first and tools and message.role == 'system') %}<|im_start|>{{ message.role }}
{{ message.content }}{% for call in message.tool_calls or [] %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endif %}{%- endfor %}{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""

ROLES = {"system", "user", "assistant", "tool"}
TOOLS = 9


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def check_messages(messages: list[dict[str, Any]], arguments: type) -> None:
    assert messages and all(message["role"] in ROLES for message in messages)
    for message in messages:
        assert isinstance(message["content"], str)
        for call in message.get("tool_calls", []):
            assert call["type"] == "function" and isinstance(call["function"]["arguments"], arguments), call


def check_rendered(text: str) -> None:
    """Every call of the rendered text is JSON whose arguments are an object, not a text in quotes."""
    calls = text.split("<tool_call>")[1:]
    for call in calls:
        found = json.loads(call.split("</tool_call>")[0])
        assert isinstance(found["arguments"], dict), found


def loaded(path: Path) -> Any:
    import datasets

    return datasets.load_dataset("json", data_files=str(path), split="train", cache_dir=str(path.parent / "cache"))


def read_trl(folder: Path) -> str:
    for name in ("trl", "trl-prompt-completion", "trl-prompt", "trl-preference", "trl-kto"):
        for line in lines(folder / f"{name}.jsonl"):
            for part in ("messages", "prompt", "completion", "chosen", "rejected"):
                if part in line:
                    check_messages(line[part], dict)
            assert len(line["tools"]) == TOOLS
    import trl
    from trl.data_utils import apply_chat_template, is_conversational

    # The template of Qwen2.5 as its makers wrote it, where TRL brings it along.
    shipped = Path(trl.__file__).parent / "chat_templates/qwen2_5.jinja"
    processing = byte_tokenizer(shipped.read_text(encoding="utf-8") if shipped.exists() else TEMPLATE)
    empty = []
    for name in ("trl", "trl-prompt-completion", "trl-prompt", "trl-preference", "trl-kto"):
        # Attempts that end with the same files make no pair.
        if not lines(folder / f"{name}.jsonl"):
            empty.append(name)
            continue
        keys = ("messages", "prompt", "completion", "chosen", "rejected", "label")
        for row in loaded(folder / f"{name}.jsonl"):
            assert is_conversational(row), name
            example = {key: row[key] for key in keys if key in row}
            rendered = apply_chat_template(example, processing, tools=row["tools"])
            text = "".join(value for value in rendered.values() if isinstance(value, str))
            # What stands before the first user's words describes the form of calls.
            check_rendered(text.partition("<|im_start|>user")[2])
            assert "pass_dir/" in text
    template = f"rendered with {shipped.stem}" if shipped.exists() else "rendered with a template like Qwen's"
    return f"read by trl {trl.__version__}, {template}" + "".join(f"; {name} has no lines" for name in empty)


def read_llama_factory(folder: Path) -> str:
    for line in lines(folder / "llama-factory.jsonl"):
        assert len(line["conversations"]) % 2 == 0 and isinstance(line["system"], str)
        assert len(json.loads(line["tools"])) == TOOLS
        for turn in line["conversations"]:
            if turn["from"] == "function_call":
                assert all(isinstance(call["arguments"], dict) for call in json.loads(turn["value"]))
    from llamafactory.data.converter import SharegptDatasetConverter
    from llamafactory.data.parser import DatasetAttr
    from llamafactory.hparams import DataArguments

    attribute = DatasetAttr("file", "llama-factory.jsonl", formatting="sharegpt")
    attribute.messages, attribute.tools, attribute.system = "conversations", "tools", "system"
    convert = SharegptDatasetConverter(attribute, DataArguments())
    for line in lines(folder / "llama-factory.jsonl"):
        found = convert(line)
        assert found["_prompt"] and found["_response"] and found["_tools"]
    return "read by llamafactory"


def read_axolotl(folder: Path) -> str:
    for line in lines(folder / "axolotl.jsonl"):
        check_messages(line["messages"], dict)
        assert all(isinstance(message["training"], bool) for message in line["messages"])
        assert any(message["training"] for message in line["messages"])
    from axolotl.prompt_strategies.chat_template import ChatTemplatePrompter, ChatTemplateStrategy

    prompter = ChatTemplatePrompter(byte_tokenizer(TEMPLATE), chat_template=TEMPLATE, message_field_training="training")
    strategy = ChatTemplateStrategy(
        prompter, tokenizer=byte_tokenizer(TEMPLATE), train_on_inputs=False, sequence_len=1 << 20, roles_to_train=[], train_on_eos="turn"
    )
    for line in lines(folder / "axolotl.jsonl"):
        found = strategy.tokenize_prompt(line)
        learned = [label for label in found["labels"] if label != -100]
        assert 0 < len(learned) < len(found["labels"])
    return "read by axolotl"


def read_verl(folder: Path) -> str:
    for line in lines(folder / "verl.jsonl"):
        check_messages(line["prompt"], dict)
        assert {"data_source", "reward_model", "extra_info"} <= line.keys()
        assert isinstance(line["extra_info"]["index"], int)
    from omegaconf import OmegaConf
    from verl.utils.dataset.rl_dataset import RLHFDataset

    config = OmegaConf.create({"max_prompt_length": 1 << 20, "filter_overlong_prompts": False, "cache_dir": str(folder)})
    dataset = RLHFDataset(str(folder / "verl.jsonl"), byte_tokenizer(TEMPLATE), config)
    assert dataset[0]["raw_prompt"]
    return "read by verl"


def read_openai(folder: Path) -> str:
    """The service's documented form: these fields and no others."""
    for line in lines(folder / "openai.jsonl"):
        assert line.keys() == {"messages", "tools"} and len(line["tools"]) == TOOLS
        check_messages(line["messages"], str)
        known: set[str] = set()
        for message in line["messages"]:
            allowed = {"role", "content", "tool_calls", "tool_call_id", "weight"}
            assert message.keys() <= allowed, message.keys()
            if message["role"] == "assistant":
                assert message["weight"] in (0, 1)
                for call in message.get("tool_calls", []):
                    json.loads(call["function"]["arguments"])
                    known.add(call["id"])
            if message["role"] == "tool":
                assert message["tool_call_id"] in known, "an answer to a call that was made"
    return "read"


READERS: dict[str, Callable[[Path], str]] = {
    "trl": read_trl,
    "llama-factory": read_llama_factory,
    "axolotl": read_axolotl,
    "verl": read_verl,
    "openai": read_openai,
}

ABSENT = 77


def main() -> int:
    named = sys.argv[2:]
    is_absent = False
    for framework in named or READERS:
        try:
            found = READERS[framework](Path(sys.argv[1]))
        except ImportError as error:
            # The checks of the form stand before the imports.
            found = f"form checked; the trainer is not here ({error})"
            is_absent = True
        print(f"{framework}: {found}", flush=True)
    return ABSENT if named and is_absent else 0


if __name__ == "__main__":
    sys.exit(main())
