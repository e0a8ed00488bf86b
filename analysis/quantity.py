"""Arithmetic on printed figures that never forgets which figures a result came from.

A `Quantity` is an expression over `Figure` leaves. Its interval is the range of the expression
over the box of its leaves' intervals, found by evaluating all corners at once. A figure that
enters twice is one leaf, so dependence is exact: x / x is 1, not [lo/hi, hi/lo] as in plain
interval arithmetic. Corners give the exact range where the expression is monotone in each
figure, which holds for every formula of this project over intervals this narrow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from analysis.model import Estimate, Figure, Floats, Source

_MOST_CORNERS = 12
"""Up to 2**12 corners are evaluated; beyond that the leaves' linear effects are added up."""
_BLOCK = 256
"""Leaves whose linear effects are found in one evaluation: thousands of repeats have as many."""

Env = Mapping[Figure, Floats]


@dataclass(frozen=True, eq=False)
class Quantity:
    """A number with a unit, an interval and the figures it was computed from."""

    unit: str
    leaves: tuple[Figure, ...]
    evaluate: Callable[[Env], Floats]

    @cached_property
    def _range(self) -> tuple[float, float, float]:
        wide = [leaf for leaf in self.leaves if leaf.lo != leaf.hi]
        point = {leaf: np.array([leaf.value]) for leaf in self.leaves}
        with np.errstate(all="ignore"):
            value = float(self.evaluate(point)[0])
            if not wide:
                return value, value, value
            if len(wide) > _MOST_CORNERS:
                return self._linear(point, wide, value)
            corners = np.indices((2,) * len(wide)).reshape(len(wide), -1)
            env: dict[Figure, Floats] = {
                leaf: np.full(corners.shape[1], leaf.value) for leaf in self.leaves
            }
            for row, leaf in zip(corners, wide, strict=True):
                env[leaf] = np.where(row == 0, leaf.lo, leaf.hi)
            found = self.evaluate(env)
        if np.isnan(found).any():
            return value, -math.inf, math.inf
        return value, float(found.min()), float(found.max())

    def _linear(
        self, point: dict[Figure, Floats], wide: list[Figure], value: float
    ) -> tuple[float, float, float]:
        """Range by adding each leaf's own effect: close for intervals narrow beside the value."""
        down = up = 0.0
        for start in range(0, len(wide), _BLOCK):
            block = wide[start : start + _BLOCK]
            env = dict(point)
            for place, leaf in enumerate(block):
                env[leaf] = np.full((len(block), 2), leaf.value)
                env[leaf][place] = leaf.lo, leaf.hi
            found = np.broadcast_to(self.evaluate(env), (len(block), 2)) - value
            if np.isnan(found).any():
                return value, -math.inf, math.inf
            for ends in found.tolist():
                down += min(0.0, *ends)
                up += max(0.0, *ends)
        return value, value + down, value + up

    @property
    def value(self) -> float:
        """The expression at the printed values."""
        return self._range[0]

    @property
    def lo(self) -> float:
        """The least value the leaves' intervals allow."""
        return self._range[1]

    @property
    def hi(self) -> float:
        """The greatest value the leaves' intervals allow."""
        return self._range[2]

    @property
    def finite(self) -> bool:
        """Whether the value is a number at all (no division by zero, no missing figure)."""
        return math.isfinite(self.value)

    @property
    def sources(self) -> tuple[Source, ...]:
        """Every place this number rests on, in order of use."""
        return tuple(dict.fromkeys(leaf.source for leaf in self.leaves))

    def _combine(
        self, other: Quantity | float, unit: str, op: Callable[[Floats, Floats], Floats]
    ) -> Quantity:
        right = other if isinstance(other, Quantity) else constant(other)
        leaves = tuple(dict.fromkeys(self.leaves + right.leaves))
        left_of, right_of = self.evaluate, right.evaluate
        return Quantity(unit, leaves, lambda env: op(left_of(env), right_of(env)))

    def __add__(self, other: Quantity | float) -> Quantity:
        return self._combine(other, self.unit, np.add)

    def __sub__(self, other: Quantity | float) -> Quantity:
        return self._combine(other, self.unit, np.subtract)

    def __rsub__(self, other: float) -> Quantity:
        return self * -1.0 + other

    def __mul__(self, other: Quantity | float) -> Quantity:
        return self._combine(other, _product(self.unit, _unit(other)), np.multiply)

    def __rmul__(self, other: float) -> Quantity:
        return self * other

    def __truediv__(self, other: Quantity | float) -> Quantity:
        return self._combine(other, _quotient(self.unit, _unit(other)), _divide)

    def ln(self) -> Quantity:
        """Natural logarithm; ratios of arms are compared on this scale."""
        inner = self.evaluate
        return Quantity("", self.leaves, lambda env: np.log(inner(env)))

    def as_unit(self, unit: str) -> Quantity:
        """The same number under a unit that the arithmetic could not know."""
        return Quantity(unit, self.leaves, self.evaluate)

    def estimate(self, name: str, definition: str = "", warnings: tuple[str, ...] = ()) -> Estimate:
        """The number as shown on a page, with every figure it rests on."""
        return Estimate(
            name,
            self.value,
            self.lo,
            self.hi,
            self.unit,
            self.interval,
            definition,
            self.sources,
            warnings,
        )

    @property
    def interval(self) -> str:
        """What the interval means, from the bases of the figures."""
        bases = {leaf.basis for leaf in self.leaves if leaf.lo != leaf.hi}
        if not bases:
            return "exact"
        return "rounding" if bases == {"printed"} else " and ".join(sorted(bases))


def quantity(figure: Figure) -> Quantity:
    """A figure as an expression of itself."""
    return Quantity(figure.unit, (figure,), lambda env: env[figure])


def constant(value: float, unit: str = "") -> Quantity:
    """A number that no file holds (a count, a factor of two)."""
    return Quantity(unit, (), lambda _: np.array([value]))


def minimum(left: Quantity, right: Quantity) -> Quantity:
    """The smaller of two quantities, corner by corner."""
    return left._combine(right, left.unit, np.minimum)


def maximum(left: Quantity, right: Quantity) -> Quantity:
    """The greater of two quantities, corner by corner."""
    return left._combine(right, left.unit, np.maximum)


def _divide(top: Floats, bottom: Floats) -> Floats:
    """Quotient, NaN throughout where the divisor has either sign: corners miss its pole."""
    if bottom.min() < 0 < bottom.max():
        return np.full(np.broadcast(top, bottom).shape, np.nan)
    return np.divide(top, bottom)


def _unit(other: Quantity | float) -> str:
    return other.unit if isinstance(other, Quantity) else ""


def _product(left: str, right: str) -> str:
    units = {left, right}
    if units == {"1/s", "s"}:
        return ""
    return left or right


def _quotient(left: str, right: str) -> str:
    if left == right:
        return ""
    if not right:
        return left
    return f"{left or '1'}/{right}"
