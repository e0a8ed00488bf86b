"""Every module of analysis/checks keeps the contract and has a case file with every status."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

from analysis import checks as package
from analysis.checks import Check, check_cell, checks, verdict
from analysis.claims import kinds
from analysis.model import STATUSES, Outcome, Status, Validity
from tests.builders import cell, run

FOLDER = Path(inspect.getfile(package)).parent
MODULES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")


def module(name: str) -> ModuleType:
    return __import__(f"analysis.checks.{name}", fromlist=["CODE"])


@pytest.mark.parametrize("name", MODULES)
def test_each_module_exports_code_name_and_check(name: str) -> None:
    found = module(name)
    assert re.fullmatch(r"SA1\d\d", found.CODE)
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", found.NAME)
    assert name == found.NAME.replace("-", "_")
    assert list(inspect.signature(found.check).parameters) == ["cell", "account"]
    assert len((found.__doc__ or "").strip().splitlines()) > 1, "says what it looks for, and why"


@pytest.mark.parametrize("name", MODULES)
def test_each_module_has_a_case_file(name: str) -> None:
    assert (Path(__file__).parent / f"test_{name}.py").is_file()


@pytest.mark.parametrize("name", MODULES)
def test_each_status_that_a_check_can_give_has_a_case(name: str) -> None:
    code = (FOLDER / f"{name}.py").read_text("utf-8")
    cases = (Path(__file__).parent / f"test_{name}.py").read_text("utf-8")
    statuses = [status for status in STATUSES if f'"{status}"' in code]
    assert len(statuses) >= 3
    assert [status for status in statuses if f'"{status}"' not in cases] == []


def test_codes_and_names_are_unique_and_all_are_registered() -> None:
    assert sorted(check.code for check in checks()) == sorted(module(n).CODE for n in MODULES)
    assert len({check.code for check in checks()}) == len(MODULES)
    assert len({check.name for check in checks()}) == len(MODULES)


def test_checks_come_in_the_order_of_their_codes() -> None:
    codes = [check.code for check in checks()]
    assert codes == sorted(codes)


def test_what_a_check_bears_on_are_kinds_of_claims_and_standing_questions() -> None:
    names = set(kinds()) | {f"standing.{q}" for q in ("valid", "binds", "slots", "time", "differ")}
    assert [check.code for check in checks() if not set(check.concerns) <= names] == []


def test_a_check_bears_on_every_kind_unless_it_names_some() -> None:
    free = Check("SA1", "n", lambda cell, account: Outcome("SA1", "n", "VALID", "r"), "")
    assert free.bears_on("load")
    assert free.bears_on("magnitude")
    bound = free._replace(concerns=("load",))
    assert bound.bears_on("load")
    assert not bound.bears_on("magnitude")


def test_a_rate_that_was_not_delivered_bears_on_the_load_alone() -> None:
    concerns = {check.code: check.concerns for check in checks() if check.concerns}
    assert concerns == {"SA102": ("load", "standing.valid")}


def test_a_cell_is_checked_run_by_run_and_every_outcome_names_its_run() -> None:
    outcomes = check_cell(cell("base", run(id="a"), run(id="b")))
    codes = [check.code for check in checks()]
    assert [(o.run, o.code) for o in outcomes] == [(r, c) for r in "ab" for c in codes]
    assert all(o.reason for o in outcomes)


@pytest.mark.parametrize(
    ("statuses", "worst"),
    [
        ((), "NOT CHECKED"),
        (("NOT APPLICABLE",), "NOT CHECKED"),
        (("NOT APPLICABLE", "VALID"), "VALID"),
        (("VALID", "SUSPECT", "VALID"), "SUSPECT"),
        (("SUSPECT", "INVALID", "VALID"), "INVALID"),
    ],
)
def test_a_run_is_as_good_as_its_worst_check(statuses: tuple[Status, ...], worst: Validity) -> None:
    assert verdict(tuple(Outcome("SA1", "n", status, "r") for status in statuses)) == worst
