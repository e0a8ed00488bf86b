"""Figures in a page: inert JSON, escaped texts, intact after Markdown."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import markdown
import pytest
import yaml

from analysis.chart_html import figure, figures
from analysis.chart_parts import Row, Text
from analysis.markdown import Safe
from analysis.vegalite import bars
from tests.test_vegalite import HOSTILE

ROOT = Path(__file__).parent.parent


def spec(name: str = "a") -> dict[str, Any]:
    return bars([Row(name, 2, 1, 3, name), Row("b", 1, 1, 1)], Text(name, name, name), [name])


def site_html(text: str) -> str:
    """Markdown as the site renders it."""

    class Loader(yaml.SafeLoader):
        """mkdocs.yml may name Python objects, which do not matter here."""

    Loader.add_multi_constructor("", lambda *_: None)
    config = yaml.load((ROOT / "mkdocs.yml").read_text("utf-8"), Loader)  # noqa: S506
    names, options = [], {}
    for entry in config["markdown_extensions"]:
        name = entry if isinstance(entry, str) else next(iter(entry))
        names.append(name)
        options[name] = {} if isinstance(entry, str) else entry[name] or {}
    options.get("pymdownx.snippets", {})["base_path"] = [str(ROOT / "docs")]
    return markdown.markdown(text, extensions=names, extension_configs=options)


class Figure(HTMLParser):
    """Collects elements, the JSON, the label and the caption of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attrs: dict[str, dict[str, str | None]] = {}
        self.texts: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attrs[tag] = dict(attrs)

    def handle_data(self, data: str) -> None:
        last = self.tags[-1] if self.tags else ""
        self.texts[last] = self.texts.get(last, "") + data


@pytest.mark.parametrize("name", ["a", *HOSTILE])
def test_a_figure_survives_markdown_and_nothing_in_it_is_read_as_markup(name: str) -> None:
    chart = spec(name)
    page = site_html(f"Before *this*.\n\n{figure(chart, 'chart-x')}\n\nAfter `that`.\n")
    found = Figure(page)
    assert json.loads(found.texts["script"]) == chart
    inside = found.tags[found.tags.index("figure") :]
    assert inside[:7] == ["figure", "figcaption", "strong", "span", "script", "div", "p"]
    assert inside[7:] == ["noscript", "p", "p", "code"]
    assert found.attrs["div"]["aria-label"] == chart["description"]
    assert found.attrs["div"]["role"] == "img"
    assert found.texts["strong"].strip() == chart["title"]["text"]
    assert found.attrs["script"] == {"type": "application/json"}


@pytest.mark.parametrize("name", HOSTILE)
def test_the_json_is_ascii_without_markup_on_one_line(name: str) -> None:
    html = figure(spec(name), "x")
    assert isinstance(html, Safe)
    assert len(html.splitlines()) == 1
    [text] = re.findall(r'<script type="application/json">(.*?)</script>', html)
    assert text.isascii()
    assert not set(text) & set("<>&")


def test_a_figure_can_be_named_and_says_what_to_do_without_a_script() -> None:
    html = figure(spec(), 'a"><b> c')
    assert 'id="a-b-c"' in html
    assert "<noscript>" in html
    assert 'class="chart-error" hidden' in html


def test_a_chart_without_a_subtitle_has_no_empty_element() -> None:
    chart = spec()
    del chart["title"]["subtitle"]
    assert "<span>" not in figure(chart, "x")


def test_several_figures_have_ids_of_their_own() -> None:
    two = figures([spec(), spec()], "x")
    assert re.findall(r'id="([^"]*)"', two) == ["x-1", "x-2"]
    assert "\n\n" in two
    assert re.findall(r'id="([^"]*)"', figures([spec()], "x")) == ["x"]
    assert figures([], "x") == ""


def test_the_same_chart_is_the_same_bytes() -> None:
    assert figure(spec(), "x") == figure(spec(), "x")


# --- the scripts ---------------------------------------------------------------------------------

ASSETS = ROOT / "analysis" / "theme" / "assets"


def test_vendored_scripts_come_with_their_licences() -> None:
    text = (ASSETS / "LICENSES.txt").read_text("utf-8")
    for name, version in (("vega", "6.4.0"), ("vega-lite", "6.4.3"), ("vega-embed", "7.3.0")):
        assert f"{name} {version}" in text
        assert (ASSETS / f"{name}.min.js").stat().st_size > 50_000
    assert text.count("Redistribution and use in source and binary forms") == 3


def test_our_script_evaluates_nothing_and_fetches_only_from_its_folder() -> None:
    text = (ASSETS / "charts.js").read_text("utf-8")
    assert "ast: true" in text
    assert "actions: false" in text
    assert not re.search(r"\beval\b\(|new Function|innerHTML|https?:", text)
    needed = re.search(r"needed = \[(.*?)\]", text)
    assert needed is not None
    assert all((ASSETS / name).is_file() for name in re.findall(r'"([^"]+)"', needed[1]))


def test_the_style_and_the_script_know_the_classes_of_a_figure() -> None:
    html = figure(spec(), "x")
    for name in ("chart", "chart-view", "chart-error"):
        assert f'class="{name}"' in html
        assert f".{name}" in (ASSETS / "findings.css").read_text("utf-8")
        assert f".{name}" in (ASSETS / "charts.js").read_text("utf-8")
