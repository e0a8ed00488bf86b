"""Kinds of claims. A claim is a table in claims.toml; a kind is a module here.

Each module exports

- `Claim`, a frozen `ClaimBase` whose fields are the keys of the table, and
- `judge(claim, evidence) -> Judgement`, which decides from numbers alone.

The module's name is the kind's name and its docstring the page a user reads. The folder is the
registry: a new kind is a new file, and nothing else is edited. No field of a claim carries a
verdict or a reason; all wording comes from the kind and the numbers.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import msgspec

from analysis.evidence import BadClaim, Evidence, Judgement
from analysis.study import convert, nearest


class ClaimBase(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What every claim says of itself."""

    id: str
    kind: str
    says: str
    """The sentence, in plain words."""
    source: str
    """Where it was said: "write-up, section 5"."""
    headline: bool = False
    """Whether it is one of the sentences that a reader should see first."""
    study: str = ""
    """The study whose data is meant, where it is not the claim's own."""
    reads: str = ""
    """How a vague word is read ("slightly: at most 10 %"); shown as an assumption."""
    see: tuple[str, ...] = ()
    """Ids of claims that a reader of this one should know: the same sentence's other half."""


class Repeat(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A sentence that repeats an earlier claim; it takes that claim's verdict."""

    id: str
    repeats: str
    says: str
    source: str


class Kind(NamedTuple):
    """A registered kind."""

    name: str
    claim: type[Any]
    judge: Callable[[Any, Evidence], Judgement]
    doc: str


@cache
def kinds() -> Mapping[str, Kind]:
    """All kinds by name, sorted."""
    found = {}
    for module_info in sorted(pkgutil.iter_modules(__path__), key=lambda info: info.name):
        if module_info.name.startswith("_"):
            continue
        module = importlib.import_module(f"{__name__}.{module_info.name}")
        found[module_info.name] = Kind(
            module_info.name, module.Claim, module.judge, (module.__doc__ or "").strip()
        )
    return found


def read_claim(table: Mapping[str, Any]) -> ClaimBase | Repeat:
    """A table of claims.toml as a claim of its kind.

    Raises:
        BadClaim: one line: the unknown kind with the nearest right one.
        BadInput: one line: the key that is unknown, missing or not as it should be.
    """
    if "repeats" in table:
        return convert(dict(table), Repeat, "a repeat")
    kind = table.get("kind")
    if not isinstance(kind, str):
        raise BadClaim(f"has no kind; {nearest('', kinds())}")
    if kind not in kinds():
        raise BadClaim(f"has the unknown kind {kind!r}; {nearest(kind, kinds())}")
    article = "an" if kind[0] in "aeiou" else "a"
    claim: ClaimBase = convert(dict(table), kinds()[kind].claim, f"{article} {kind}")
    return claim
