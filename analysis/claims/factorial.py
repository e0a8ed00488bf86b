"""What one factor does to a metric where arms differ in several, and whether factors act together.

The arms are laid out by their levels of named factors (weights: bf16, awq; kv: ample, binding), and
one run is one observation. The *main effect* of a factor is its ratio averaged over the others'
levels, its *simple effects* are the ratio at each of them, and the *interaction* of two factors is
how the ratio of the first changes with the second. With runs of shared seeds the prompts are taken
out; intervals are Student's t over runs. At least three randomised, interleaved repeats of every
arm, at level E, are an experiment (level X); without any repeats the spread seen elsewhere is
reckoned with.

The order of levels is that of `levels`; a factor of more than two is compared at its first and last
unless `between` names two. `effect` is a factor, or two as "weights x kv". A confound is what
differs between arms beyond what moves with the factors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import Literal

from analysis.claims import ClaimBase
from analysis.claims._common import moved
from analysis.dataset import Arm, Cell
from analysis.evidence import BadClaim, Evidence, Experiment, Judgement, Missing
from analysis.experiment import randomised
from analysis.factorial import Effect, Factorial, Levels, Observation, main_effect
from analysis.metrics import label_of
from analysis.model import Estimate, Run, Source, Verdict
from analysis.pairing import by_prompts, by_seed
from analysis.stats import plausible_sd
from analysis.study import nearest
from analysis.wording import listing, percent, signed_percent

_Z = 1.96


class Claim(ClaimBase, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keys of a factorial claim."""

    metric: str
    workload: str
    concurrency: int
    factors: tuple[str, ...]
    """Names, in the order in which `levels` gives their levels."""
    levels: Mapping[str, tuple[str, ...]]
    """By arm, its level of each factor."""
    effect: str
    """A factor, or two of them: "weights x kv"."""
    expect: Literal["lower", "higher", "none"]
    """What the effect makes of the metric; of an interaction, of the first factor's ratio."""
    between: tuple[str, ...] = ()
    """Two levels of the (first) factor, else its first and last."""
    margin: float = 5.0
    """Per cent either way that count as none."""


def judge(claim: Claim, ev: Evidence) -> Judgement:
    """Fit all runs of all arms; the named contrast decides, the others stand beside it."""
    _check(claim)
    ev.metric(claim.metric)
    cells = {arm: ev.cell(arm, claim.workload, claim.concurrency) for arm in claim.levels}
    for cell in cells.values():
        ev.need(cell, claim.metric)
    fitted = Factorial(_observations(claim, cells))
    first, second = _factors(claim)
    low, high = _ends(claim, first, claim.between)
    label = label_of(claim.metric)
    simple = _simple(claim, fitted, first, low, high)
    what = f"{low} -> {high}"
    if second is None:
        weights = main_effect(first, low, high, fitted.cells)
        if not weights:
            raise BadClaim(f"has no two arms that differ in {claim.factors[first]!r} alone")
        name = f"{label} ratio, {what}"
        if len(simple) > 1:
            name += ", on average"
    else:
        weights, places = _interaction(claim, fitted, first, second, low, high)
        name = f"ratio of {label} ratios, {what}, {places[1]} / {places[0]}"
    effect = fitted.effect(weights)
    if effect is None:
        raise Missing(
            f"runs of the same seeds in the arms of {low} and of {high}",
            "arms that share no seed differ in their prompts as well",
            Experiment(tuple(claim.levels), (claim.workload,), (claim.concurrency,)),
        )
    verdict, why = _verdict(claim, effect)
    confounds = _confounds(claim, {name: cell.arm for name, cell in cells.items()})
    sources = tuple(run.source for cell in cells.values() for run in cell.runs)
    shown = [_estimate(name, effect, fitted, sources)]
    shown += [
        _estimate(f"{label} ratio, {what}, at {at}", one, fitted, sources) for at, one in simple
    ]
    told = "; ".join(f"{_text(one)} at {at}" for at, one in simple)
    runs = sum(len(cell.runs) for cell in cells.values())
    return Judgement(
        verdict,
        (
            f"{name[:1].upper()}{name[1:]}: {_text(effect)}{why}.",
            *((f"By the other factors' levels: {told}.",) if len(simple) > 1 else ()),
            f"{runs} runs of {len(cells)} arms{_blocks(fitted)}.",
        ),
        tuple(shown),
        confounds=confounds,
        flips=_flips(claim, second is not None),
        cells=tuple(cells.values()),
        experiment=Experiment(tuple(claim.levels), (claim.workload,), (claim.concurrency,)),
        p_value=effect.p if claim.expect != "none" else None,
        # Several fields that move with one factor are several things moved at once.
        randomised=randomised(tuple(cells.values())) and not confounds,
    )


def _check(claim: Claim) -> None:
    if not claim.factors or len(set(claim.factors)) < len(claim.factors):
        raise BadClaim("names no factor, or one twice; list each once in `factors`")
    for arm, levels in claim.levels.items():
        if len(levels) != len(claim.factors):
            raise BadClaim(
                f"gives arm {arm!r} {len(levels)} levels for {len(claim.factors)} factors; give "
                f"one of each: {', '.join(claim.factors)}"
            )
    rows = list(claim.levels.values())
    if len(set(rows)) < len(rows):
        raise BadClaim("gives two arms the same levels; each combination is one arm")


def _factors(claim: Claim) -> tuple[int, int | None]:
    """The places of the factor, or of the two, that `effect` names."""
    words = claim.effect.split(" x ")
    for word in words:
        if word not in claim.factors:
            raise BadClaim(f"names the factor {word!r}; {nearest(word, claim.factors)}")
    if len(words) > 2 or len(set(words)) < len(words):
        raise BadClaim('has an effect of more than two factors; name one, or two as "a x b"')
    places = [claim.factors.index(word) for word in words]
    return places[0], places[1] if len(places) > 1 else None


def _ends(claim: Claim, at: int, between: Sequence[str]) -> tuple[str, str]:
    known = list(dict.fromkeys(levels[at] for levels in claim.levels.values()))
    for level in between:
        if level not in known:
            raise BadClaim(f"names the level {level!r}; {nearest(level, known)}")
    if len(between) not in (0, 2):
        raise BadClaim("gives `between` other than two levels; give two, or leave it out")
    low, high = between or (known[0], known[-1])
    if low == high:
        raise BadClaim(f"has one level of {claim.factors[at]!r} only; an effect needs two")
    return low, high


def _observations(claim: Claim, cells: Mapping[str, Cell]) -> list[Observation]:
    """One a run; those of one seed share a block, or where one has none, of the same prompts."""
    found: list[Observation] = []
    runs: list[tuple[Levels, Run, float]] = [
        (claim.levels[arm], run, value.value)
        for arm, cell in cells.items()
        for run, value in zip(cell.runs, cell.each(claim.metric), strict=True)
    ]
    if any(value <= 0 for _, _, value in runs):
        raise BadClaim(f"compares {claim.metric} as a ratio, and a run has none above 0")
    key = by_seed if all(by_seed(run) is not None for _, run, _ in runs) else by_prompts
    for levels, run, value in runs:
        found.append(Observation(levels, key(run), math.log(value)))
    return found


def _simple(
    claim: Claim, fitted: Factorial, at: int, low: str, high: str
) -> list[tuple[str, Effect]]:
    """The ratio at each combination of the other factors."""
    found = []
    for cell in fitted.cells:
        other = (*cell[:at], high, *cell[at + 1 :])
        if cell[at] == low and other in fitted.cells:
            rest = [level for n, level in enumerate(cell) if n != at]
            effect = fitted.effect({cell: -1.0, other: 1.0})
            if effect is not None:
                found.append((listing(rest) or "all", effect))
    return found


def _interaction(
    claim: Claim, fitted: Factorial, first: int, second: int, low: str, high: str
) -> tuple[dict[Levels, float], tuple[str, str]]:
    """Weights of the first factor's effect at one level of the second less that at the other."""
    near, far = _ends(claim, second, ())
    weights: dict[Levels, float] = {}
    corners = [
        {_rest(cell, first, second) for cell in fitted.cells if (cell[first], cell[second]) == pair}
        for pair in product((low, high), (near, far))
    ]
    # Of other factors only what is there at all four corners: else they would move as well.
    common = set.intersection(*corners)
    for level, sign in ((near, -1.0), (far, 1.0)):
        here = [
            cell
            for cell in fitted.cells
            if cell[second] == level and _rest(cell, first, second) in common
        ]
        for cell, weight in main_effect(first, low, high, here).items():
            weights[cell] = weights.get(cell, 0.0) + sign * weight
    if len(weights) < 4:
        raise BadClaim(
            f"needs arms of {low} and {high} at both {near} and {far} for an interaction"
        )
    return weights, (near, far)


def _rest(cell: Levels, first: int, second: int) -> Levels:
    """Levels of the other factors."""
    return tuple(level for n, level in enumerate(cell) if n not in (first, second))


def _verdict(claim: Claim, effect: Effect) -> tuple[Verdict, str]:
    """By the interval between runs; without one, by the spread that runs are reckoned with."""
    lo, hi, lo90, hi90 = effect.lo, effect.hi, effect.lo90, effect.hi90
    why = ""
    if not effect.tested:
        sd = plausible_sd(claim.metric)
        half = _Z * sd * effect.scale
        lo, hi = effect.ratio * math.exp(-half), effect.ratio * math.exp(half)
        lo90, hi90 = lo, hi
        why = f" (no repeats: reckoned with a run-to-run sd of {percent(sd)})"
    if claim.expect == "none":
        low, high = 1 - claim.margin / 100, 1 + claim.margin / 100
        if low < lo90 and hi90 < high:
            return "supported", why
        outside = hi < low or lo > high
        return ("refuted" if outside else "inconclusive"), why
    if lo <= 1 <= hi:
        return "inconclusive", why
    return ("supported" if (lo > 1) == (claim.expect == "higher") else "refuted"), why


def _confounds(claim: Claim, arms: Mapping[str, Arm]) -> tuple[str, ...]:
    """What differs between two arms beyond what their factors always move."""
    by_factor: dict[int, list[set[str]]] = {}
    pairs = list(combinations(claim.levels, 2))
    for a, b in pairs:
        apart = _apart(claim, a, b)
        if len(apart) == 1:
            fields = {text.partition(":")[0] for text in moved(arms[a], arms[b])}
            by_factor.setdefault(apart[0], []).append(fields)
    own = {at: set.intersection(*found) for at, found in by_factor.items()}
    found: dict[str, None] = {
        f"{claim.factors[at]} moves several fields at once: {listing(sorted(fields))}": None
        for at, fields in own.items()
        if len(fields) > 1
    }
    for a, b in pairs:
        apart = _apart(claim, a, b)
        if len(apart) == 1:
            for text in moved(arms[a], arms[b]):
                if text.partition(":")[0] not in own[apart[0]]:
                    found[f"{a} and {b}: {text}"] = None
    return tuple(found)


def _apart(claim: Claim, a: str, b: str) -> list[int]:
    pairs = zip(claim.levels[a], claim.levels[b], strict=True)
    return [n for n, (one, other) in enumerate(pairs) if one != other]


def _estimate(name: str, effect: Effect, fitted: Factorial, sources: Sequence[Source]) -> Estimate:
    lo, hi = (effect.lo, effect.hi) if effect.tested else (effect.ratio, effect.ratio)
    words = (
        f"95 % between runs (t, {fitted.df} degrees of freedom)"
        if effect.tested
        else ("not given: no repeats")
    )
    return Estimate(
        name,
        effect.ratio,
        lo,
        hi,
        "",
        words,
        "contrast of log means",
        tuple(sources),
    )


def _text(effect: Effect) -> str:
    change = signed_percent(effect.ratio - 1)
    if not effect.tested:
        return f"{effect.ratio:.3f} ({change})"
    return f"{effect.ratio:.3f} [{effect.lo:.3f}, {effect.hi:.3f}] ({change})"


def _blocks(fitted: Factorial) -> str:
    if fitted.shared < 2:
        return ""
    return f", differences between the prompts of {fitted.shared} seeds removed"


def _flips(claim: Claim, interaction: bool) -> str:
    of = "a ratio of ratios" if interaction else "a ratio"
    if claim.expect == "none":
        return f"{of} beyond {claim.margin:g} % from 1, by its interval"
    other = "above" if claim.expect == "lower" else "below"
    return f"{of} {other} 1, by its interval"
