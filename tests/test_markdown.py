"""Whatever a file says is shown as it stands: no markup, no include, no link, no attribute."""

from __future__ import annotations

import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import jinja2
import markdown
import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from analysis.markdown import Safe, badge, code, environment, escape, link, up

ROOT = Path(__file__).parents[1]

UNSEEN = re.compile(
    r"[\s\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+"
)
"""Whitespace, control and direction characters: these may become a space."""

PLACES = {
    "paragraph": "before\n\n{0}\n\nafter",
    "cell": "| a | b |\n|---|---|\n| {0} | x |\n",
    "cell in a div": '<div class="numbers" markdown>\n\n| a |\n|---|\n| {0} |\n\n</div>\n\nx',
    "list item": "- {0}\n- b",
    "heading": "# {0}\n\nx",
    "link": "x [{0}](a/b.md) y",
    "code": "x <code>{0}</code> y",
    "admonition": '!!! warning "{0}"\n\nx',
    "beside itself": "{0} · {0}: {0} [{0}](a.md) <code>{0}</code> **x** {0} _x_ {0}",
}
"""Where the templates put text."""

TOKENS = (
    '--8<-- "index.md"', "--8<--\nindex.md\n--8<--", "-8<- ", ";--8<--", "{: .x }", "{#id}",
    "{ .c }", "[a](b)", "![a](b)", "[a][b]", "[x]: http://y", "[^1]", "[^1]: n", "*[x]: y",
    "[TOC]", "[[x]]", "<b>", "<script>", "</code>", "</p>", "</div>", '<div markdown="1">',
    "<!-- c -->", "<?x?>", "<![CDATA[", "<http://a.b>", "<a@b.c>", "http://a.b", "a@b.c", "&amp;",
    "&#35;", "&lt", "&", "<", ">", "> ", "`", "```", "~~~", "~~", "^^", "==", "++a++", "!!! note",
    '!!! note "x"', "??? x", "???+ x", '=== "t"', "/// x", "---", "***", "___", "- - -", "-", "+",
    "_", "__", "1.", "1)", ":", ": ", "::", "#", " #", "|", " | ", "\\", "\\\\", "*", "**",
    "_a_", "a_b_c", "(", ")", "[", "]", "{", "}", "!", "'", '"', "$$", "{% x %}", "{{ x }}",
    ":smile:", "(c)",
    "...", "%", "wzxhzdk:0", "\x02", "\x03", "klzzwxh:0001", "a", "b", "0", "é", "漢", " ", "  ",
    "    ", "\t", "\n", "\n\n", "\r\n", "\x85", "\u2028", "\u00a0", "\u200e", "\u202e", "\ud800",
)  # fmt: skip

TEXTS = st.one_of(st.text(max_size=30), st.lists(st.sampled_from(TOKENS), max_size=7).map("".join))


@cache
def converter() -> markdown.Markdown:
    """Python-Markdown as mkdocs.yml sets it up."""
    listed = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["markdown_extensions"]
    names, settings_of = [], {}
    for item in listed:
        name = item if isinstance(item, str) else next(iter(item))
        names.append(name)
        if isinstance(item, dict):
            settings_of[name] = item[name]
    settings_of["pymdownx.snippets"] = {
        **settings_of["pymdownx.snippets"],
        "base_path": [str(ROOT / "docs"), str(ROOT / "docs" / "includes")],
        "check_paths": True,
    }
    return markdown.Markdown(extensions=names, extension_configs=settings_of)


class Page(HTMLParser):
    """The tags and the visible text of a page."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, tuple[tuple[str, str | None], ...]]] = []
        self.text = ""
        self.html = converter().reset().convert(source)
        self.feed(self.html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if ("class", "headerlink") in attrs:
            self.text += " "  # its sign stands apart
        # The identifier of a heading and the link to it follow from its words.
        own = {"h1": {"id"}, "a": {"href"} if ("class", "headerlink") in attrs else set()}
        self.tags.append((tag, tuple(a for a in attrs if a[0] not in own.get(tag, set()))))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.tags.append(("comment", ((data, None),)))

    def handle_pi(self, data: str) -> None:
        self.tags.append(("instruction", ((data, None),)))


PLAIN = {place: Page(source.format("BASE")) for place, source in PLACES.items()}


def seen(text: str) -> str:
    return UNSEEN.sub(" ", text).strip()


@pytest.mark.parametrize("place", PLACES)
@settings(deadline=None, max_examples=100)
@example('--8<-- "index.md"')
@example("{: #a .b }")
@example("!!! danger")
@example("    indented")
@example("---")
@given(text=TEXTS)
def test_text_is_shown_as_it_stands(place: str, text: str) -> None:
    if not seen(text) and place in ("paragraph", "list item", "admonition"):
        return  # nothing to show: Markdown leaves the element out
    page = Page(PLACES[place].format(escape(text)))
    assert page.tags == PLAIN[place].tags, page.html
    expected = seen(PLAIN[place].text.replace("BASE", UNSEEN.sub(" ", text)))
    assert UNSEEN.sub("", page.text) == UNSEEN.sub("", expected), page.html
    # Words stay apart: a space for what is not shown.
    assert seen(page.text).split() == expected.split(), page.html


@settings(deadline=None)
@given(text=TEXTS)
def test_escaped_text_is_one_line_without_control_characters(text: str) -> None:
    assert not re.search(
        r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", escape(text)
    )


@settings(deadline=None)
@given(text=st.one_of(TEXTS, st.text(st.characters(codec=None))))
def test_escaped_text_can_be_written_to_a_file(text: str) -> None:
    escape(text).encode("utf-8")


def test_what_is_escaped_is_not_escaped_again() -> None:
    assert escape(escape("a*b")) == "a\\*b"
    assert escape(Safe("**bold**")) == "**bold**"


@pytest.mark.parametrize("value", [12, 0.5, None, True])
def test_values_that_are_no_text(value: object) -> None:
    assert escape(value) == str(value)


@pytest.mark.parametrize(
    "plain", ["-5.3 %", "mean_ttft_ms", "9.95 [9.93", "1,000", "a - b", "Q: a"]
)
def test_ordinary_text_stays_readable_in_the_source(plain: str) -> None:
    assert escape(plain).replace("\\", "") == plain


def test_templates_escape_every_expression_but_markdown_of_their_own() -> None:
    template = environment().from_string("{{ a }}|{{ b }}|{{ a ~ a }}|{{ [a, a]|join(' ') }}")
    assert template.render(a="*x*", b=badge("VALID")) == (
        r'\*x\*|<span class="verdict verdict-valid">VALID</span>|\*x\*\*x\*|\*x\* \*x\*'
    )


def test_a_name_that_a_template_does_not_get_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError):
        environment().from_string("{{ nothing }}").render()


def test_a_template_line_of_its_own_leaves_no_empty_line() -> None:
    template = environment().from_string(
        "{% if x %}\n  {% if x %}\na\n  {% endif %}\n{% endif %}\n"
    )
    assert template.render(x=True) == "a\n"


@settings(deadline=None)
@given(text=TEXTS)
def test_a_badge_cannot_get_a_class_or_an_attribute_of_the_text(text: str) -> None:
    page = Page(f"x {badge(text)} y")
    assert [tag for tag, _ in page.tags] == ["p", "span"]
    names = dict(page.tags[1][1])
    assert list(names) == ["class"]
    assert re.fullmatch(r"verdict verdict-[\w.+-]+", names["class"] or "")


def test_a_link_shows_its_text_and_leads_to_a_page_of_ours() -> None:
    page = Page(link("a](http://evil) b", "claims/x.md"))
    assert page.tags == [("p", ()), ("a", (("href", "claims/x.md"),))]
    assert page.text == "a](http://evil) b"


def test_code_shows_its_text_in_a_fixed_width_face() -> None:
    page = Page(code("results/*.json: p99.9_itl_ms </code>"))
    assert page.tags == [("p", ()), ("code", ())]
    assert page.text == "results/*.json: p99.9_itl_ms </code>"


def test_a_link_upwards_shows_its_text() -> None:
    page = Page(f"{up('../../', '<b>*Findings*')} x")
    assert page.tags == [("p", ()), ("a", (("href", "../../"),))]
    assert page.text == "<b>*Findings* x"
