"""Tokens of texts by a model's own tokenizer, without loading vLLM.

`tokenizers` comes with vLLM. Where this interpreter has none, the one that runs vLLM is asked.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from collectors.datasets import Count
from collectors.errors import Problem

_TIMEOUT_S = 120
_COUNT = """
import json, sys
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_file(sys.argv[1])
tokenizer.no_truncation()
tokenizer.no_padding()
for line in sys.stdin:
    print(json.dumps([len(e.ids) for e in tokenizer.encode_batch(json.loads(line))]), flush=True)
"""


class TokenizerFailed(Exception):
    """The other interpreter gave no answer."""


def counter(folder: Path, python: str = "") -> Count | Problem:
    """What counts tokens as the tokenizer in a model's folder does.

    Args:
        folder: of the model.
        python: An interpreter that has `tokenizers`, where this one has not.
    """
    path = folder / "tokenizer.json"
    what = "prompt lengths"
    if not path.is_file():
        return Problem(
            what,
            f"no tokenizer.json in {folder}",
            "the model's own tokenizer",
            "fetch it into the model's folder, or name another with --model",
        )
    try:
        from tokenizers import Tokenizer
    except ImportError:
        if python:
            return _Other(python, path)
        return Problem(
            what, "the package tokenizers is not installed", todo="pip install tokenizers"
        )
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the package raises bare Exception
        return Problem(what, f"{path} cannot be read: {str(error)[:120]}", todo="fetch it again")
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def count(texts: Sequence[str]) -> list[int]:
        return [len(encoding.ids) for encoding in tokenizer.encode_batch(list(texts))]

    return count


class _Other:
    """Another interpreter, asked once for each batch."""

    def __init__(self, python: str, path: Path) -> None:
        self.python, self.path = python, path

    def __call__(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text.

        Raises:
            TokenizerFailed: it has no `tokenizers` either, or the file is of another kind.
        """
        try:
            done = subprocess.run(  # noqa: S603 - the interpreter of the user's own vLLM
                [self.python, "-c", _COUNT, str(self.path)],
                input=json.dumps(list(texts)) + "\n",
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=True,
            )
            found = json.loads(done.stdout)
        except subprocess.CalledProcessError as error:
            last = (error.stderr or "nothing said").strip().splitlines()[-1]
            raise TokenizerFailed(last[:160]) from None
        except (OSError, subprocess.TimeoutExpired, ValueError) as error:
            raise TokenizerFailed(str(error)[:160]) from None
        return [int(length) for length in found]
