"""Where the collector keeps what it can make again: help texts and models that it wrote itself."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec

from collectors import made_model
from collectors.errors import BadInput, Problem
from collectors.study import Study


def folder() -> Path:
    """The cache folder of this user."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "serving-assay"


def made_models(study: Study) -> dict[str, Path]:
    """Where the models lie, or will lie, that a study describes instead of naming; by name."""
    # A source that writes another model must not find the old one.
    code = Path(made_model.__file__).read_bytes()
    digests = {
        name: hashlib.sha256(msgspec.json.encode(model) + code).hexdigest()[:12]
        for name, model in study.made_model.items()
    }
    return {name: folder() / "models" / f"{name}-{digest}" for name, digest in digests.items()}


def write_models(study: Study) -> None:
    """Write those of them that are missing.

    Raises:
        BadInput: the cache folder cannot be written.
    """
    for name, path in made_models(study).items():
        try:
            if not (path / "config.json").is_file():
                made_model.write(study.made_model[name], path)
        except OSError as error:
            raise BadInput(
                Problem(
                    f"made_model {name!r}",
                    f"cannot be written to {path}: {error.strerror}",
                    todo="make room there, or name another cache folder: XDG_CACHE_HOME",
                )
            ) from None
