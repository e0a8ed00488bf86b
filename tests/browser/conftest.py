"""Fixtures of the browser tests; one site and one browser a process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.server import serve
from tests.browser.site import Site, build

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HERE = Path(__file__).parent

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
"""The browser of the system; playwright brings none that is used."""

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test of this folder is marked `browser`."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The real site. Each process builds its own, in 5 s: to share one, the others would wait."""
    return build(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The browser of the system, without a window."""
    # Imported here: the other tests run without playwright.
    from playwright.sync_api import sync_playwright

    assert Path(CHROMIUM).exists(), f"no {CHROMIUM}; install chromium, or set CHROMIUM to its path"
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield found
        found.close()


@pytest.fixture(scope="session")
def base(site: Site) -> Iterator[str]:
    """The site's address, with an empty search index."""
    with serve(site.root, search=False) as address:
        yield address


@pytest.fixture(scope="session")
def base_with_search(site: Site) -> Iterator[str]:
    """The site's address, as it is published."""
    with serve(site.root) as address:
        yield address
