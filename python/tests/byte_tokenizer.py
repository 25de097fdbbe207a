"""A tokenizer whose tokens are bytes, and a model for it, for tests that have none."""

from __future__ import annotations

from pathlib import Path
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


def write_byte_model(folder: Path, template: str) -> None:
    """A Hugging Face folder with a model of a few thousand random weights, whose tokens are bytes."""
    import torch
    import transformers

    tokenizer = byte_tokenizer(template)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(7)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=2048, eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None, tie_word_embeddings=True,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
