"""How numbers are printed: ms and GiB for readers, as many digits as the interval deserves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from analysis.model import Estimate
from analysis.quantity import Quantity

GIB = 2.0**30

_SHOWN = {
    "s": ("ms", 1e3),
    "B": ("GiB", 1 / GIB),
    "B/s": ("GB/s", 1e-9),
    "FLOP/s": ("TFLOP/s", 1e-12),
    "FLOP": ("GFLOP", 1e-9),
}
"""Unit inside -> unit printed and the factor."""


def shown_unit(unit: str, value: float = 0.0) -> tuple[str, float]:
    """The unit a reader sees and the factor to it; long times and small sizes keep their base."""
    if unit == "s" and abs(value) >= 10:
        return "s", 1.0
    if unit == "B" and 0 < abs(value) < 1e6:
        return "B", 1.0
    return _SHOWN.get(unit, (unit, 1.0))


def digits(value: float, lo: float | None = None, hi: float | None = None) -> str:
    """A number with 3 to 4 significant digits, more where the interval is narrower than that."""
    if not math.isfinite(value):
        return "not defined" if math.isnan(value) else ("∞" if value > 0 else "-∞")
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    places = max(0, 2 - magnitude)
    if lo is not None and hi is not None and math.isfinite(hi - lo) and hi > lo:
        # The first digit of the half-width is the last one shown: 43.10 [43.05, 43.15].
        places = min(6, max(places, -math.floor(math.log10((hi - lo) / 2) + 1e-9)))
    elif lo in (None, value) and float(value).is_integer() and abs(value) < 1e15:
        places = 0
    if abs(value) >= 1000:
        between = lo is not None and lo != hi
        places = min(places, 2 if between else 1)
        if float(value).is_integer() and not between:
            places = 0
    return f"{value:,.{places}f}"


def show(value: float, unit: str = "") -> str:
    """One number with its unit: `show(0.0431, "s")` is "43.1 ms"."""
    name, factor = shown_unit(unit, value)
    return _with_unit(digits(value * factor), name)


def span(quantity: Quantity | Estimate, places: int = 0) -> str:
    """A number with its interval: "2.737 [2.736, 2.738]"; the brackets go when it is exact.

    `places`: decimals at least, where the number stands beside one with as many.
    """
    name, factor = shown_unit(quantity.unit, quantity.value)
    value, lo, hi = (x * factor for x in (quantity.value, quantity.lo, quantity.hi))
    shown = digits(value, lo, hi)
    if places > len(shown.partition(".")[2]) and math.isfinite(value):
        shown = f"{value:,.{places}f}"
    text = _with_unit(shown, name)
    if lo == hi:
        return text
    return f"{text} [{digits(lo, lo, hi)}, {digits(hi, lo, hi)}]"


def percent(share: float, places: int = 1) -> str:
    """A share as a percentage: `percent(0.138)` is "13.8 %"."""
    if not math.isfinite(share):
        return _beyond(share)
    # Adding zero takes the sign from a zero that is left by rounding.
    return f"{round(share * 100, places) + 0.0:.{places}f} %"


def signed_percent(share: float, places: int = 1) -> str:
    """A change as a percentage with its sign."""
    return f"{share * 100:+.{places}f} %" if math.isfinite(share) else _beyond(share)


def _beyond(share: float) -> str:
    """A percentage that is no number: "∞ %", or in words."""
    return digits(share) if math.isnan(share) else f"{digits(share)} %"


def listing(items: Iterable[object], word: str = "and") -> str:
    """ "a", "a and b", "a, b and c"."""
    texts = [str(item) for item in items]
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} {word} {texts[-1]}"


def plural(count: int, noun: str) -> str:
    """ "1 run", "2 runs"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def count_of(names: Sequence[str], most: int = 5) -> str:
    """A bounded listing: the first few and how many more."""
    if len(names) <= most:
        return listing(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"


def _with_unit(text: str, unit: str) -> str:
    return f"{text} {unit}" if unit else text
