"""What a command's flags are: tested against the --help that the installed version printed.

The successor of a removed flag is looked for by its words: the flag that still carries all of
them (less enable, disable and no) does its work now.
"""

from __future__ import annotations

import re

from analysis.claims import ClaimBase
from analysis.evidence import BadClaim, Evidence, Judgement
from analysis.model import Estimate, HelpText, Source, Verdict
from analysis.wording import listing

_FLAG = re.compile(r"(?<![\w-])--[A-Za-z][\w-]*")
_SWITCH_WORDS = {"enable", "disable", "no"}


class Claim(ClaimBase, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keys of an interface claim."""

    command: str
    flags: tuple[str, ...]
    """Flags the sentence speaks of."""
    present: bool = True
    """Whether the sentence says that they exist."""
    successor: str = ""
    """The flag said to replace a removed one."""
    choices: tuple[str, ...] = ()
    """Values the (one) flag is said to take, all of them."""
    takes_value: bool | None = None
    """Whether the (one) flag is said to take a value."""


def judge(claim: Claim, ev: Evidence) -> Judgement:
    """Look each flag up in the stored help text."""
    if not claim.flags:
        raise BadClaim("names no flags; list them in `flags`")
    page = ev.help_text(claim.command)
    known = sorted(set(_FLAG.findall(page.text)))
    version = f" {page.version}" if page.version else ""
    parts: list[tuple[Verdict, str]] = []
    if claim.choices:
        parts.append(_choices(claim, page))
    if claim.successor:
        parts.append(_successor(claim, page, known))
    if claim.takes_value is not None and claim.flags[0] in known:
        has_value = _takes_value(page, claim.flags[0])
        parts.append(
            _yes(
                has_value == claim.takes_value,
                f"{claim.flags[0]} takes {'a' if has_value else 'no'} value",
            )
        )
    parts.append(_presence(claim, f"{claim.command}{version}", known))
    verdict: Verdict = (
        "refuted"
        if any(v == "refuted" for v, _ in parts)
        else "inconclusive"
        if any(v == "inconclusive" for v, _ in parts)
        else "supported"
    )
    parts.sort(key=lambda part: ("refuted", "inconclusive", "supported").index(part[0]))
    line = _line_of(page, claim.successor or claim.flags[0])
    found = float(sum(flag in known for flag in claim.flags))
    number = Estimate(
        "flags found",
        found,
        found,
        found,
        "",
        "exact",
        f"of {len(claim.flags)} looked for in the help text",
        (Source(page.source.file, line),),
    )
    return Judgement(
        verdict,
        tuple(f"{text}." for _, text in parts),
        (number,),
        assumptions=("flags named in the prose of a help text count as present",),
        flips="another version of the command",
    )


def _yes(right: bool, text: str) -> tuple[Verdict, str]:
    return ("supported" if right else "refuted"), text


def _presence(claim: Claim, command: str, known: list[str]) -> tuple[Verdict, str]:
    """Whether the flags are there, or are all gone, in one sentence."""
    there = [flag for flag in claim.flags if flag in known]
    gone = [flag for flag in claim.flags if flag not in known]
    if len(claim.flags) == 1:
        text = f"{command} {'has' if there else 'has no'} {claim.flags[0]}"
    elif there:
        text = f"{command} has {len(there)} of {len(claim.flags)} flags: {listing(there)}"
        text += f"; it has no {listing(gone, 'or')}" if gone else ""
    else:
        text = f"{command} has none of the {len(claim.flags)} flags: {listing(gone)}"
    return _yes(not (gone if claim.present else there), text)


def _successor(claim: Claim, page: HelpText, known: list[str]) -> tuple[Verdict, str]:
    words = _words(claim.flags[0])
    heirs = [flag for flag in known if words <= _words(flag) and flag not in claim.flags]
    if claim.successor in heirs:
        return "supported", f"{claim.successor} carries the words of {claim.flags[0]}"
    there = "which exists but is another switch"
    if claim.successor not in known:
        there = "which does not exist"
    if heirs:
        return "refuted", (
            f"What {claim.flags[0]} did is now done by {listing(heirs, 'or')}, by its words, and "
            f"not by {claim.successor}, {there}"
        )
    return "inconclusive", f"No flag carries the words of {claim.flags[0]}"


def _choices(claim: Claim, page: HelpText) -> tuple[Verdict, str]:
    found = re.search(rf"{re.escape(claim.flags[0])}[ =]\{{([^}}]*)\}}", page.text)
    if found is None:
        return "inconclusive", f"The help text lists no choices of {claim.flags[0]}"
    values = [value.strip() for value in found.group(1).split(",")]
    return _yes(
        set(values) == set(claim.choices), f"{claim.flags[0]} takes {listing(values, 'or')}"
    )


def _takes_value(page: HelpText, flag: str) -> bool:
    """Whether a usage line or an option's own line shows a value after the flag.

    `[--flag VALUE]` or `  --flag VALUE` (one space; a description follows after two), or
    `--flag=VALUE` anywhere.
    """
    name = re.escape(flag)
    shown = (rf"\[{name}[ =][^\]]+\]", rf"(?m)^\s+(?:-\w, )?{name}[ =]\S", rf"{name}=\S")
    return any(re.search(pattern, page.text) for pattern in shown)


def _words(flag: str) -> set[str]:
    return set(flag.strip("-").split("-")) - _SWITCH_WORDS


def _line_of(page: HelpText, flag: str) -> str:
    for number, line in enumerate(page.text.splitlines(), 1):
        if flag in line:
            return f"line {number}"
    return f"no line with {flag}"
