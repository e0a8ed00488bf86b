"""No kind of claim fails on odd data: it decides, names a missing file, or the author's mistake."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from analysis.claims import kinds
from analysis.dataset import Cell, Study
from analysis.evidence import Judgement, Missing
from analysis.model import VERDICTS, Lengths, Source
from analysis.study import BadInput, WorkloadSpec
from tests.builders import cell, printed, run, study
from tests.claims.helpers import ROUND, arm, judge, measured, ref, served, with_help

CELL = {"arm": "a", "workload": "chat", "concurrency": 10}
PAIR = {"baseline": "a", "treatment": "b", "workload": "chat", "concurrency": 10}
ITL = {"of": ref("b", "mean_itl"), "against": ref("a", "mean_itl")}

CLAIMS: dict[str, list[dict[str, Any]]] = {
    "capacity": [
        {**CELL, "slots": "8"},
        {**CELL, "binds": "client cap"},
        {**CELL, "reported_is_slots": True},
    ],
    "composite": [{"parts": ["x", "y"]}],
    "configuration": [{"arms": ["a", "b"], "field": "version", "stated": "1"}],
    "crossover": [
        {"first": "a", "second": "b", "metric": metric, "workload": "chat", "crosses": True}
        for metric in ("mean_itl", "total_token_throughput")
    ],
    "equivalence": [
        {**ITL, "margin": 5},
        {"of": {"arm": "b", "fact": "kv_tokens"}, "against": ref("a", "stay"), "margin": 5},
    ],
    "expectation": [
        {"baseline": "a", "treatment": "b", "metric": "mean_ttft", "expects": expects}
        for expects in ("better", "no_gain")
    ],
    "factorial": [
        {
            "metric": metric, "workload": "chat", "concurrency": 10, "factors": ["weights"],
            "levels": {"a": ["bf16"], "b": ["awq"]}, "effect": "weights", "expect": expect,
        }
        for metric in ("mean_itl", "total_token_throughput")
        for expect in ("lower", "none")
    ],
    "fit": [{"gpu": "L40S", "models": ["Qwen/Qwen3-14B"], "memory": "48"}],
    "gap_attribution": [
        {**PAIR, "metric": metric, "cause": cause}
        for metric, causes in {
            "mean_itl": ("headroom", "step_cost", "batch"),
            "mean_ttft": ("queue",),
            "total_token_throughput": ("batch", "stay", "kv_pool"),
        }.items()
        for cause in causes
    ],
    "interface": [{"command": "serve", "flags": ["--port"], "takes_value": True}],
    "kernel_time": [PAIR],
    "kv_accounting": [{"arm": "a", "printed_as": "total", "compared_with": "b"}],
    "length": [{"workload": "chat", "fits": True, "arm": "a"}],
    "load": [{"arms": ["a", "b"], "workload": "chat", "concurrency": 10, "limited_by": "cap"}],
    "magnitude": [
        {**ITL, "measure": measure, "stated": "1", "unit": unit, "relation": relation}
        for measure, unit in (("ratio", ""), ("percent", ""), ("difference", "ms"), ("share", ""))
        for relation in ("equals", "about", "at_least")
    ],
    "ordering": [{"arm": "a", "among": ["b"], "metric": "mean_itl"}],
    "queue_sources": [{**CELL, "reference": "b"}, {**CELL, "margin": 5}],
    "queue_wait": [
        {**CELL, "limit": "max_num_seqs", "reference": "b"},
        {**CELL, "slots": 8},
        CELL,
    ],
    "roofline": [
        {**CELL, "phase": "decode", "dominates": "kv"},
        {**CELL, "phase": "prefill", "dominates": "reading"},
    ],
    "rule": [
        {"choose": {"max_num_seqs": 8}, "over": {}, "metrics": ["mean_itl"],
         "when": {"slots_cover": True, "fits_one_gpu": True}},
    ],
    "scaling": [
        {"of": {"value": "9"}, "instance": ref("a", "stay"), "against": ref("b", "stay"), "k": 2}
    ],
    "token_mix": [{**CELL, "against": "code", "cause": "mix"}],
}  # fmt: skip
"""Claims of every kind about the arms a and b."""

LOG = {"model_bytes": 1e9, "kv_bytes": 1e9, "kv_tokens": 3000.0, "max_model_len": 1000.0,
       "reported_max_concurrency": 3.0}  # fmt: skip
A = arm("a", log=LOG, shape=ROUND, gpu="L40S", max_num_seqs=8)
B = arm("b", log=LOG, shape=ROUND, gpu="L40S")
NOTHING = arm("a", log=dict.fromkeys(LOG, 0.0), shape=ROUND, gpu="L40S", max_num_seqs=8)


def both(*, code: bool = True, **more: Any) -> list[Cell]:
    cells = [served(of, load=load, **more) for of in (A, B) for load in (10, 20)]
    return [*cells, served(A, workload="code", **more)] if code else cells


def zeros(of: Any, load: int = 10, **other: float) -> Cell:
    names = ("completed", "duration", "total_input_tokens", "total_output_tokens", "mean_ttft",
             "mean_itl", "output_throughput", "total_token_throughput")  # fmt: skip
    figures = dict.fromkeys(names, 0.0)
    return cell(of, run({**figures, **other}, arm=of.name, concurrency=load, bare=True))


def coarse(of: Any, load: int = 10) -> Cell:
    """Printed zeros: [-0.5, 0.5]."""
    names = ("mean_ttft", "mean_itl", "output_throughput", "total_token_throughput")
    figures = {name: printed(name, "0", file=f"{of.name}{load}.json") for name in names}
    rest = {"completed": 100.0, "duration": 100.0}
    return cell(of, run({**figures, **rest}, arm=of.name, concurrency=load, bare=True))


ODD: dict[str, list[Cell]] = {
    "plain": both(),
    "no cap": [served(of, load=None) for of in (A, B)],
    "all zero": [zeros(of, load) for of in (A, B) for load in (10, 20)],
    "one zero": [*both(), zeros(arm("c"))],
    "zero against something": [
        *(zeros(A, load) for load in (10, 20)),
        *(served(B, load=load) for load in (10, 20)),
    ],
    "zero duration": [zeros(of, load, completed=5.0) for of in (A, B) for load in (10, 20)],
    "zero by print": [coarse(of, load) for of in (A, B) for load in (10, 20)],
    "a zero log": [served(NOTHING), served(B), served(NOTHING, workload="code")],
    "one output token": both(out=1),
    "no output": both(out=0),
    "nothing printed": [measured(of, "completed", 1.0) for of in (A, B)],
    "equal to the last digit": both(ttft=0.1, itl=0.2),
    "negative": both(itl=-0.1),
    "huge": both(itl=1e200, ttft=1e200),
    "tiny": both(itl=1e-200, ttft=1e-200, x=1e-200),
    "repeats of nothing": [measured(of, "mean_itl", 0.0, 0.0, 0.0) for of in (A, B)],
    "repeats far apart": [measured(of, "mean_itl", 1e-9, 1.0, 1e9) for of in (A, B)],
    "a repeat that lacks the metric": [
        cell(of, run(arm=of.name), run({"mean_itl": None, "mean_ttft": None}, arm=of.name))
        for of in (A, B)
    ],
}


def folder(cells: list[Cell]) -> Study:
    sample = Lengths(Source("s/lengths.csv", ""), np.array([1]), np.array([0]))
    away = study(
        *cells,
        workloads=(WorkloadSpec(name="chat", lengths="lengths.csv"),),
        lengths={"lengths.csv": sample},
    )
    return with_help(away, "")


def test_every_kind_is_asked() -> None:
    assert set(CLAIMS) == set(kinds())


@pytest.mark.parametrize("data", ODD)
@pytest.mark.parametrize("kind", CLAIMS)
def test_a_kind_decides_or_says_what_is_missing(kind: str, data: str) -> None:
    for keys in CLAIMS[kind]:
        try:
            found = judge(folder(ODD[data]), kind, **keys)
        except (Missing, BadInput) as refused:
            assert str(refused)
            assert "\n" not in str(refused)
            continue
        assert isinstance(found, Judgement)
        assert found.verdict in VERDICTS
        assert found.reasons
        for number in found.numbers:
            assert not math.isfinite(number.value) or number.lo <= number.value <= number.hi
        if found.verdict in ("supported", "refuted"):
            assert "nan" not in " ".join(found.reasons)
