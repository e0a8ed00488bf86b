"""A number as printed, with the interval its last digit allows, in base units.

"43.1" in ms is 0.0431 s in [0.04305, 0.04315]; decimal arithmetic, so that the ends are the
floats nearest to what was typed.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Literal

from analysis.model import LARGEST, SMALLEST, Basis, Figure, Scalar, Source

UNITS: dict[str, tuple[Decimal, str]] = {
    "s": (Decimal(1), "s"),
    "ms": (Decimal("0.001"), "s"),
    "tok/s": (Decimal(1), "tok/s"),
    "1/s": (Decimal(1), "1/s"),
    "tok": (Decimal(1), "tok"),
    "1": (Decimal(1), ""),
    "GiB": (Decimal(2**30), "B"),
    "GB": (Decimal(10**9), "B"),
    "B": (Decimal(1), "B"),
    "ratio": (Decimal(1), ""),
    "percent": (Decimal(1), "%"),
    "%": (Decimal(1), "%"),
}
"""Unit as written: how many of the project's units it is, and which one."""

Rounding = Literal["printed", "exact"] | Decimal
"""Half a unit of the last printed digit, none, or a half-width in the unit as written."""

_NUMBER = re.compile(r"[+-]?(\d{1,3}(,\d{3})+|\d+)(\.\d*)?([eE][+-]?\d{1,2})?|[+-]?\.\d+", re.ASCII)
_MOST_DIGITS = 40


def number_of(text: str) -> Decimal | None:
    """The number that a cell holds, "2,839.5" included; None where it holds none."""
    text = text.strip()
    if len(text) > _MOST_DIGITS or not _NUMBER.fullmatch(text):
        return None
    number = Decimal(text.replace(",", ""))
    return number if not number or SMALLEST < abs(number) < LARGEST else None


def printed(
    name: str,
    number: Decimal,
    unit: str,
    source: Source,
    rounding: Rounding = "printed",
    basis: Basis | None = None,
) -> Figure:
    """The figure of a printed number; `unit` is one of `UNITS`."""
    scale, base = UNITS[unit]
    if isinstance(rounding, Decimal):
        half = rounding
    elif rounding == "exact":
        half = Decimal(0)
    else:
        exponent = number.as_tuple().exponent
        half = Decimal((0, (5,), int(exponent) - 1))
    return Figure(
        name,
        float(number * scale),
        float((number - half) * scale),
        float((number + half) * scale),
        base,
        source,
        basis or ("exact" if rounding == "exact" else "printed"),
    )


def scalar_of(text: str) -> Scalar:
    """A setting as written in a name or a table: a number or a boolean where it is one."""
    if len(text) > _MOST_DIGITS:
        return text
    if text in ("True", "False", "true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if abs(number) < LARGEST and "_" not in text:
            return number
    return text
