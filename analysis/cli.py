"""`analyze`: arguments, messages, exit codes. The only module that prints.

Exit codes: 0 fine; 1 with --strict, when something could not be read or judged; 2 usage or input.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from analysis.model import told

if TYPE_CHECKING:
    from analysis.model import Skipped
    from analysis.pipeline import Analysis

RESERVED = ("doctor", "compare", "recommend", "predict", "export")
"""Words that are commands of `analyze` (some of later versions), never folders."""

WIDTH = 100
"""Columns of the printed table; fixed, so that equal input prints equal bytes."""


MOST_SKIPPED = 20
"""Skipped files named on the terminal; the report lists them all."""

MOST_NAME, MOST_CELL = 200, 4_000
"""Characters of a file's name and of a table's cell on the terminal."""


def parser() -> argparse.ArgumentParser:
    """The command line of `analyze`."""
    found = argparse.ArgumentParser(
        prog="analyze",
        description="Judge the claims of benchmark studies from their result files, offline, and "
        "write the findings as Markdown and JSON.",
        epilog="exit codes: 0 fine; 1 with --strict, when a file or claim could not be read; "
        "2 usage or input",
    )
    found.add_argument("results", metavar="RESULTS", help="results folder, or one result file")
    found.add_argument(
        "--out",
        metavar="DIR",
        default="",
        help="where the report goes: a site of its own (read it with `mkdocs serve -f "
        "DIR/mkdocs.yml`), or, where DIR lies below the docs folder of a site, its pages alone "
        "(default: docs/findings of the site in this folder, else report)",
    )
    found.add_argument(
        "--study",
        metavar="NAME",
        action="append",
        default=[],
        help="judge this study only; may be given several times",
    )
    found.add_argument(
        "--strict", action="store_true", help="exit 1 when a file or claim could not be read"
    )
    found.add_argument(
        "--jobs",
        metavar="N",
        type=_jobs,
        default=1,
        help="processes that read files (default: %(default)s); the output is the "
        "same for any number",
    )
    found.add_argument(
        "--format",
        choices=("table", "markdown", "json"),
        default="table",
        help="what is printed (default: %(default)s)",
    )
    return found


def main(argv: list[str] | None = None) -> int:
    """Run `analyze`; returns the exit code."""
    words = sys.argv[1:] if argv is None else argv
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What the terminal's encoding lacks is shown by its number, as on stderr.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = _command(words)
        print(end="", flush=True)  # now, while a full disk can still be told
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output has left (`analyze ... | head`): nothing is wrong with the work.
        _discard(sys.stdout)
        return 0
    except OSError as error:
        _discard(sys.stdout)
        return _fail(f"what is printed cannot be written: {error.strerror or error}")
    return code


def _command(words: list[str]) -> int:
    if words and words[0] in RESERVED:
        return _fail(
            f"the command {words[0]!r} is not in this version; a folder of that name "
            f"is ./{words[0]}"
        )
    try:
        args = parser().parse_args(words)
    except SystemExit as stop:
        return int(stop.code or 0)
    return _run(args)


def _run(args: argparse.Namespace) -> int:
    # Imported here: scipy and pandas take a second, which --help need not.
    from analysis.pipeline import analyse
    from analysis.report import pages, site, write
    from analysis.serialise import dumps
    from analysis.study import BadInput

    root = Path(args.results)
    try:
        if not root.exists():
            return _fail(f"{args.results}: no such file or folder; give a folder of result files")
        if args.out and Path(args.out).resolve().is_relative_to(root.resolve()):
            return _fail(
                f"--out {args.out}: lies in the results folder, where pages would be read as "
                "results or overwrite them; give a folder outside it"
            )
        analysis = analyse(root, jobs=args.jobs, only=args.study)
    except BadInput as error:
        return _fail(f"{args.results}: {error}")
    except OSError as error:
        return _fail(f"{args.results}: cannot be read: {error.strerror or error}")
    _say_skipped(analysis, args.results)
    if not any(report.study.cells for report in analysis.studies):
        return _fail(
            f"{args.results}: no run could be read; expected result files of `vllm bench "
            "serve --save-result`, or tables with a TOML sidecar"
        )
    out = args.out or _default_out()
    try:
        files = pages(analysis) if _in_a_site(Path(out)) else site(analysis)
        write(files, Path(out))
    except OSError as error:
        return _fail(f"--out {out}: cannot be written: {error.strerror or error}")
    if args.format == "json":
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")  # JSON is nothing else
        print(dumps(analysis), end="")
    else:
        print(_table(analysis, args.format))
        print(f"\n{len(files)} files written to {out}")
    return 1 if args.strict and any(not s.wanted for s in analysis.skipped) else 0


def _say_skipped(analysis: Analysis, results: str) -> None:
    """What could not be used: every mistake in a study's own files, then the first result files."""
    own: list[Skipped] = []
    rest: list[Skipped] = []
    for item in analysis.skipped:
        (own if item.file.endswith(("study.toml", "claims.toml")) else rest).append(item)
    for item in (*own, *rest[:MOST_SKIPPED]):
        _warn(f"skipped: {told(item.file or results, MOST_NAME)}: {item.reason}")
    if len(rest) > MOST_SKIPPED:
        more = len(rest) - MOST_SKIPPED
        _warn(f"skipped: {more} more files; the report lists them all")


def _default_out() -> str:
    """The findings of the site in this folder, or a report of its own."""
    return "docs/findings" if Path("mkdocs.yml").is_file() else "report"


def _in_a_site(out: Path) -> bool:
    """Whether a folder lies below the docs folder of a site."""
    parts = out.absolute().parents
    return any(p.name == "docs" and (p.parent / "mkdocs.yml").is_file() for p in parts)


def _table(analysis: Analysis, form: str) -> str:
    from analysis.report import markdown_table, pair_rows, run_rows, summary_rows, totals

    claims, runs = _told(summary_rows(analysis)), _told(run_rows(analysis))
    if form == "markdown":
        parts = []
        if claims:
            head = ("Study", "Claim", "Verdict", "Level", "Why")
            parts.append(markdown_table(head, claims))
        if runs:
            parts.append(markdown_table(("Study", "Runs", "Validity", "What they show"), runs))
        return "\n\n".join(parts)
    lines = [
        _row(f"{verdict:<12} {level}  ", f"{study}/{claim}: {why}")
        for study, claim, verdict, level, why in claims
    ]
    lines += [
        _row(f"{status:<12} ", f"{study}/{cell}: {words}") for study, cell, status, words in runs
    ]
    lines += [_row(" " * 13, told(text, MOST_CELL)) for text in pair_rows(analysis)]
    return "\n".join([*lines, "", *(told(line, MOST_CELL) for line in totals(analysis))])


def _told(rows: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Rows as a terminal may show them: names and sentences are the user's."""
    return [tuple(told(cell, MOST_CELL) for cell in row) for row in rows]


def _row(head: str, text: str) -> str:
    indent = " " * len(head)
    plain = " ".join(text.split())
    return textwrap.fill(plain, WIDTH, initial_indent=head, subsequent_indent=indent)


def _jobs(text: str) -> int:
    try:
        jobs = int(text)
    except ValueError:
        jobs = 0
    if not 1 <= jobs <= 256:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of processes; give 1 to 256")
    return jobs


def _fail(message: str) -> int:
    _warn(f"analyze: {told(message)}")
    return 2


def _warn(line: str) -> None:
    """A line on stderr, if anything can be written there."""
    try:
        print(line, file=sys.stderr)
    except OSError:
        _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    """Nothing more can be written to a stream, which Python would try once more at its end."""
    with contextlib.suppress(OSError):  # no file of the system's is behind it
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


if __name__ == "__main__":
    sys.exit(main())
