"""analysis.claims: the folder is the registry, and every kind in it is complete."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import msgspec
import pytest

import analysis.claims
from analysis.claims import ClaimBase, Repeat, kinds, read_claim
from analysis.study import BadInput

FOLDER = Path(analysis.claims.__file__).parent
MODULES = sorted(path.stem for path in FOLDER.glob("*.py") if not path.name.startswith("_"))
BASE = {"id": "c", "says": "a sentence", "source": "a text"}


def test_every_module_is_a_kind_and_every_kind_a_module() -> None:
    assert list(kinds()) == MODULES


@pytest.mark.parametrize("name", MODULES)
def test_a_kind_exports_its_keys_and_its_judge(name: str) -> None:
    kind = kinds()[name]
    assert kind.name == name
    assert issubclass(kind.claim, ClaimBase)
    assert kind.claim.__struct_config__.frozen
    assert kind.claim.__struct_config__.forbid_unknown_fields
    assert list(inspect.signature(kind.judge).parameters) == ["claim", "ev"]


@pytest.mark.parametrize("name", MODULES)
def test_a_kind_states_its_rule(name: str) -> None:
    first, _, rest = kinds()[name].doc.partition("\n")
    assert len(first) > 30
    assert first.endswith((".", "?", ":")) or rest.strip()
    assert rest.strip() or len(first) > 60


@pytest.mark.parametrize("name", MODULES)
def test_a_kind_has_its_test_file(name: str) -> None:
    cases = Path(__file__).parent / f"test_{name}.py"
    tree = ast.parse(cases.read_text("utf-8"))
    tests = [node for node in tree.body if getattr(node, "name", "").startswith("test_")]
    assert len(tests) >= 4


@pytest.mark.parametrize("name", MODULES)
def test_no_key_carries_a_verdict_or_a_reason(name: str) -> None:
    keys = {field.name for field in msgspec.structs.fields(kinds()[name].claim)}
    assert keys.isdisjoint({"verdict", "reason", "reasons", "because", "expected", "answer"})


@pytest.mark.parametrize("name", MODULES)
def test_an_unknown_key_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="unknown key 'verdict'"):
        read_claim({**BASE, "kind": name, "verdict": "refuted"})


def test_a_claim_is_read_as_its_kind() -> None:
    claim = read_claim({**BASE, "kind": "composite", "parts": ["x", "y"]})
    assert isinstance(claim, kinds()["composite"].claim)
    assert (claim.id, claim.study, claim.reads) == ("c", "", "")


def test_a_repeat_needs_no_kind() -> None:
    assert read_claim({**BASE, "repeats": "first"}) == Repeat(**BASE, repeats="first")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "has no kind; known: capacity, composite"),
        ({"kind": 3}, "has no kind"),
        ({"kind": "magnitud"}, "has the unknown kind 'magnitud'; did you mean 'magnitude'?"),
        ({"kind": "composite", "part": ["x"]}, "unknown key 'part'; did you mean 'parts'?"),
        ({"kind": "composite"}, "has no `parts`; a composite needs parts"),
        ({"kind": "composite", "parts": "x"}, "parts is 'x'; a list is expected: ['x']"),
        (
            {"kind": "magnitude", "stated": "1", "of": {"metrc": "x"}},
            "unknown key 'metrc' in of; did you mean 'metric'?",
        ),
        ({"repeats": "first", "kind": "composite"}, "unknown key 'kind'"),
    ],
)
def test_a_mistake_names_the_nearest_right_word(table: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput) as error:
        read_claim({**BASE, **table})
    assert message in str(error.value)
    assert "\n" not in str(error.value)
