"""The standing questions, asked of every study whether it has claims or not.

Of each cell: is the run valid, what binds, how many slots, where does the time go? Of each pair
of arms at equal workload and load: do they differ, and by how much? The answers are findings
with the verdict "answered"; they claim nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from analysis.accounting import in_words
from analysis.capacity import binds, capacity, reference_prefill, running_slots
from analysis.checks import by_run, check_cell, verdict
from analysis.claims._common import compare_runs, decide, differences
from analysis.dataset import Cell, Study
from analysis.evidence import Experiment, level_of, single
from analysis.floor import step_floor
from analysis.judge import command, failed_checks
from analysis.metrics import METRICS, label_of
from analysis.model import VALIDITIES, Estimate, Finding, Skipped, told
from analysis.pairing import of_shared_seeds
from analysis.quantity import Quantity, constant
from analysis.run_steps import standing_still
from analysis.study import slug
from analysis.wording import percent, plural, show, signed_percent, span

COMPARED = ("total_token_throughput", "output_throughput", "mean_ttft", "mean_itl", "mean_tpot")

_LACKING = "TTFT, ITL or token counts are missing, or contradict each other"

_SOME = 0.05
"""Requests that stand still, on average, from which they are told."""
MOST_ARMS = 32
"""Arms at one load that are compared two by two: 496 pairs; 400 arms would be 79,800."""


def of_cell(study: Study, cell: Cell) -> tuple[Finding, ...]:
    """Valid? What binds? How many slots? Where does the time go?"""
    return _valid(study, cell), _binding(study, cell), _slots(study, cell), _time(study, cell)


def _answer(
    study: Study,
    cell: Cell,
    question: str,
    says: str,
    reasons: tuple[str, ...],
    numbers: tuple[Estimate, ...] = (),
) -> Finding:
    load = "nocap" if cell.concurrency is None else str(cell.concurrency)
    name = slug(f"{question}-{cell.arm.name}-{cell.workload}-{load}")
    return Finding(
        name,
        study.name,
        f"standing.{question}",
        says,
        "standing question",
        "answered",
        reasons,
        cell.level,
        numbers,
        in_words(cell.assumptions, {s for number in numbers for s in number.sources}),
        (),
        failed_checks((cell,), f"standing.{question}"),
    )


def _valid(study: Study, cell: Cell) -> Finding:
    outcomes = check_cell(cell)
    counts = Counter(verdict(own) for own in by_run(outcomes).values())
    counts["NOT CHECKED"] += len(cell.runs) - counts.total()
    head = ", ".join(f"{counts[status]} {status}" for status in VALIDITIES if counts[status])
    bad = tuple(
        f"{o.code} {o.name}, {o.run}: {o.status}: {o.reason}."
        for o in outcomes
        if o.status in ("SUSPECT", "INVALID")
    )
    text = f"{plural(len(cell.runs), 'run')} of {cell.name}: {head}."
    return _answer(study, cell, "valid", f"Is the run of {cell.name} valid?", (text, *bad))


def _binding(study: Study, cell: Cell) -> Finding:
    found = binds(cell, reference_prefill(cell, study.cells))
    reason = found.reason[0].upper() + found.reason[1:]
    return _answer(
        study,
        cell,
        "binds",
        f"What limits the running batch of {cell.name}?",
        (f"Binding: {found.limit}. {reason}.",),
    )


def _slots(study: Study, cell: Cell) -> Finding:
    says = f"How many requests does {cell.name} run at once, and how many could it?"
    numbers: list[Estimate] = []
    reasons: list[str] = []
    decode, in_flight = cell.account("l_decode"), cell.account("in_flight")
    prefill = reference_prefill(cell, study.cells)
    seen = running_slots(cell, prefill) if prefill is not None else None
    stood = standing_still(cell)
    less = f", less {show(stood)} that stand still, preempted" if stood >= _SOME else ""
    if stood >= _SOME:
        # They are past their first token, and do not run.
        seen, decode, in_flight = (
            None if q is None else q - constant(stood) for q in (seen, decode, in_flight)
        )
    if seen is not None:
        numbers.append(seen.estimate("running (S_hat)", "L_decode + X x TTFT of a lighter run"))
        reasons.append(
            f"{span(seen)} requests run on average (decode, and the prefill of a lighter run"
            f"{less})."
        )
    elif decode is not None and in_flight is not None:
        numbers.append(
            Estimate(
                "effective slots",
                decode.value,
                decode.lo,
                in_flight.hi,
                "",
                "bounds",
                "from requests past their first token to all in flight",
                decode.sources,
            )
        )
        reasons.append(
            f"Between {span(decode)} (past their first token{less}) and {span(in_flight)} "
            f"(all in flight{less}) requests run on average."
        )
    else:
        reasons.append(f"Effective slots are not identified: {_LACKING}.")
    room = capacity(cell)
    for name, q in (
        ("sequence limit (max_num_seqs)", room.sequence_limit),
        ("KV slots", room.kv_slots),
        ("maximum concurrency as reported", room.reported),
    ):
        if q is not None:
            numbers.append(q.estimate(name))
            reasons.append(f"{name[0].upper()}{name[1:]}: {span(q)}.")
    if room.slots is None:
        reasons.append("Room is unknown: no max_num_seqs and no start-up log (KV tokens).")
    return _answer(study, cell, "slots", says, tuple(reasons), tuple(numbers))


def _time(study: Study, cell: Cell) -> Finding:
    says = f"Where does a request's time go in {cell.name}?"
    stay, ttft, decode = cell.account("stay"), cell.account("ttft"), cell.account("decode")
    if stay is None or ttft is None or decode is None:
        return _answer(study, cell, "time", says, (f"Not identified: {_LACKING}.",))
    share = (ttft / stay).as_unit("")
    numbers = [
        stay.estimate("stay", METRICS["stay"].definition),
        ttft.estimate("before the first token", "mean TTFT: waiting and prefill"),
        decode.estimate("decode", "from the first to the last token"),
        share.estimate("share before the first token", "mean TTFT / stay"),
    ]
    reasons = [
        f"A stay of {span(stay)}: {span(ttft)} before the first token "
        f"({percent(share.value)}), {span(decode)} decoding."
    ]
    floor, itl = step_floor(cell), cell.metric("mean_itl")
    if floor is not None and itl is not None:
        explained = (floor.total / itl).as_unit("")
        numbers += [
            floor.total.estimate("floor of a step", "(weights + KV read) / bandwidth"),
            explained.estimate("share of ITL explained by the floor"),
        ]
        note = "; below its floor: a wrong model, GPU or unit" if explained.lo > 1 else ""
        reasons.append(
            f"Reading weights and KV takes {span(floor.total)} of the {span(itl)} "
            f"between tokens at least ({percent(explained.value)}{note})."
        )
    return _answer(study, cell, "time", says, tuple(reasons), tuple(numbers))


def of_pairs(study: Study) -> Iterable[Finding]:
    """Do two arms differ at equal workload and load, and by how much?

    Of more than `MOST_ARMS` arms at one load, each is compared with the first only.
    """
    groups = _at_one_load(study)
    place: Counter[tuple[str, int | None]] = Counter()
    for baseline in study.cells:
        load = baseline.workload, baseline.concurrency
        group = groups.get(load, [])
        place[load] += 1
        if len(group) <= MOST_ARMS or place[load] == 1:
            for treatment in group[place[load] :]:
                yield _differ(study, baseline, treatment)


def uncompared(study: Study) -> tuple[Skipped, ...]:
    """Where arms are compared with the first only, for there are too many of them."""
    return tuple(
        Skipped(
            f"{study.folder}/study.toml".lstrip("/"),
            f"{len(cells)} arms on {told(workload, 60)} at {load} in flight, at most {MOST_ARMS} "
            f"are compared two by two: each is compared with {told(cells[0].arm.name, 60)} only; "
            "claim what else differs, or split the study",
            wanted=True,
        )
        for (workload, load), cells in _at_one_load(study).items()
        if len(cells) > MOST_ARMS
    )


def _at_one_load(study: Study) -> dict[tuple[str, int | None], list[Cell]]:
    """The cells of each workload and load; without a cap on the load none are alike."""
    found: dict[tuple[str, int | None], list[Cell]] = {}
    for cell in study.cells:
        if cell.concurrency is not None:
            found.setdefault((cell.workload, cell.concurrency), []).append(cell)
    return found


def _differ(study: Study, baseline: Cell, treatment: Cell) -> Finding:
    numbers: list[Estimate] = []
    reasons: list[str] = []
    shared = of_shared_seeds(baseline, treatment)
    for name in COMPARED:
        left, right = (cell.metric(name) for cell in shared)
        if left is None or right is None:
            continue
        if any(q.value <= 0 for q in (*baseline.each(name), *treatment.each(name))):
            # Ratios need positive figures, of every repeat.
            continue
        ratio: Quantity = (right / left).as_unit("")
        comparison = compare_runs(baseline, treatment, name)
        direction, why = decide(ratio, comparison, name)
        numbers.append(ratio.estimate(f"{label_of(name)} ratio"))
        word = {"higher": "higher", "lower": "lower", "undecided": "not told apart"}[direction]
        reasons.append(
            f"{label_of(name)}: {show(left.value, left.unit)} -> "
            f"{show(right.value, right.unit)}, {signed_percent(ratio.value - 1)}, {word} "
            f"({why})."
        )
    if not reasons:
        reasons.append("No metric is common to both.")
    a, b = baseline.arm.name, treatment.arm.name
    return Finding(
        slug(f"differ-{a}-{b}-{baseline.workload}-{baseline.concurrency}"),
        study.name,
        "standing.differ",
        f"Do {a} and {b} differ on {baseline.workload} at {baseline.concurrency} in flight?",
        "standing question",
        "answered",
        tuple(reasons),
        level_of((baseline, treatment)),
        tuple(numbers),
        in_words(
            (*baseline.assumptions, *treatment.assumptions),
            {source for number in numbers for source in number.sources},
        ),
        differences(baseline, treatment),
        failed_checks((baseline, treatment), "standing.differ"),
        next_experiment=command(
            study, Experiment((a, b), (baseline.workload,), (baseline.concurrency or 1,))
        )
        if single((baseline, treatment))
        else "",
    )
