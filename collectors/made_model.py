"""A small model that the collector writes itself: a config, a tokenizer and no weights.

It is served with `--load-format dummy`. Real tokenizers split characters over tokens, so that a
stream of random tokens holds some back and the client sees fewer chunks than tokens; here each
token is text of its own. The tokenizer is a WordPiece: words of exactly five letters, and all
visible ASCII characters as pieces, so that any ASCII text has tokens. No word is longer or
shorter, so greedy matching never joins what was generated apart: text that is decoded and encoded
again has as many tokens as before (but for a text that begins inside a word).
"""

from __future__ import annotations

import itertools
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path

from collectors.study import MadeModel

END = "<|endoftext|>"
"""The one special token: it is decoded to nothing, so there is no other."""
UNKNOWN = "[UNK]"
PIECES = tuple(chr(code) for code in range(0x21, 0x7F))
"""The visible ASCII characters."""

_CONSONANTS = "bcdfghjklmnpqrstvwxyz"
_VOWELS = "aeiou"
_RANGES = (
    ("hidden", 1, 65536),
    ("layers", 1, 1024),
    ("heads", 1, 1024),
    ("kv_heads", 1, 1024),
    ("vocab", 2 + 2 * len(PIECES) + 64, len(_CONSONANTS) ** 3 * len(_VOWELS) ** 2),
    ("max_len", 16, 1 << 24),
)
"""Of each key, the least and the most. There are so many words of the vocabulary's kind."""


def problem(model: MadeModel) -> str:
    """Why a model cannot be made; empty where it can."""
    for key, least, most in _RANGES:
        if not least <= (value := getattr(model, key)) <= most:
            return f"{key} = {value}; needed: {least:,} to {most:,}"
    if model.hidden % model.heads or model.heads % model.kv_heads:
        return (
            f"hidden {model.hidden}, heads {model.heads}, kv_heads {model.kv_heads}: "
            "each must divide the one before"
        )
    return ""


def write(model: MadeModel, folder: Path) -> None:
    """Write the model's files; the same model gives the same bytes.

    Args:
        model: Its shape.
        folder: made where it is missing. `config.json` is written last, each file at once.

    Raises:
        ValueError: it cannot be made: see `problem`.
    """
    if reason := problem(model):
        raise ValueError(reason)
    words = _vocabulary(model.vocab)
    folder.mkdir(parents=True, exist_ok=True)
    _put(folder / "tokenizer.json", _tokenizer(words))
    _put(folder / "tokenizer_config.json", _tokenizer_config(model))
    _put(folder / "generation_config.json", {"eos_token_id": 0, "pad_token_id": 0})
    _put(folder / "config.json", _config(model))


def sharegpt_like(path: Path, model: MadeModel, n: int, seed: int) -> list[tuple[int, int]]:
    """Write a small file of ShareGPT's form, in words of the model.

    Args:
        path: of the file, written at once.
        model: whose tokenizer counts the tokens.
        n: conversations, of one question and one answer.
        seed: of lengths and words.

    Returns:
        Tokens of question and answer of each conversation, the answer's being the output that
        the benchmark client asks for. Log-normal like ShareGPT's, medians 60 and 90, within the
        limits of 4 and 1,024 that the client keeps to.
    """
    draw = random.Random(seed)  # noqa: S311
    words = _vocabulary(model.vocab)[2 : -2 * len(PIECES)]
    longest = min(1024, model.max_len // 2 - 1)
    lengths: list[tuple[int, int]] = []
    table = []
    for number in range(n):
        asked, answered = (
            max(4, min(longest, round(draw.lognormvariate(mu, 1.0)))) for mu in (4.1, 4.5)
        )
        lengths.append((asked, answered))
        talk = [
            {"from": who, "value": " ".join(draw.choices(words, k=length))}
            for who, length in (("human", asked), ("gpt", answered))
        ]
        table.append({"id": f"made-{number}", "conversations": talk})
    _put(path, table)
    return lengths


def _vocabulary(size: int) -> list[str]:
    """Tokens by their number: the special one, the unknown, words, characters, continuations."""
    count = size - 2 - 2 * len(PIECES)
    words = list(_words())
    # Spread over the alphabet, so that neighbours in number do not look alike.
    step = len(words) // count
    return [END, UNKNOWN, *words[::step][:count], *PIECES, *("##" + piece for piece in PIECES)]


def _words() -> Iterator[str]:
    for letters in itertools.product(_CONSONANTS, _VOWELS, _CONSONANTS, _VOWELS, _CONSONANTS):
        yield "".join(letters)


def _tokenizer(words: list[str]) -> dict[str, object]:
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": 0,
                "content": END,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": False},
        "model": {
            "type": "WordPiece",
            "unk_token": UNKNOWN,
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100_000,
            "vocab": {word: number for number, word in enumerate(words)},
        },
    }


def _tokenizer_config(model: MadeModel) -> dict[str, object]:
    chat = "{% for message in messages %}{{ message['content'] + '\\n' }}{% endfor %}"
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": model.max_len,
        "eos_token": END,
        "pad_token": END,
        "bos_token": None,
        "unk_token": None,
        "clean_up_tokenization_spaces": False,
        "chat_template": chat,
    }


def _config(model: MadeModel) -> dict[str, object]:
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "hidden_size": model.hidden,
        "intermediate_size": 3 * model.hidden,
        "num_hidden_layers": model.layers,
        "num_attention_heads": model.heads,
        "num_key_value_heads": model.kv_heads,
        "head_dim": model.hidden // model.heads,
        # Exactly the tokenizer's: a number without a token would be a chunk without text.
        "vocab_size": model.vocab,
        "max_position_embeddings": model.max_len,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1000000.0,
        "hidden_act": "silu",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "tie_word_embeddings": False,
        "use_sliding_window": False,
        "torch_dtype": "bfloat16",
        "bos_token_id": 0,
        "eos_token_id": 0,
        "initializer_range": 0.02,
        "use_cache": True,
    }


def _put(path: Path, table: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(json.dumps(table, indent=1, ensure_ascii=True) + "\n", "utf-8")
    fresh.replace(path)
