"""Copies a run's folder to another place (an fsspec URL) and compares what arrived."""

from __future__ import annotations

import hashlib
from pathlib import Path

from collectors import mask
from collectors.errors import CollectError, Problem


def send(folder: Path, url: str, name: str) -> None:
    """Copy every file of a run to `<url>/<name>/`, read each back and compare.

    A run whose record is there already was copied before.

    Raises:
        CollectError: fsspec or its driver is missing, or a file did not arrive as it was.
    """
    what = f"upload of {name}"
    try:
        import fsspec

        system, root = fsspec.core.url_to_fs(url)
        target = f"{root.rstrip('/')}/{name}"
        record = (folder / "run.json").read_bytes()
        if system.exists(f"{target}/run.json") and system.cat_file(f"{target}/run.json") == record:
            return
        system.makedirs(target, exist_ok=True)
        # The record goes last: a folder that has it is whole there, too.
        paths = [path for path in sorted(folder.iterdir()) if path.is_file()]
        for path in sorted(paths, key=lambda path: path.name == "run.json"):
            content = path.read_bytes()
            with system.open(f"{target}/{path.name}", "wb") as file:
                file.write(content)
            with system.open(f"{target}/{path.name}", "rb") as file:
                back = hashlib.sha256(file.read()).hexdigest()
            if back != hashlib.sha256(content).hexdigest():
                raise CollectError(
                    Problem(what, f"{path.name} came back changed", todo="check the target")
                )
    except CollectError:
        raise
    except Exception as error:
        # A driver may raise anything; the run itself lies safely here.
        told = mask.text(str(error).splitlines()[0]) if str(error) else ""
        raise CollectError(
            Problem(what, f"{type(error).__name__} {told}".strip(), todo="the run is kept here")
        ) from error
