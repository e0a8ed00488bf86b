"""Untrusted text in Markdown: whatever a result file says, it is shown and never interpreted.

Templates get an environment in which every expression is escaped unless it is `Safe`.
"""

from __future__ import annotations

import html
import re
from typing import Any

import jinja2

from analysis.study import slug

_SPECIAL = re.compile(r"([\\`*_{}\[\]#])")
_INNER_UNDERSCORE = re.compile(r"(?<=[^\W_])\\_(?=[^\W_])")
_LINE_START = re.compile(r"^ ?([-+](?=\s|$)|-(?=[-\s]+$)|\d+[.)](?=\s|$)|:(?=\s|$)|!{3}|\?{3})")
"""List, rule, definition, admonition, details."""
_CONTROL = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+"
)


class Safe(str):
    """Markdown made by this program, not to be escaped again."""

    __slots__ = ()


def escape(text: object) -> Safe:
    """Any text as Markdown that shows exactly that text, on one line.

    HTML is escaped, Markdown's own characters get a backslash, table bars and doubled markers an
    entity; control and direction characters become a space.
    """
    if isinstance(text, Safe):
        return text
    plain = re.sub(r"^\s+", " ", _CONTROL.sub(" ", str(text)))
    marked = _SPECIAL.sub(r"\\\1", plain)
    marked = html.escape(_INNER_UNDERSCORE.sub("_", marked), quote=False)
    for char in "|~^":
        marked = marked.replace(char, f"&#{ord(char)};")
    marked = marked.replace("==", "&#61;&#61;").replace("::", "&#58;&#58;")
    marked = marked.replace("://", "&#58;//")
    return Safe(_LINE_START.sub(lambda m: m[0].replace(m[1][0], f"&#{ord(m[1][0])};", 1), marked))


def environment() -> jinja2.Environment:
    """Templates of this package with escaping of every expression."""
    env = jinja2.Environment(
        loader=jinja2.PackageLoader("analysis", "templates"),
        undefined=jinja2.StrictUndefined,
        # HTML autoescaping would not know Markdown; `finalize` escapes for both.
        autoescape=False,  # noqa: S701
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    env.filters["slug"] = slug
    return env


def _finalize(value: Any) -> Any:
    return escape(value)


def link(text: str, target: str) -> Safe:
    """A link to a page of ours; the target is made of slugs."""
    return Safe(f"[{escape(text)}]({target})")


def up(target: str, text: str) -> Safe:
    """A link to a page above ours, as a site address: its Markdown file may be anybody's."""
    return Safe(f'<a href="{target}">{escape(text)}</a>')


def crumbs(root: str, site: str, study: str = "", title: str = "") -> Safe:
    """The way up from a page, and to the pages that belong to all studies.

    Args:
        root: leads to the top of the report from the page's Markdown file.
        site: leads there from its site address.
        study: leads to the study's page, of a page that belongs to one.
        title: the study's.
    """
    above = up(site, "Findings") + (f" › {link(title, study)}" if study else "")
    shared = " · ".join(link(text, root + page) for text, page in _SHARED)
    return Safe(f'<div class="crumbs" markdown>\n{above} · {shared}\n</div>')


_SHARED = (
    ("data quality", "quality.md"),
    ("how verdicts are reached", "rules.md"),
    ("glossary", "glossary.md"),
    ("how to reproduce", "reproduce.md"),
)


def anchor(name: str) -> Safe:
    """A place within a page that links can name; the name is a slug."""
    return Safe(f'<a id="{slug(name)}"></a>')


def badge(word: str) -> Safe:
    """A verdict or status with its style class."""
    return Safe(f'<span class="verdict verdict-{slug(word.lower())}">{escape(word)}</span>')


def code(text: str) -> Safe:
    """Text in a fixed-width face; Markdown still reads inside HTML, so it is escaped as text."""
    return Safe(f"<code>{escape(text)}</code>")
