"""Every link and every file that a page names exists, with its anchor."""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from tests.browser.site import Site

BASE = "http://site.invalid/"


def broken(site: Site, page: str, link: str) -> str | None:
    """What is wrong with a link of a page; None where it resolves or leaves the site."""
    parts = urlsplit(urljoin(BASE + page, link))
    if f"{parts.scheme}://{parts.netloc}/" != BASE:
        return None if parts.scheme in ("https", "http", "mailto") else "strange scheme"
    target = unquote(parts.path.removeprefix("/"))
    file = site.file(target)
    if not file.is_file():
        return "no such file"
    anchor = unquote(parts.fragment)
    if anchor and file.suffix == ".html" and anchor not in site.parsed[target].anchors:
        return "no such anchor"
    return None


def test_every_link_resolves(site: Site) -> None:
    found = [
        f"{page}: {link}: {wrong}"
        for page, parsed in site.parsed.items()
        for link in dict.fromkeys(parsed.links + parsed.loads)
        if (wrong := broken(site, page, link))
    ]
    assert found == []


def test_pages_load_files_of_the_site_only(site: Site) -> None:
    found = [
        f"{page}: {link}"
        for page, parsed in site.parsed.items()
        for link in parsed.loads
        if not urljoin(BASE + page, link).startswith(BASE)
    ]
    assert found == []


def test_every_claim_and_arm_has_a_page_that_is_linked(site: Site) -> None:
    linked = {
        PurePosixPath(urlsplit(urljoin(BASE + page, link)).path.strip("/"))
        for page, parsed in site.parsed.items()
        for link in parsed.links
    }
    unlinked = [
        page
        for page in site.pages
        if page not in ("", "404.html") and PurePosixPath(page) not in linked
    ]
    assert unlinked == []


def test_no_page_is_heavy(site: Site) -> None:
    sizes = {page: site.file(page).stat().st_size for page in site.pages}
    assert {page: size for page, size in sizes.items() if size > 500_000} == {}


@pytest.mark.parametrize(
    ("link", "wrong"),
    [
        ("method/", None),
        ("method/#evidence-levels", None),
        ("https://example.invalid/x", None),
        ("method/#no-such-heading", "no such anchor"),
        ("no-such-page/", "no such file"),
        ("../no-such-page/", "no such file"),
        ("javascript:alert(1)", "strange scheme"),
    ],
)
def test_a_broken_link_is_seen(site: Site, link: str, wrong: str | None) -> None:
    assert broken(site, "", link) == wrong
