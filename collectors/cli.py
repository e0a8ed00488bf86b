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

from collectors import installed, listing, mask, record, wanted
from collectors.cache import write_models
from collectors.campaign import Campaign
from collectors.client import Start, Worker, own_process
from collectors.errors import CollectError
from collectors.host import Host, vllm_command
from collectors.options import USAGE, parsed, parsed_inspect
from collectors.process import kill_all
from collectors.progress import Progress, clock
from collectors.record import Identity
from collectors.schedule import Plan
from collectors.settings import Settings
from collectors.study_file import read_study

FINE, INCOMPLETE = 0, 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["inspect"]:
        return _inspect(words[1:])
    options = parsed(words)
    try:
        return _collect(options, words)
    except CollectError as error:
        return _told(error)
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
    made = wanted.runs(wanted.study(options), options)
    host = wanted.host(options, made)
    if options.dry_run:
        gpus = options.gpus or tuple(range(max(arm.gpus * arm.replicas for arm in made.arms)))
        shown = replace(host, vllm=host.vllm or ("vllm",), router=host.router or ("vllm-router",))
        _print(listing.dry_run(made, shown, gpus))
        return FINE
    write_models(made.study)
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
    start, worker = _client(options, host, made, mark)
    try:
        settings = Settings(
            start,
            deadline=None if options.deadline is None else began + options.deadline,
            ready_seconds=options.ready_timeout,
            keep_texts=options.keep_texts,
            base_url=options.base_url,
            gpus=options.gpus or hardware.indices(gpus),
            profiler_flag=found.profiler_flag,
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
    options: argparse.Namespace, host: Host, made: Plan, mark: str
) -> tuple[Start, Worker | None]:
    """How clients are started: forks of one process where that can be had."""
    python = installed.interpreter(host.vllm)
    if options.client == "process" or not python or made.profiled:
        return own_process(mark), None
    log = host.results / made.study.name / ".client.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    worker = Worker(python, mark, log, made.study.servers.env)
    return worker.start, worker


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

    options = parsed_inspect(words)
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
        return _told(error)
    return FINE


def _told(error: CollectError) -> int:
    for problem in error.problems:
        print(f"collect: {problem}", file=sys.stderr)
    return USAGE


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)
    # A reader that has gone is noticed here, not when the interpreter ends.
    sys.stdout.flush()


def _version() -> str:
    with suppress(metadata.PackageNotFoundError):
        return metadata.version("serving-assay")
    return "unknown"


if __name__ == "__main__":
    sys.exit(main())
