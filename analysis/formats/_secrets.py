"""Secrets in text of a file, masked before the text is kept or quoted."""

from __future__ import annotations

import re

MASK = "***"

_NAMES = (
    r"(?:api[_-]?key|access[_-]?key(?:[_-]id)?|private[_-]?key|secret(?:[_-]?key)?|token|password"
    r"|passwd|credential|cookie|authorization|auth)s?"
)
_KEY = re.compile(rf"(?:^|[_.-]){_NAMES}$", re.IGNORECASE)
_FORMS = (
    # Group 1 is what stays before the mask.
    # user:password@ of an address
    re.compile(r"()(?<=://)[^/\s@'\"]{1,200}(?=@)"),
    # --api-key VALUE, NAME_TOKEN=VALUE, "password": "VALUE", Authorization: Basic VALUE; a bare
    # number is a count ("tokens: 128"), no secret.
    re.compile(
        rf"(?i)((?:--[\w-]{{0,40}}{_NAMES}\s|(?<![A-Za-z]){_NAMES}[\"']?\s{{0,3}}[=:]\s{{0,3}})[\"']?)"
        r"(?!\d[\d.,]*(?:\s|$))(?:(?:bearer|basic)\s)?[^\s\"',;}]{4,}"
    ),
    re.compile(r"()\b(?:hf_|sk-)[\w.+/=-]{8,}"),
    re.compile(r"(?i)(\b(?:bearer|basic) )[\w.+/=-]{8,}"),
)


def is_secret(key: str) -> bool:
    """Whether what stands under a key must not be shown."""
    return bool(_KEY.search(key))


def masked(text: str) -> str:
    """The text with passwords, keys and tokens replaced by `MASK`."""
    for form in _FORMS:
        text = form.sub(rf"\1{MASK}", text)
    return text
