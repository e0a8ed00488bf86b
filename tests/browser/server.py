"""Serves a built site on a free port of this machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

EMPTY_INDEX = (
    b'{"config":{"lang":["en"],"separator":"[\\\\s\\\\-]+","pipeline":["stopWordFilter"],'
    b'"fields":{"title":{"boost":1000.0},"text":{"boost":1.0},"tags":{"boost":1000000.0}}},'
    b'"docs":[]}'
)
"""A search index without pages. The theme indexes the whole site anew on each page that it opens,
which is most of the work of a page; only tests of the search need it."""


class _Handler(SimpleHTTPRequestHandler):
    def __init__(self, *args: Any, search: bool, **more: Any) -> None:
        self._search = search
        super().__init__(*args, **more)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing: a missing file is seen by the browser."""

    def end_headers(self) -> None:
        # What a page loads stays the same while the tests run; pages are opened anew.
        cache = "max-age=600" if self.path.startswith("/assets/") else "no-store"
        self.send_header("Cache-Control", cache)
        super().end_headers()

    def do_GET(self) -> None:
        if not self._search and self.path == "/search/search_index.json":
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(EMPTY_INDEX)))
            self.end_headers()
            self.wfile.write(EMPTY_INDEX)
        else:
            super().do_GET()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing: a browser that leaves a page drops its connections."""


@contextmanager
def serve(root: Path, *, search: bool = True) -> Iterator[str]:
    """The address of the site, with a slash at its end; `search=False` empties the index."""
    handler = partial(_Handler, directory=str(root), search=search)
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
