"""Advice: "when Y, choose X". Is there a case in the data for it, and one against?

Cases are taken from every study below the results folder: two arms on the same GPUs with the same
model and workload at equal requests in flight, one that follows the advice and one that does not,
where the condition holds. Pairs in which fields moved that the advice does not speak of, and those
with fewer requests in flight than replicas, are listed and left out.

What is counted is situations: one chosen arm on one workload at one load, however many arms it is
set against. A situation is for the advice when the chosen arm is better than all of them on every
metric named, against it when it is worse than one on one. One clear situation against refutes a
rule that is to hold always; "mostly" needs more than half of them, "sometimes" one. Since any of k
comparisons may be the one that says otherwise, it must do so at 5 % / k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import msgspec

from analysis.claims import ClaimBase
from analysis.claims._common import (
    Contrast,
    better,
    contrast,
    differences,
    directed,
    ratio_estimate,
)
from analysis.claims._waiting import spare
from analysis.dataset import Arm, Cell, Study, differing
from analysis.evidence import REPEATS, BadClaim, Evidence, Judgement, Missing, again
from analysis.metrics import label_of
from analysis.model import Estimate, Verdict
from analysis.server_config import weight_format
from analysis.study import ArmSpec, nearest
from analysis.wording import count_of, listing, plural, signed_percent


class When(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The condition; an empty field does not restrict."""

    slots_cover: bool | None = None
    """Whether the slots of the arm not chosen (of `slots_of`) hold the load with room to spare."""
    slots_of: Literal["choose", "over"] = "over"
    """`choose` or `over`: whose slots are meant."""
    at_least: int | None = None
    """Requests in flight."""
    at_most: int | None = None
    interconnect: tuple[str, ...] = ()
    fits_one_gpu: bool | None = None
    """The model with its weights fits one GPU of the arm (known from a start-up log or table)."""
    workload: str = ""
    """Of the claim's own study."""


class Claim(ClaimBase, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keys of a rule."""

    choose: dict[str, str | int | bool]
    """Fields of study.toml's arms that the advised arm has: {tensor_parallel = 2}."""
    over: dict[str, str | int | bool]
    """The same for the arm advised against."""
    metrics: tuple[str, ...]
    when: When = When()
    holds: Literal["always", "mostly", "sometimes"] = "always"
    """How often the sentence says that the choice is right."""
    same_model: bool = True
    """False where the advice is about the model's form itself (quantisation)."""


Outcome = Literal["for", "against", "open"]


@dataclass(frozen=True, eq=False, slots=True)
class _Match:
    """The chosen cell against one alternative, a contrast for every metric that both print."""

    other: Cell
    found: tuple[Contrast, ...]

    @property
    def outcome(self) -> Outcome:
        verdicts = [better(c.metric, c.direction) for c in self.found]
        return "against" if False in verdicts else "open" if None in verdicts else "for"


@dataclass(frozen=True, eq=False, slots=True)
class _Case:
    """A situation: one chosen cell and everything it is set against."""

    study: Study
    chosen: Cell
    matches: tuple[_Match, ...]

    @property
    def outcome(self) -> Outcome:
        """For only against all; against where one is clearly better."""
        seen = {match.outcome for match in self.matches}
        return "against" if "against" in seen else "open" if "open" in seen else "for"

    @property
    def deciding(self) -> tuple[_Match, ...]:
        """The alternatives that make the outcome what it is."""
        return tuple(match for match in self.matches if match.outcome == self.outcome)

    @property
    def strength(self) -> float:
        """The size of what decides: the least lead, the greatest loss, the greatest open one."""
        logs = [
            abs(math.log(c.ratio.value))
            for match in self.deciding
            for c in match.found
            if _OF[self.outcome] is better(c.metric, c.direction)
        ]
        return min(logs) if self.outcome == "for" else max(logs)


_OF: dict[Outcome, bool | None] = {"for": True, "against": False, "open": None}
"""Outcome -> what a deciding contrast says."""


def judge(claim: Claim, ev: Evidence) -> Judgement:
    """Collect the cases of all studies and weigh them."""
    for selector in (claim.choose, claim.over):
        known = {field.name for field in msgspec.structs.fields(ArmSpec)}
        for key in selector:
            if key not in known:
                raise BadClaim(f"selects arms by {key!r}; {nearest(key, known)}")
    if not claim.metrics:
        raise BadClaim("names no metrics to choose by; add `metrics`")
    for metric in claim.metrics:
        directed(ev, metric)
    left_out: list[str] = []
    found = [case for study in ev.dataset.studies for case in _cases(claim, ev, study, left_out)]
    cases = _picked(claim, ev, found)
    if not cases:
        raise Missing(
            f"result files of arms with {_selector(claim.choose)} and with "
            f"{_selector(claim.over)} on equal GPUs, model, workload and load"
            + (" where the condition holds" if claim.when != When() else ""),
            f"searched in {listing(study.name for study in ev.dataset.studies)}"
            + (f"; {left_out[0]}" if left_out else "")
            + (f" (and {plural(len(left_out) - 1, 'pair')} more)" if left_out[1:] else "")
            + "".join(f"; {hint}" for hint in _hints(claim, ev)),
        )
    outcomes: tuple[Outcome, ...] = ("against", "open", "for")
    by = {name: [case for case in cases if case.outcome == name] for name in outcomes}
    verdict = _verdict(claim, len(by["for"]), len(by["against"]), len(by["open"]))
    for of_outcome in by.values():
        of_outcome.sort(key=lambda case: case.strength, reverse=True)
    deciding = {"supported": by["for"], "refuted": by["against"]}.get(verdict, by["open"])
    lead = deciding[0]
    rest = [case for name in outcomes for case in by[name] if case is not lead]
    ordered = [lead, *rest]
    same = [case for case in deciding if case.study is lead.study]
    return Judgement(
        verdict,
        (
            _words(lead, claim.metrics) + ".",
            f"Of {plural(len(cases), 'situation')}, {_are(len(by['for']))} for the advice, "
            f"{_are(len(by['against']))} against it and {_are(len(by['open']))} within noise.",
            *(f"{_LABEL[case.outcome]}: {_words(case, claim.metrics)}." for case in rest),
        ),
        tuple(number for case in ordered for number in _numbers(case)),
        assumptions=tuple(left_out),
        confounds=tuple(
            dict.fromkeys(
                f"{case.chosen.arm.name} against {match.other.arm.name} ({case.study.name}): "
                f"{field}"
                for case in cases
                for match in case.matches
                for field in differences(match.other, case.chosen)
            )
        ),
        flips="a clear case the other way under the same condition",
        cells=tuple(dict.fromkeys(cell for case in ordered for cell in _cells(case))),
        experiment=again(
            *(cell for case in same for cell in _cells(case)),
            repeats=REPEATS,
        ),
    )


_LABEL: dict[Outcome, str] = {"for": "For", "against": "Against", "open": "Open"}


def _are(count: int) -> str:
    return f"{count} {'is' if count == 1 else 'are'}"


def _cells(case: _Case) -> tuple[Cell, ...]:
    return (case.chosen, *(match.other for match in case.matches))


def _verdict(claim: Claim, good: int, bad: int, undecided: int) -> Verdict:
    """Weigh the cases by how often the sentence says that the advice holds."""
    if claim.holds == "sometimes":
        return "supported" if good else "inconclusive" if undecided else "refuted"
    if claim.holds == "mostly":
        if good > bad + undecided:
            return "supported"
        return "refuted" if bad >= good + undecided else "inconclusive"
    if bad:
        return "refuted"
    return "supported" if good and not undecided else "inconclusive"


def _cases(claim: Claim, ev: Evidence, study: Study, left_out: list[str]) -> list[_Case]:
    cases = []
    for chosen in study.cells:
        if not _selected(chosen.arm, claim.choose):
            continue
        matches = []
        for other in study.cells:
            same = (other.workload, other.concurrency) == (chosen.workload, chosen.concurrency)
            if other.arm is chosen.arm or not same or not _selected(other.arm, claim.over):
                continue
            if not _comparable(chosen.arm, other.arm, claim.same_model):
                continue
            if not _holds(claim.when, ev, study, chosen, other):
                continue
            why = _why_not(claim, chosen, other)
            if why:
                left_out.append(
                    f"{chosen.name} against {other.arm.name} ({study.name}) is left out: {why}"
                )
                continue
            contrasts = _contrasts(claim, ev, chosen, other)
            if contrasts:
                matches.append(_Match(other, contrasts))
        if matches:
            cases.append(_Case(study, chosen, tuple(matches)))
    return cases


def _why_not(claim: Claim, chosen: Cell, other: Cell) -> str:
    """Why two cells are no case: something else moved, or some replicas get no request."""
    extra = _moved_besides(claim, chosen.arm, other.arm)
    if extra:
        return f"{count_of(extra, 3)} moved as well"
    n, most = chosen.concurrency, max(chosen.arm.spec.replicas, other.arm.spec.replicas)
    if n is not None and n < most:
        return f"only {n} of {most} replicas {'works' if n == 1 else 'work'}"
    return ""


def _picked(claim: Claim, ev: Evidence, cases: list[_Case]) -> list[_Case]:
    """The cases with what alone may decide held to a family: losses, and wins of "sometimes"."""
    losses = sum(len(match.found) for case in cases for match in case.matches)
    families = {False: losses, True: len(cases) if claim.holds == "sometimes" else 1}

    def again_in_family(chosen: Cell, other: Cell, found: Contrast) -> Contrast:
        family = families.get(better(found.metric, found.direction) is True, 1)
        return found if family == 1 else contrast(ev, other, chosen, found.metric, family=family)

    return [
        replace(
            case,
            matches=tuple(
                replace(
                    match,
                    found=tuple(
                        again_in_family(case.chosen, match.other, found) for found in match.found
                    ),
                )
                for match in case.matches
            ),
        )
        for case in cases
    ]


def _selected(arm: Arm, selector: dict[str, str | int | bool]) -> bool:
    return all(_is(key, getattr(arm.spec, key), value) for key, value in selector.items())


def _is(key: str, found: object, wanted: str | int | bool) -> bool:
    """Whether a field has the value; weights in one format are one quantisation by any name."""
    if key == "quantization" and isinstance(found, str) and isinstance(wanted, str):
        return weight_format(found) == weight_format(wanted)
    return found == wanted


def _hints(claim: Claim, ev: Evidence) -> list[str]:
    """What the author may have meant: the values there are, and models that differ."""
    by_study = [
        list(dict.fromkeys(cell.arm for cell in study.cells)) for study in ev.dataset.studies
    ]
    arms = [arm for own in by_study for arm in own]
    hints = []
    for selector in (claim.choose, claim.over):
        if any(_selected(arm, selector) for arm in arms):
            continue
        absent = [
            key for key in selector if not any(_selected(a, {key: selector[key]}) for a in arms)
        ]
        hints += [f"{key} is {_values(key, arms)} here" for key in absent or selector]
    pairs = [
        (chosen, other)
        for own in by_study
        for chosen in own
        for other in own
        if chosen is not other
        and _selected(chosen, claim.choose)
        and _selected(other, claim.over)
        and _comparable(chosen, other, same_model=False)
    ]
    if pairs and not any(_comparable(*pair, claim.same_model) for pair in pairs):
        hints.append("the arms selected differ in model: set same_model = false")
    return list(dict.fromkeys(hints))


def _values(key: str, arms: Sequence[Arm]) -> str:
    """ "8 or not stated": every value that a field has, as study.toml writes it; a few of many."""
    found = [getattr(arm.spec, key) for arm in arms]
    stated = list(
        dict.fromkeys(
            str(value).lower() if isinstance(value, bool) else str(value)
            for value in found
            if value not in ("", None)
        )
    )
    if len(stated) > _MOST_VALUES:
        stated = [*stated[:_MOST_VALUES], f"one of {len(stated) - _MOST_VALUES} more"]
    if len(stated) == 0 or "" in found or None in found:
        stated.append("not stated")
    return listing(stated, "or")


_MOST_VALUES = 6


def _comparable(a: Arm, b: Arm, same_model: bool) -> bool:
    """Equal hardware, and the same model unless the advice is about the model's form."""
    hardware = a.spec.gpu == b.spec.gpu and a.spec.gpus == b.spec.gpus and a.spec.gpu != ""
    return hardware and (not same_model or a.spec.model == b.spec.model)


_GOES_WITH = {
    "replicas": ("router",),
    "quantization": ("model", "quantization_kernel"),
    "model": ("quantization", "quantization_kernel"),
}
"""Fields that cannot but move with a selected one (replicas need a router)."""


def _moved_besides(claim: Claim, chosen: Arm, other: Arm) -> list[str]:
    """Fields that differ between the arms and that the advice does not speak of."""
    spoken = {*claim.choose, *claim.over, "host", "gpus", "interconnect"}
    spoken |= {name for key in tuple(spoken) for name in _GOES_WITH.get(key, ())}
    return [key for key in differing(chosen, other) if key not in spoken]


def _holds(when: When, ev: Evidence, study: Study, chosen: Cell, other: Cell) -> bool:
    n = chosen.concurrency
    by_load = (when.at_least, when.at_most, when.slots_cover) != (None, None, None)
    if n is None and by_load:
        return False
    if when.at_least is not None and n is not None and n < when.at_least:
        return False
    if when.at_most is not None and n is not None and n > when.at_most:
        return False
    if when.workload and (study is not ev.study or chosen.workload != when.workload):
        return False
    if when.interconnect and chosen.arm.spec.interconnect not in when.interconnect:
        return False
    if when.fits_one_gpu is not None and _fits(chosen.arm, other.arm) is not when.fits_one_gpu:
        return False
    if when.slots_cover is not None:
        return spare(chosen if when.slots_of == "choose" else other) is when.slots_cover
    return True


def _fits(*arms: Arm) -> bool | None:
    """Whether one GPU holds the model: proven by an arm that runs on one, else by size."""
    for arm in arms:
        if arm.spec.tensor_parallel * arm.spec.pipeline_parallel == 1:
            return True
    arm = arms[0]
    if arm.model is None or arm.gpu is None:
        return None
    return arm.model.weight_bytes() < 0.9 * arm.gpu.memory_bytes


def _contrasts(claim: Claim, ev: Evidence, chosen: Cell, other: Cell) -> tuple[Contrast, ...]:
    return tuple(
        contrast(ev, other, chosen, metric)
        for metric in claim.metrics
        if chosen.metric(metric) is not None and other.metric(metric) is not None
    )


def _words(case: _Case, metrics: Sequence[str]) -> str:
    """ "A beats b and c on w at 10 in flight (study): throughput +31.0 to +41.3 %"."""
    verb = {"for": "beats", "against": "loses to", "open": "does not clearly beat"}[case.outcome]
    deciding = case.deciding
    besides = [match.other.arm.name for match in case.matches if match not in deciding]
    load = "no cap" if case.chosen.concurrency is None else f"{case.chosen.concurrency} in flight"
    printed = {c.metric for match in deciding for c in match.found}
    changes = listing(_changes(metric, deciding) for metric in metrics if metric in printed)
    lacking = [label_of(metric) for metric in metrics if metric not in printed]
    also = f" ({listing(lacking)} not printed)" if lacking else ""
    also += f" (also set against {listing(besides)})" if besides else ""
    return (
        f"{case.chosen.arm.name} {verb} {listing(m.other.arm.name for m in deciding)} on "
        f"{case.chosen.workload} at {load} ({case.study.name}): {changes}{also}"
    )


def _changes(metric: str, matches: Sequence[_Match]) -> str:
    """ "mean TTFT -25.8 to -23.3 %", over the alternatives."""
    found = sorted(
        (c for match in matches for c in match.found if c.metric == metric),
        key=lambda c: c.ratio.value,
    )
    least, most = (signed_percent(c.ratio.value - 1) for c in (found[0], found[-1]))
    text = least if least == most else f"{least.removesuffix(' %')} to {most}"
    noise = " (within noise)" if any(c.direction == "undecided" for c in found) else ""
    return f"{label_of(metric)} {text}{noise}"


def _numbers(case: _Case) -> tuple[Estimate, ...]:
    return tuple(
        ratio_estimate(
            c,
            f"{label_of(c.metric)}, {case.chosen.arm.name} / {match.other.arm.name}, "
            f"{case.chosen.workload}, {case.chosen.concurrency} in flight, {case.study.name}",
        )
        for match in case.matches
        for c in match.found
    )


def _selector(selector: dict[str, str | int | bool]) -> str:
    return listing(f"{key} = {value}" for key, value in selector.items()) or "any configuration"
