"""Which runs are paired: those of one seed, else of the same prompts, else in their order."""

from __future__ import annotations

from analysis.pairing import pairs_of
from tests.builders import cell, run


def ids(left: list[dict[str, object]], right: list[dict[str, object]]) -> list[tuple[str, str]]:
    a, b = (
        cell(name, *(run(id=f"{name}{n}", config=config) for n, config in enumerate(configs)))
        for name, configs in (("a", left), ("b", right))
    )
    return [(one.id, other.id) for one, other in pairs_of(a, b)]


def test_of_one_seed() -> None:
    assert ids([{"seed": 1}, {"seed": 2}], [{"seed": 2}, {"seed": 3}]) == [("a1", "b0")]


def test_repeats_of_one_seed_are_paired_in_their_order_once() -> None:
    found = ids([{"seed": 1}, {"seed": 1}, {"seed": 1}], [{"seed": 1}, {"seed": 1}])
    assert found == [("a0", "b0"), ("a1", "b1")]


def test_without_seeds_in_their_order() -> None:
    assert ids([{}, {}], [{}]) == [("a0", "b0")]


def test_other_numbers_of_clients_draw_other_prompts() -> None:
    found = ids([{"seed": 1, "clients": 2}, {"seed": 2}], [{"seed": 1}, {"seed": 2}])
    assert found == [("a1", "b1")]
