"""A results folder -> Dataset: the only reading of study.toml and claims.toml."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from analysis.dataset import Dataset, Study
from analysis.grouping import build_study
from analysis.model import Record, Run, Skipped, escaped
from analysis.scan import OWN_FILES, scan
from analysis.study import BadInput, StudySpec, nearest, read_study, read_toml

HERE = "here"
"""Name of a study that has no name of its own: the folder as a whole."""


def load(root: Path, *, jobs: int = 1, only: Collection[str] = ()) -> Dataset:
    """Read everything below `root` and group it into studies.

    A child folder with a study.toml or claims.toml is a study, or one that is named as the study
    that its collected runs were made for. If there is none, the whole folder is one, so that runs
    in sibling folders are compared. Files beside such child folders form a study of their own.

    Raises:
        BadInput: `only` names a study that is not there.
    """
    records = scan(root, jobs=jobs)
    folders = _study_folders(root, records)
    groups: dict[str, list[Record]] = {folder: [] for folder in folders}
    skipped: list[Skipped] = []
    for record in records:
        if isinstance(record, Skipped):
            skipped.append(record)
            continue
        file = record.file if hasattr(record, "file") else record.source.file
        top = file.partition("/")[0] if "/" in file else ""
        groups.setdefault("" if "" in folders else top, []).append(record)
    studies = []
    for folder, members in groups.items():
        base = folders.get(folder, root / folder)
        studies.append(_study(root, base, folder, members, skipped))
        skipped.extend(studies[-1].skipped)
    studies = [study for study in studies if _holds_something(study)]
    studies.sort(key=lambda study: (study.spec.order, study.name))
    studies, doubles = _distinct(studies)
    skipped.extend(doubles)
    if only:
        names = [study.name for study in studies]
        for name in only:
            if name not in names:
                raise BadInput(
                    f"no study {name!r} below the results folder; {nearest(name, names)}"
                )
    skipped.sort(key=lambda item: (item.file, item.reason))
    return Dataset(tuple(studies), tuple(skipped))


def _study_folders(root: Path, records: Sequence[Record]) -> dict[str, Path]:
    """The study folders by name, as records name them; "" when the whole folder is one study."""
    if root.is_file() or _has_spec(root):
        return {"": root}
    collected = {
        run.config.get("study")
        for run in records
        if isinstance(run, Run) and run.source.file.startswith(f"{run.config.get('study')}/")
    }
    # A linked folder is read in its own place only (analysis.scan).
    found = {
        escaped(child.name): child
        for child in sorted(root.iterdir())
        if not child.name.startswith(".")
        and not child.is_symlink()
        and (_has_spec(child) or child.name in collected)
    }
    return found or {"": root}


def _holds_something(study: Study) -> bool:
    """Whether a study is worth a page, or holds what claims of other studies may rest on."""
    return bool(study.cells or study.claims or study.lengths or study.quoted or study.help_texts)


def _has_spec(folder: Path) -> bool:
    return any(_is_file(folder / name) for name in OWN_FILES)


def _is_file(path: Path) -> bool:
    """Whether it is a file, as far as can be seen: of a folder without rights the scan has said."""
    try:
        return path.is_file()
    except OSError:
        return False


def _inside(root: Path, path: Path) -> bool:
    """Whether a path, links followed, still lies in the results folder."""
    return path.resolve().is_relative_to(root.resolve())


def _study(
    root: Path, base: Path, folder: str, records: Sequence[Record], skipped: list[Skipped]
) -> Study:
    refused = {item.file for item in skipped}
    prefix = f"{folder}/" if folder else ""
    spec = StudySpec()
    claims: list[Mapping[str, object]] = []
    for name in OWN_FILES if not root.is_file() else ():
        path = base / name
        if not _is_file(path):
            # A link that leads nowhere or a pipe: the scan has said so.
            continue
        try:
            if not _inside(root, path):
                raise BadInput("points outside the results folder; copy the file in")
            if name == "study.toml":
                spec = read_study(path)
            else:
                claims = _claim_tables(path)
        except BadInput as error:
            if prefix + name not in refused:
                skipped.append(Skipped(prefix + name, str(error)))
    return build_study(
        spec.name or folder or _collected(records) or HERE,
        spec,
        records,
        folder=folder,
        claims=claims,
        claims_file=f"{prefix}claims.toml",
    )


def _collected(records: Sequence[Record]) -> str:
    """The study that a collector made all these runs for; empty where there is not one."""
    names = {str(record.config.get("study", "")) for record in records if isinstance(record, Run)}
    return names.pop() if len(names) == 1 else ""


def _claim_tables(path: Path) -> list[Mapping[str, object]]:
    table = read_toml(path)
    for key in table:
        if key != "claim":
            raise BadInput(f"unknown key {key!r}; {nearest(key, ['claim'])}")
    claims = table.get("claim", [])
    if not isinstance(claims, list) or not all(isinstance(claim, dict) for claim in claims):
        raise BadInput("`claim` must be tables: write [[claim]] above each")
    return claims


def _distinct(studies: Sequence[Study]) -> tuple[list[Study], list[Skipped]]:
    """The first study of each name; two of one name would overwrite each other's pages."""
    kept: dict[str, Study] = {}
    doubles = []
    for study in studies:
        first = kept.setdefault(study.name, study)
        if first is not study:
            reason = (
                f"the study is left out: it is named {study.name!r}, as that of "
                f"{first.folder or 'the files beside the folders'} is; change its `name`"
            )
            doubles.append(Skipped(f"{study.folder}/study.toml".lstrip("/"), reason))
    return list(kept.values()), doubles
