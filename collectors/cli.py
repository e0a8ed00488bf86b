"""The command `collect`: arguments, exit codes, messages; the only module that prints."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from types import FrameType
from typing import NoReturn

from collectors import installed, listing, mask, record
from collectors.campaign import Campaign, Settings
from collectors.client import Start, Worker, own_process
from collectors.errors import BadInput, CollectError, Problem
from collectors.host import Host, router_command, vllm_command
from collectors.http import get_json
from collectors.process import kill_all
from collectors.progress import Progress, clock
from collectors.record import Identity
from collectors.schedule import Plan, Selection, plan
from collectors.server import READY_SECONDS
from collectors.study import Arm, Study, read_study, with_arm
from collectors.tables import nearest

FINE, INCOMPLETE, USAGE = 0, 1, 2
DEFAULT_STUDY = "quantization"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["inspect"]:
        return _inspect(words[1:])
    options = _parser().parse_args(words)
    try:
        return _collect(options, words)
    except CollectError as error:
        print(f"collect: {error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        print("collect: interrupted", file=sys.stderr)
        return INCOMPLETE
    except BrokenPipeError:
        # The reader of our output has gone: nothing is left to say, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return INCOMPLETE


def _collect(options: argparse.Namespace, words: Sequence[str]) -> int:
    if options.list:
        lines = listing.study(read_study(options.study)) if options.study else listing.studies()
        _print(lines)
        return FINE
    study = _study(options)
    wanted = Selection(
        tuple(options.arm),
        tuple(options.workload),
        tuple(options.concurrency),
        options.repeats,
        options.prompts,
    )
    made = plan(study, wanted)
    if not made.jobs:
        raise BadInput(
            Problem(f"study {study.name!r}", "has no run of what is asked for", todo="see --list")
        )
    host = _host(options, study)
    if options.dry_run:
        gpus = options.gpus or tuple(range(max(arm.gpus * arm.replicas for arm in made.arms)))
        shown = replace(host, vllm=host.vllm or ("vllm",), router=host.router or ("vllm-router",))
        _print(listing.dry_run(made, shown, gpus))
        return FINE
    return _checked(options, words, made, host)


def _checked(options: argparse.Namespace, words: Sequence[str], made: Plan, host: Host) -> int:
    """Ask everything that can fail, then make the runs."""
    from collectors import hardware, preflight

    found = preflight.check(made, host, base_url=options.base_url)
    for note in (*made.notes, *found.notes):
        print(f"note: {note}", file=sys.stderr)
    for problem in found.problems:
        print(f"collect: {problem}", file=sys.stderr)
    if found.problems:
        print(f"collect: {len(found.problems)} found; nothing was started", file=sys.stderr)
        return USAGE
    runs = len(made.jobs)
    print(f"{runs} runs, {len(made.sessions)} server starts: {found.estimate}", file=sys.stderr)
    if options.check:
        return FINE
    gpus = found.gpus
    identity = Identity(
        collector=f"serving-assay {_version()}",
        command=shlex.join(mask.words(["collect", *words])),
        versions=found.versions,
        machine={**record.processor(), **hardware.described(gpus)},
    )
    progress = Progress(runs, sys.stderr, found.estimate.seconds)
    mark = str((host.results / made.study.name).resolve())
    began = time.monotonic()
    _heed_signals()
    start, worker = _client(options, host, made.study, mark)
    try:
        settings = Settings(
            start,
            deadline=None if options.deadline is None else began + options.deadline,
            ready_seconds=options.ready_timeout,
            keep_texts=options.keep_texts,
            base_url=options.base_url,
            gpus=options.gpus or hardware.indices(gpus),
        )
        campaign = Campaign(made, host, identity, settings, progress)
        told = campaign.run()
    finally:
        if worker is not None:
            worker.stop()
    _print(listing.summary(told))
    print(f"results in {host.results / made.study.name}, {clock(time.monotonic() - began)}")
    return INCOMPLETE if told.failed or told.left or told.stopped else FINE


def _client(
    options: argparse.Namespace, host: Host, study: Study, mark: str
) -> tuple[Start, Worker | None]:
    """How clients are started: forks of one process where that can be had."""
    python = installed.interpreter(host.vllm)
    if options.client == "process" or not python:
        return own_process(mark), None
    log = host.results / study.name / ".client.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    worker = Worker(python, mark, log, study.servers.env)
    return worker.start, worker


def _study(options: argparse.Namespace) -> Study:
    """The study that is asked for; with --base-url, an arm that it has not is made up."""
    study = read_study(options.study or DEFAULT_STUDY)
    if not options.base_url:
        return study
    options.base_url = options.base_url.rstrip("/")
    arms = options.arm or ["server"]
    if len(arms) > 1:
        raise BadInput(Problem("--base-url", f"{len(arms)} arms", "one --arm: its name"))
    options.arm = arms
    if arms[0] in study.arms:
        return study
    told = get_json(f"{options.base_url}/v1/models")
    try:
        model = str(told["data"][0]["id"])
    except (TypeError, LookupError):
        raise BadInput(
            Problem(
                mask.text(options.base_url),
                "no server answers at /v1/models",
                todo="check the address",
            )
        ) from None
    return with_arm(study, Arm(arms[0], model, about="a server that somebody else runs"))


def _host(options: argparse.Namespace, study: Study) -> Host:
    from collectors.cache import made_models

    datasets = {name: Path(path) for name, path in options.dataset}
    return Host(
        vllm=vllm_command(options.vllm),
        router=router_command(options.router),
        results=Path(options.results),
        gpus=options.gpus,
        models={**made_models(study), **dict(options.model)},
        datasets=datasets,
        random_weights=options.random_weights,
        port=options.port,
        upload=options.upload,
    )


def _heed_signals() -> None:
    """The first signal ends the campaign in peace, the second at once; nothing is left behind."""

    def first(number: int, frame: FrameType | None) -> None:
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, second)
        raise KeyboardInterrupt

    def second(number: int, frame: FrameType | None) -> None:
        kill_all()

    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, first)


def _inspect(words: Sequence[str]) -> int:
    from collectors import inspection

    options = _inspect_parser().parse_args(words)
    try:
        _print(
            inspection.report(
                Path(options.dataset),
                model=options.model,
                prompts=options.num_prompts,
                seed=options.seed,
                max_model_len=options.max_model_len,
                save=None if options.save_samples is None else Path(options.save_samples),
                python=installed.interpreter(vllm_command(options.vllm)),
            )
        )
    except CollectError as error:
        print(f"collect: {error}", file=sys.stderr)
        return USAGE
    return FINE


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)
    # A reader that has gone is noticed here, not when the interpreter ends.
    sys.stdout.flush()


def _version() -> str:
    with suppress(metadata.PackageNotFoundError):
        return metadata.version("serving-assay")
    return "unknown"


def _pair(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=PATH")
    return name, path


def _indices(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(word) for word in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list such as 0,1") from None


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of 1 or more")
    return int(text)


class _Parser(argparse.ArgumentParser):
    """Tells what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """Say it, with the nearest right option of one that is unknown."""
        _, unknown, words = message.partition("unrecognized arguments: ")
        word = words.split()[0].partition("=")[0] if unknown else ""
        known = self._option_string_actions if word.startswith("-") else ["inspect"]
        hint = nearest(word, known) if unknown else "see --help"
        print(f"{self.prog}: {message}; {hint}", file=sys.stderr)
        raise SystemExit(USAGE)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="collect",
        description="Run benchmark arms on vLLM servers and keep what happened as raw files, for "
        "`analyze`. Interrupted, the same command goes on where it ended.",
        epilog="`collect inspect DATASET` shows the lengths of a dataset. Exit codes: 0 fine; 1 a "
        "run failed or was not made; 2 usage, input or something that is missing here.",
    )
    add = parser.add_argument
    add("--study", metavar="NAME|FILE", help=f"study to run (default: {DEFAULT_STUDY})")
    add("--arm", action="append", default=[], metavar="NAME", help="this arm; may be repeated")
    add("--workload", action="append", default=[], metavar="NAME", help="this workload; likewise")
    add(
        "--concurrency",
        action="append",
        type=_count,
        default=[],
        metavar="N",
        help="this many requests in flight; likewise, also loads the study does not list",
    )
    add("--repeats", type=_count, metavar="N", help="repeats of each run (default: the study's)")
    add("--prompts", type=_count, metavar="N", help="prompts of each run (default: the study's)")
    add("--results", default="results", metavar="DIR", help="results folder (default: results)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="ask all that can fail; run nothing")
    what.add_argument("--dry-run", action="store_true", help="print every command; run nothing")
    what.add_argument("--list", action="store_true", help="show the studies; run nothing")
    add("--base-url", default="", metavar="URL", help="drive a server that somebody else runs")
    add("--gpus", type=_indices, default=(), metavar="0,1", help="GPUs to use (default: all)")
    add("--port", type=_count, metavar="N", help="first port to use (default: free ones)")
    add("--vllm", default="", metavar="CMD", help="the command that is vllm")
    add("--router", default="", metavar="CMD", help="the command that is vllm-router")
    add(
        "--model",
        action="append",
        type=_pair,
        default=[],
        metavar="NAME=DIR",
        help="folder of a model that a study names; may be repeated",
    )
    add(
        "--dataset",
        action="append",
        type=_pair,
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
    add("--upload", default="", metavar="URL", help="copy runs there after each arm (fsspec)")
    add("--deadline", type=float, metavar="S", help="begin no run that would end later than this")
    add("--ready-timeout", type=float, default=READY_SECONDS, metavar="S", help=argparse.SUPPRESS)
    add("--keep-texts", action="store_true", help="keep generated texts of random weights, too")
    return parser


def _inspect_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="collect inspect",
        description="Show the lengths of a dataset's prompts and answers in tokens, and what they "
        "point to.",
    )
    add = parser.add_argument
    add("dataset", metavar="DATASET", help="ShareGPT JSON or custom JSONL")
    add("--model", required=True, metavar="DIR", help="model whose tokenizer counts")
    add("--num-prompts", type=_count, default=100, metavar="N", help="prompts (default: 100)")
    add("--seed", type=int, default=42, metavar="N", help="of the sample (default: 42)")
    add("--max-model-len", type=_count, metavar="N", help="what this would reject")
    add("--save-samples", metavar="FILE", help="write the sampled lengths as CSV")
    add("--vllm", default="", metavar="CMD", help="the vllm whose tokenizers may be used")
    return parser


if __name__ == "__main__":
    sys.exit(main())
