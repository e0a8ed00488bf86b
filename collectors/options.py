"""The words after `collect` -> options; what is wrong with them is told in one line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from collectors import option_types
from collectors.starting import READY_SECONDS
from collectors.study import MOST_CONCURRENCY, MOST_PROMPTS, MOST_REPEATS
from collectors.tables import nearest

USAGE = 2
DEFAULT_STUDY = "quantization"


def parsed(words: Sequence[str]) -> argparse.Namespace:
    """The options of `collect`.

    Raises:
        SystemExit: with 2, after one line on stderr; with 0, after the help.
    """
    found = _read(_parser(), words)
    # As defaults these would be checked like words.
    found.base_url, found.upload = found.base_url or "", found.upload or ""
    return found


def parsed_inspect(words: Sequence[str]) -> argparse.Namespace:
    """The options of `collect inspect`; raises as `parsed` does."""
    return _read(_inspect_parser(), words)


def _read(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    for word in words:
        # What a shell passes on from a file's name need not be text.
        if "\0" in word or word.encode("utf-8", "replace").decode() != word:
            parser.error(f"{word!a} is no UTF-8 text")
    return parser.parse_args(words)


class _Parser(argparse.ArgumentParser):
    """Tells what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """Say it, with the nearest right option of one that is unknown."""
        _, unknown, words = message.partition("unrecognized arguments: ")
        word = words.split()[0].partition("=")[0] if words.split() else ""
        known = self._option_string_actions if word.startswith("-") else ["inspect"]
        hint = nearest(word, known) if unknown else "see --help"
        line = " ".join(f"{self.prog}: {message}; {hint}".splitlines())
        self.exit(USAGE, f"{line}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="collect",
        description="Run benchmark arms on vLLM servers and keep what happened as raw files, for "
        "`analyze`. Interrupted, the same command goes on where it ended.",
        epilog="`collect inspect DATASET` shows the lengths of a dataset. Exit codes: 0 fine; 1 a "
        "run failed or was not made; 2 usage, input or something that is missing here.",
    )
    add = parser.add_argument
    add(
        "--study",
        type=option_types.filled,
        metavar="NAME|FILE",
        help=f"study to run (default: {DEFAULT_STUDY})",
    )
    add("--arm", action="append", default=[], metavar="NAME", help="this arm; may be repeated")
    add("--workload", action="append", default=[], metavar="NAME", help="this workload; likewise")
    add(
        "--concurrency",
        action="append",
        type=option_types.count(MOST_CONCURRENCY),
        default=[],
        metavar="N",
        help="this many requests in flight; likewise, also loads that no workload lists",
    )
    add(
        "--repeats",
        type=option_types.count(MOST_REPEATS),
        metavar="N",
        help="repeats of each run (default: the study's)",
    )
    add(
        "--prompts",
        type=option_types.count(MOST_PROMPTS),
        metavar="N",
        help="prompts of each run (default: the study's)",
    )
    add(
        "--results",
        type=option_types.filled,
        default="results",
        metavar="DIR",
        help="results folder (default: results)",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="ask all that can fail; run nothing")
    what.add_argument("--dry-run", action="store_true", help="print every command; run nothing")
    what.add_argument("--list", action="store_true", help="show the studies; run nothing")
    add(
        "--profile",
        type=option_types.batches,
        nargs="?",
        const=(),
        metavar="1,10",
        help="instead of runs, a torch-profiler capture of decode steps at so many requests in "
        "flight, on servers that are not timed (default: the arms' key profile)",
    )
    add(
        "--base-url",
        type=option_types.url,
        metavar="URL",
        help="drive a server that somebody else runs",
    )
    add(
        "--gpus",
        type=option_types.indices,
        default=(),
        metavar="0,1",
        help="GPUs to use (default: all)",
    )
    add(
        "--port",
        type=option_types.count(65535),
        metavar="N",
        help="first port to use (default: free ones)",
    )
    add(
        "--vllm",
        type=option_types.command,
        default=(),
        metavar="CMD",
        help="the command that is vllm",
    )
    add(
        "--router",
        type=option_types.command,
        default=(),
        metavar="CMD",
        help="the command that is vllm-router",
    )
    add(
        "--model",
        action="append",
        type=option_types.pair,
        default=[],
        metavar="NAME=DIR",
        help="folder of a model that a study names; may be repeated",
    )
    add(
        "--dataset",
        action="append",
        type=option_types.pair,
        default=[],
        metavar="NAME=FILE",
        help="file of a workload's dataset; may be repeated",
    )
    add(
        "--random-weights",
        action="store_true",
        help="serve the models' shapes with random weights: timings are real, texts are not",
    )
    add(
        "--client",
        choices=("forked", "process"),
        default="forked",
        help="pay the client's imports once, or for each run (default: forked)",
    )
    add(
        "--upload",
        type=option_types.url,
        metavar="URL",
        help="copy runs there after each arm (fsspec)",
    )
    add(
        "--deadline",
        type=option_types.seconds,
        metavar="S",
        help="begin no run that would end later than this",
    )
    add(
        "--ready-timeout",
        type=option_types.seconds,
        default=READY_SECONDS,
        metavar="S",
        help=argparse.SUPPRESS,
    )
    add("--keep-texts", action="store_true", help="keep generated texts of random weights, too")
    return parser


def _inspect_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="collect inspect",
        description="Show the lengths of a dataset's prompts and answers in tokens, and what they "
        "point to.",
    )
    add = parser.add_argument
    add(
        "dataset", type=option_types.filled, metavar="DATASET", help="ShareGPT JSON or custom JSONL"
    )
    add(
        "--model",
        type=option_types.filled,
        required=True,
        metavar="DIR",
        help="model whose tokenizer counts",
    )
    add(
        "--num-prompts",
        type=option_types.count(MOST_PROMPTS),
        default=100,
        metavar="N",
        help="prompts (default: 100)",
    )
    add(
        "--seed",
        type=option_types.count(2**48, least=0),
        default=42,
        metavar="N",
        help="of the sample (default: 42)",
    )
    add(
        "--max-model-len",
        type=option_types.count(10**12),
        metavar="N",
        help="what this would reject",
    )
    add(
        "--save-samples",
        type=option_types.filled,
        metavar="FILE",
        help="write the drawn prompts and their lengths, as JSON lines",
    )
    add(
        "--vllm",
        type=option_types.command,
        default=(),
        metavar="CMD",
        help="the vllm whose tokenizers may be used",
    )
    return parser
