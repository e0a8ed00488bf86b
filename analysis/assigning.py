"""The [[assign]] rules of study.toml: which record is of which arm and workload, or left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from analysis.model import Run, Scalar, Skipped
from analysis.study import Assign, nearest

_LONGEST = 60
"""Characters of a value that is suggested in place of another."""


@dataclass(frozen=True, eq=False, slots=True)
class Assigned:
    """Runs as the rules make them, and what the rules could not do."""

    runs: tuple[Run, ...]
    left_out: tuple[Run, ...]
    """Runs that a rule leaves out."""
    logs: Mapping[str, str]
    """The server log that a rule names, as the rule writes it, by the run's id."""
    unmatched: tuple[str, ...]
    """One line for each rule that matches no record."""


LEFT_OUT = "left out by study.toml"
"""Reason of a record that its study leaves out on purpose: listed, but nothing is wrong with it."""


def assigned(runs: Sequence[Run], rules: Sequence[Assign]) -> Assigned:
    """Apply the rules in their order; of each thing they say, the first to say it counts."""
    facts = [_facts(run) for run in runs]
    idle = dict.fromkeys(range(len(rules)))
    kept: list[Run] = []
    left_out: list[Run] = []
    logs: dict[str, str] = {}
    for run, known in zip(runs, facts, strict=True):
        matching = [
            number
            for number, rule in enumerate(rules)
            if all(_same(known.get(key), value) for key, value in rule.where.items())
        ]
        for number in matching:
            idle.pop(number, None)
        mine = [rules[number] for number in matching]
        (left_out if any(rule.ignore for rule in mine) else kept).append(_with(run, mine))
        log = next((rule.log for rule in mine if rule.log), "")
        if log:
            logs[run.id] = log
    unmatched = [f"[[assign]] number {n + 1} {_why_idle(rules[n], facts)}" for n in idle]
    return Assigned(tuple(kept), tuple(left_out), logs, tuple(unmatched))


def skipped_by_rule(run: Run) -> Skipped:
    """The line for a run that study.toml leaves out."""
    place = f"{run.source.key}: " if run.source.key else ""
    return Skipped(run.source.file, f"{place}{LEFT_OUT}", wanted=True)


def _with(run: Run, rules: Sequence[Assign]) -> Run:
    """The run with what the rules say of it, each thing as the first rule to give it says."""
    arm = next((rule.arm for rule in rules if rule.arm), "")
    workload = next((rule.workload for rule in rules if rule.workload), "")
    load = next((rule.concurrency for rule in rules if rule.concurrency is not None), None)
    seed = next((rule.seed for rule in rules if rule.seed is not None), None)
    emptied = next(
        (rule.prefix_cache_emptied for rule in rules if rule.prefix_cache_emptied is not None), None
    )
    said: dict[str, Scalar] = {"seed": seed, "prefix_cache_emptied": emptied}
    return replace(
        run,
        arm=run.arm or arm,
        workload=run.workload or workload,
        concurrency=run.concurrency if load is None else load,
        config={**run.config, **{key: value for key, value in said.items() if value is not None}},
    )


def _facts(run: Run) -> dict[str, Scalar]:
    """What a rule can look at: every key of the record, where it stands, and its figures."""
    facts: dict[str, Scalar] = {
        **run.config,
        "record": run.source.key,
        "file": run.source.file,
        "folder": PurePosixPath(run.source.file).parent.as_posix(),
    }
    facts.update({name: figure.value for name, figure in run.figures.items()})
    return facts


def _same(found: Scalar, wanted: Scalar) -> bool:
    if isinstance(found, str) and isinstance(wanted, str):
        return found == wanted or found.endswith(f"/{wanted}")
    return found == wanted


def _why_idle(rule: Assign, facts: Sequence[Mapping[str, Scalar]]) -> str:
    """Why a rule matches no record, with the nearest word that would."""
    if not facts:
        return "matches no record: none was read in this study"
    for key, wanted in rule.where.items():
        values = [known[key] for known in facts if key in known]
        if not values:
            known = {name for one in facts for name in one if len(name) <= _LONGEST}
            return f"matches no record: none has the key {key!r}; {nearest(key, known)}"
        if not any(_same(value, wanted) for value in values):
            shown = repr(wanted) if isinstance(wanted, str) else _text(wanted)
            return f"matches no record: none has {key} = {shown}; {_hint(wanted, values)}"
    return "matches no record: none has all of its values at once"


def _hint(wanted: Scalar, values: Sequence[Scalar]) -> str:
    """The nearest value there is; or that the right one is written as the wrong type."""
    if any(_text(value) == _text(wanted) for value in values):
        quotes = "without" if isinstance(wanted, str) else "in"
        return f"write it {quotes} quotes, as the files do"
    last_part = isinstance(wanted, str) and "/" not in wanted
    return nearest(_text(wanted), _words(values, last_part))


def _words(values: Sequence[Scalar], last_part: bool) -> set[str]:
    """Values as a rule would write them: of a path, its last part is enough."""
    texts = {_text(value) for value in values if value not in (None, "")}
    if last_part:
        texts = {PurePosixPath(text).name or text for text in texts}
    return {text for text in texts if len(text) <= _LONGEST}


def _text(value: Scalar) -> str:
    """A value as a TOML file spells it; a count that a file holds as a float, as a count."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
