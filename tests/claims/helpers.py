"""Small studies whose truth is set by hand, and the way from a claim's keys to its judgement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from analysis.claims import kinds, read_claim
from analysis.dataset import Arm, Cell, Dataset, Study
from analysis.evidence import Evidence, Judgement
from analysis.model import Figure, Finding, HelpText, Run, Source, Startup
from analysis.models import Model
from tests import builders

GIB = 2.0**30

ROUND = Model(
    name="round",
    layers=10,
    heads=8,
    kv_heads=4,
    head_dim=125,
    hidden=1000,
    intermediate=4000,
    vocab=10_000,
    tie_word_embeddings=True,
)
"""A model of round sizes: 2 x 10 layers x 4 heads x 125 x 2 B = 20,000 B of KV a token."""


def judge(
    study: Study,
    kind: str,
    *others: Study,
    findings: Mapping[str, Finding] | None = None,
    **keys: Any,
) -> Judgement:
    """The judgement of one claim of this kind over a study (and others of the same folder)."""
    table = {"id": "c", "kind": kind, "says": "a sentence", "source": "a text", **keys}
    claim = read_claim(table)
    evidence = Evidence(Dataset((study, *others)), study, findings or {})
    return kinds()[kind].judge(claim, evidence)


def arm(
    name: str,
    *,
    log: Mapping[str, float | Figure] | None = None,
    shape: Model | None = None,
    **spec: Any,
) -> Arm:
    """An arm, with a start-up log of these figures where `log` is given, and a model's shape."""
    started: Startup | None = None
    if log is not None:
        started = builders.startup(log, arm=name, file=f"logs/{name}.log")
    return replace(builders.arm(name, started, **spec), own_model=shape)


def served(
    of: Arm,
    *,
    x: float = 1.0,
    ttft: float = 0.1,
    itl: float = 0.2,
    prompt: float = 100,
    out: float = 50,
    load: int | None = 10,
    workload: str = "chat",
    rate: float = float("inf"),
    **more: float | Figure | None,
) -> Cell:
    """One exact run: X requests a second, each TTFT + ITL x (out - 1) in the system.

    By hand: stay = ttft + itl x (out - 1), requests in flight = x x stay.
    """
    n = 100.0 * x
    figures: dict[str, float | Figure | None] = {
        "completed": n,
        "num_prompts": n,
        "duration": 100,
        "total_input_tokens": n * prompt,
        "total_output_tokens": n * out,
        "request_throughput": x,
        "output_throughput": x * out,
        "total_token_throughput": x * (prompt + out),
        "mean_ttft": ttft,
        "mean_itl": itl,
        **more,
    }
    one = builders.run(
        figures,
        arm=of.name,
        workload=workload,
        concurrency=load,
        rate=rate,
        bare=True,
        file=f"runs/{of.name}-{workload}-{load}.json",
    )
    return builders.cell(of, one)


def measured(
    of: Arm | str,
    metric: str,
    *values: float | str,
    load: int | None = 10,
    workload: str = "chat",
    seeds: Sequence[int] | None = None,
    factor: float = 1.0,
) -> Cell:
    """A cell whose runs print one metric only; several values are repeats.

    A value given as text is a printed one: half a unit of its last digit either way, x factor.
    """
    owner = arm(of) if isinstance(of, str) else of
    files = [f"runs/{owner.name}-{workload}-{load}-{place}.json" for place in range(len(values))]
    runs: list[Run] = [
        builders.run(
            {
                metric: builders.printed(metric, value, factor, file=files[place])
                if isinstance(value, str)
                else value
            },
            id=f"{owner.name}-{workload}-{load}-{place}",
            file=files[place],
            arm=owner.name,
            workload=workload,
            concurrency=load,
            bare=True,
            config={} if seeds is None else {"seed": seeds[place]},
        )
        for place, value in enumerate(values)
    ]
    return builders.cell(owner, *runs)


def ref(arm: str, metric: str, load: int | None = 10, **more: Any) -> dict[str, Any]:
    """A reference to a metric of a cell on the workload `chat`."""
    keys = {"arm": arm, "workload": "chat", "metric": metric, **more}
    return keys if load is None else {**keys, "concurrency": load}


def with_help(study: Study, text: str, command: str = "serve", version: str = "1.0") -> Study:
    """The study with a stored help text."""
    page = HelpText(Source("help/serve.txt", ""), command, version, text)
    return replace(study, help_texts=(*study.help_texts, page))


def figure_of(judgement: Judgement, name: str) -> float:
    """The value of the number of that name in a judgement."""
    found = [number.value for number in judgement.numbers if number.name == name]
    assert len(found) == 1, [number.name for number in judgement.numbers]
    return found[0]
