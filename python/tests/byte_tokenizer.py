"""A tokenizer whose tokens are bytes, for tests that have no model to take one from."""

from __future__ import annotations

from typing import Any


def byte_tokenizer(template: str) -> Any:
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE(vocab={letter: index for index, letter in enumerate(letters)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|im_end|>")
    wrapped.chat_template = template
    return wrapped
