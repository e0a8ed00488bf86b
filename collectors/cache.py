"""Where the collector keeps what it can make again: help texts and models that it wrote itself."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec

from collectors import made_model
from collectors.study import Study


def folder() -> Path:
    """The cache folder of this user."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "serving-assay"


def made_models(study: Study) -> dict[str, str]:
    """Folders of the models that a study describes instead of naming; written where missing."""
    found = {}
    for name, model in study.made_model.items():
        # A source that writes another model must not find the old one.
        code = Path(made_model.__file__).read_bytes()
        digest = hashlib.sha256(msgspec.json.encode(model) + code).hexdigest()[:12]
        path = folder() / "models" / f"{name}-{digest}"
        if not (path / "config.json").is_file():
            made_model.write(model, path)
        found[name] = str(path)
    return found
