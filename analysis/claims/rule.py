"""Advice: "when Y, choose X". Is there a case in the data for it, and one against?

Cases are taken from every study below the results folder: two arms on the same GPUs with the same
model and workload at equal requests in flight, one that follows the advice and one that does not,
where the condition holds. Pairs in which fields moved that the advice does not speak of are
listed and left out. A case counts for the advice when the chosen arm is better on every metric
named, against it when it is worse on one. One clear case against refutes a rule that is to hold
always; "mostly" needs more than half of the cases, "sometimes" one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from analysis.claims import ClaimBase
from analysis.claims._common import better, contrast, directed, moved, ratio_estimate
from analysis.claims._waiting import spare
from analysis.dataset import Arm, Cell, Study, differing
from analysis.evidence import BadClaim, Evidence, Experiment, Judgement, Missing
from analysis.metrics import label_of
from analysis.model import Estimate, Verdict
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


@dataclass(frozen=True, eq=False, slots=True)
class _Case:
    study: Study
    chosen: Cell
    other: Cell
    outcome: str
    words: str
    numbers: tuple[Estimate, ...]


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
    cases = [case for study in ev.dataset.studies for case in _cases(claim, ev, study, left_out)]
    if not cases:
        raise Missing(
            f"result files of arms with {_words(claim.choose)} and with {_words(claim.over)} on "
            "equal GPUs, model, workload and load"
            + (" where the condition holds" if claim.when != When() else ""),
            f"searched in {listing(study.name for study in ev.dataset.studies)}",
        )
    by = {name: [c for c in cases if c.outcome == name] for name in ("for", "against", "open")}
    verdict = _verdict(claim, len(by["for"]), len(by["against"]), len(by["open"]))
    count = (
        f"Of {plural(len(cases), 'case')}, {len(by['for'])} for the advice, "
        f"{len(by['against'])} against, {len(by['open'])} within noise."
    )
    cells = tuple(dict.fromkeys(cell for c in cases for cell in (c.chosen, c.other)))
    settle = (by["against"] or by["open"] or by["for"])[0]
    return Judgement(
        verdict,
        (
            count,
            *(
                f"{_label(c.outcome)}: {c.words}."
                for name in ("against", "for", "open")
                for c in by[name]
            ),
        ),
        tuple(number for case in cases for number in case.numbers),
        assumptions=tuple(left_out),
        confounds=tuple(
            dict.fromkeys(
                f"{c.chosen.arm.name} against {c.other.arm.name}: {field}"
                for c in cases
                for field in moved(c.other.arm, c.chosen.arm)
            )
        ),
        flips="a clear case the other way under the same condition",
        cells=cells,
        experiment=Experiment(
            (settle.chosen.arm.name, settle.other.arm.name),
            (settle.chosen.workload,),
            () if settle.chosen.concurrency is None else (settle.chosen.concurrency,),
        ),
    )


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


def _label(outcome: str) -> str:
    return {"for": "For", "against": "Against", "open": "Open"}[outcome]


def _cases(claim: Claim, ev: Evidence, study: Study, left_out: list[str]) -> list[_Case]:
    cases = []
    for chosen in study.cells:
        if not _selected(chosen.arm, claim.choose):
            continue
        for other in study.cells:
            same = (other.workload, other.concurrency) == (chosen.workload, chosen.concurrency)
            if other.arm is chosen.arm or not same or not _selected(other.arm, claim.over):
                continue
            if _comparable(chosen.arm, other.arm, claim.same_model) and _holds(
                claim.when, ev, study, chosen, other
            ):
                extra = _moved_besides(claim, chosen.arm, other.arm)
                if extra:
                    left_out.append(
                        f"{chosen.name} against {other.arm.name} is left out: "
                        f"{count_of(extra, 3)} moved as well"
                    )
                    continue
                case = _weigh(claim, ev, study, chosen, other)
                if case is not None:
                    cases.append(case)
    return cases


def _selected(arm: Arm, selector: dict[str, str | int | bool]) -> bool:
    return all(getattr(arm.spec, key) == value for key, value in selector.items())


def _comparable(a: Arm, b: Arm, same_model: bool) -> bool:
    """Equal hardware, and the same model unless the advice is about the model's form."""
    hardware = a.spec.gpu == b.spec.gpu and a.spec.gpus == b.spec.gpus and a.spec.gpu != ""
    return hardware and (not same_model or a.spec.model == b.spec.model)


_GOES_WITH = {
    "replicas": ("router",),
    "quantization": ("model",),
    "model": ("quantization",),
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


def _weigh(claim: Claim, ev: Evidence, study: Study, chosen: Cell, other: Cell) -> _Case | None:
    found: list[Any] = [
        contrast(ev, other, chosen, metric)
        for metric in claim.metrics
        if chosen.metric(metric) is not None and other.metric(metric) is not None
    ]
    if not found:
        return None
    verdicts = [better(c.metric, c.direction) for c in found]
    outcome = "against" if False in verdicts else "open" if None in verdicts else "for"
    changes = listing(
        f"{label_of(c.metric)} {signed_percent(c.ratio.value - 1)}"
        + (" (within noise)" if c.direction == "undecided" else "")
        for c in found
    )
    words = (
        f"{chosen.arm.name} against {other.arm.name} on {chosen.workload} at "
        f"{chosen.concurrency} in flight ({study.name}): {changes}"
    )
    lacking = [label_of(m) for m in claim.metrics if m not in {c.metric for c in found}]
    if lacking:
        words += f" ({listing(lacking)} not printed)"
    numbers = tuple(
        ratio_estimate(
            c,
            f"{label_of(c.metric)}, {chosen.arm.name} / {other.arm.name}, "
            f"{chosen.workload}, {chosen.concurrency} in flight, {study.name}",
        )
        for c in found
    )
    return _Case(study, chosen, other, outcome, words, numbers)


def _words(selector: dict[str, str | int | bool]) -> str:
    return listing(f"{key} = {value}" for key, value in selector.items()) or "any configuration"
