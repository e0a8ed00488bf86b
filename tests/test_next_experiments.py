"""Every command line that a finding suggests can be given to `collect`."""

from __future__ import annotations

import shlex
from itertools import pairwise

import pytest

from collectors import cli
from tests.whole import shipped


@pytest.fixture(scope="module")
def suggested() -> list[str]:
    """Each suggested line once, from the most to the least wordy."""
    found = {
        line.strip()
        for study in shipped().studies
        for finding in (*study.findings, *study.answers)
        if finding.next_experiment
        for line in finding.next_experiment.partition("  #")[0].split(" && ")
    }
    return sorted(found, key=len, reverse=True)


def test_every_suggested_line_passes_a_dry_run(
    suggested: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(suggested) > 20
    for line in suggested:
        words = shlex.split(line)
        assert words[0] == "collect"
        assert cli.main([*words[1:], "--dry-run"]) == 0, line
        told = capsys.readouterr()
        assert "bench serve" in told.out
        for arm in (name for flag, name in pairwise(words) if flag == "--arm"):
            assert f"/{arm}/" in told.out, line


def test_arms_of_several_studies_of_the_collector_make_a_line_for_each(
    suggested: list[str],
) -> None:
    studies = {words[words.index("--study") + 1] for words in map(shlex.split, suggested)}
    assert len(studies) >= 2
