"""Secrets by the name they stand under or by their own form, found in names and in text (pure).

`collectors/secret.py` and `analysis/formats/_secrets.py` are one file twice, since neither package
imports the other; a test holds them alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MASK = "***"

_LETTERS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_LAST = re.compile(
    r"secrets?|passwords?|passwd|passphrases?|pwd|pass|pat|credentials?|cookies?|authorization|auth"
    r"|signature|sig|jwt|hmac|bearer|tokens?"
)
_GLUED = re.compile(
    r"(?:(?:api|access|private|secret|signing|encryption)keys?|(?:auth|access|api|hf|gh)tokens?"
    r"|passwords?|passwd|passphrase|secrets?)$"
)
_KEY = re.compile(r"(?i)key(?:[_-]\d+)?$")
_KEY_ID = re.compile(r"keyids?$")
_TEXT_TOKEN = re.compile(
    "per|bos|eos|pad|unk|cls|sep|mask|image|audio|video|stop|special|first|last|next|new|max|min|num"
    "|spec|total|mean|median|output|input|prompt|completion|generated|generation|prefill|decode"
    "|batched|scheduled|computed|cached|kv|speculative|draft|accepted|partial|budget|usage|block"
    "|long|all|top|reasoning|thinking"
)
"""Before "token" or "tokens" these make it a piece of text, of which there is a number."""
_ORDINARY = re.compile("(?i)key|pass|auth|pat|sig|signature|secrets|tokens")
"""Alone and in a sentence, words like any other."""
_COUNTED = re.compile(r"(?i)(?:token|key)$")
_COUNT = re.compile(r"(?i)[-+]?\d[\d.,_]*[kmgt]?|auto|none|null|true|false|inf|nan")

_VALUE = r"""(?P<secret>(?<=")[^"]{1,4000}|(?<=')[^']{1,4000}|[^\s"',;&)}\]]{4,4000})"""
_URL_USER = re.compile(r"""://(?P<secret>[^/\s"'<>]{1,2000})@""")
_URL_VALUE = re.compile(r"""[?&;#](?P<name>[\w.~%-]{1,200})=(?P<secret>[^&#\s"'<>]+)""")
_AFTER_NAME = re.compile(
    r"""(?<![\w.-])(?P<name>[\w.-]{1,200})["']?\s{0,3}[=:]\s{0,3}\[?["']?"""
    rf"(?:(?i:bearer|basic|digest|token)\s+)?{_VALUE}"
)
_AFTER_FLAG = re.compile(
    rf"""(?<![\w-])--(?P<name>[\w.-]{{1,200}})["']?,?\s{{1,3}}["']?(?!--){_VALUE}"""
)
_FORMS = (
    re.compile(r"\b(?P<secret>hf_(?=[a-z]*[A-Z0-9]|[a-z]{16})[\w.+/=-]{8,})"),
    re.compile(r"\b(?P<secret>(?:gh[oprsu]_|github_pat_|glpat-|sk[-_]|nvapi-)[\w.+/=-]{8,})"),
    re.compile(r"\b(?P<secret>(?:xox[abeprs]-|npm_|pypi-|dckr_pat_|hvs\.)[\w.+/=-]{10,})"),
    re.compile(r"\b(?P<secret>(?:AKIA|ASIA)[A-Z0-9]{12,}|AIza[\w-]{20,}|ya29\.[\w-]{8,})"),
    # A JSON web token: its header begins with {"
    re.compile(r"\b(?P<secret>eyJ[\w-]{8,}\.[\w.-]+)"),
    re.compile(r"(?i:\bbearer) (?P<secret>[\w.+/=~-]{8,})"),
    # Two words of a sentence are no user and password in base64.
    re.compile(r"(?i:\bbasic) (?P<secret>(?=[\w+/-]*(?:[0-9=]|[a-z][A-Z]))[\w+/=-]{8,})"),
    re.compile(r"(?P<secret>-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]*)"),
)


def is_secret(name: str, value: str = "") -> bool:
    """Whether what stands under a name must not be shown.

    Args:
        name: Of a variable, a flag, a header, a key: HF_TOKEN_2, --api-key, accessToken.
        value: What stands there. "tokens" and "keys" with a number are a number of them.
    """
    words = [word.lower() for word in _LETTERS.findall(name)]
    if words[-1:] in (["id"], ["ids"]) and _KEY_ID.search("".join(words)):
        words.pop()
    last = words[-1] if words else ""
    # "key1" is the first of some keys, KEY_2 another one.
    key = last == "key" and _KEY.search(name)
    if not (_LAST.fullmatch(last) or key or _GLUED.search("".join(words))):
        # Headers of an exporter are what lets it in.
        return last == "headers" and "otlp" in words
    if last == "token" and any(map(_TEXT_TOKEN.fullmatch, words[-2:-1])):
        return False
    plural = last in ("tokens", "keys")
    if plural and any(map(_TEXT_TOKEN.fullmatch, words[:-1])):
        return False
    return not (plural and _COUNT.fullmatch(value))


def found_in(text: str) -> Iterator[tuple[int, int]]:
    """Where secrets stand in a text: begin and end of each; some may overlap."""
    for found in _URL_USER.finditer(text):
        yield found.span("secret")
    for form in (_URL_VALUE, _AFTER_NAME, _AFTER_FLAG):
        for found in form.finditer(text):
            bare = form is _AFTER_NAME and _ORDINARY.fullmatch(found["name"])
            # "token: 5" of a sentence; a password may be a number.
            number = _COUNTED.search(found["name"]) and _COUNT.fullmatch(found["secret"])
            if not bare and not number and is_secret(found["name"], found["secret"]):
                yield found.span("secret")
    for form in _FORMS:
        for found in form.finditer(text):
            yield found.span("secret")


def masked(text: str) -> str:
    """The text with passwords, keys and tokens replaced by `MASK`."""
    shown, at = [], 0
    for begin, end in sorted(found_in(text)):
        if begin >= at:
            shown += [text[at:begin], MASK]
        at = max(at, end)
    return "".join([*shown, text[at:]])
