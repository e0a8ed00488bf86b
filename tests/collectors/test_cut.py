"""Cutting to a run: nothing of a window is lost, nothing outside is kept."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from collectors import cut

TIMES = st.floats(0, 2e9)


@given(st.lists(TIMES), TIMES, TIMES)
def test_lines_of_a_window(times: list[float], began: float, ended: float) -> None:
    records = [json.dumps({"t": at, "n": n}) + "\n" for n, at in enumerate(times)]
    kept = [json.loads(line)["t"] for line in cut.lines(records, began, ended)]
    assert kept == [at for at in times if began <= at <= ended]


@given(st.lists(st.text(max_size=30)))
def test_lines_that_are_none_are_left_out(texts: list[str]) -> None:
    good = '{"t":5}\n'
    assert list(cut.lines([good, *texts, good], 5, 5)) == [good, good]


def test_a_line_that_is_cut_off_is_left_out() -> None:
    assert list(cut.lines(['{"t":1}\n', '{"t":2'], 0, 9)) == ['{"t":1}\n']
    assert list(cut.lines(['{"t":1}'], 0, 9)) == []


@given(st.lists(st.tuples(TIMES, st.booleans(), st.integers(0, 3))), TIMES, TIMES)
def test_scrapes_go_whole(
    scrapes: list[tuple[float, bool, int]], began: float, ended: float
) -> None:
    blocks = [
        (round(at, 3), [f"# scrape_failed {at:.3f} e URLError: x\n"])
        if failed
        else (round(at, 3), [f"# scraped_at {at:.3f} e 0.007\n", *["m 1.0\n"] * size])
        for at, failed, size in scrapes
    ]
    text = [line for _, lines in blocks for line in lines]
    wanted = [line for at, lines in blocks if began <= at <= ended for line in lines]
    assert list(cut.metrics(text, began, ended)) == wanted


def test_a_heading_that_is_cut_off_ends_what_came_before() -> None:
    text = ["# scraped_at 5.000 e 0.1\n", "m 1.0\n", "# scraped_at", "m 2.0\n"]
    assert list(cut.metrics(text, 0, 9)) == text[:2]


def test_requests_by_what_their_ids_begin_with() -> None:
    ids = ["cmpl-a.c8-r1.0-0-0", "chatcmpl-a.c8-r1.1-0", "a.c8-r1.0-5", "cmpl-a.c8-r11.0-0", "x"]
    records = [json.dumps({"id": name}) + "\n" for name in ids] + [
        '{"id":"a.c8-r1.0-',
        '{"id":1}\n',
    ]
    kept = [json.loads(line)["id"] for line in cut.requests(records, ["a.c8-r1.0-", "a.c8-r1.1-"])]
    assert kept == ids[:3]


@given(st.lists(st.binary(max_size=9).filter(lambda line: b"\n" not in line)), st.data())
def test_a_log_keeps_its_start_and_the_run(lines: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(line + b"\n" for line in lines)
    places = sorted(data.draw(st.tuples(*[st.integers(0, len(whole))] * 3)))
    kept = cut.log(whole, *places)
    bare = [line for line in kept.split(b"\n") if b" bytes of other runs ...]" not in line]
    assert bare[-1] == b""  # whole lines only
    assert len(kept.split(b"\n")) - len(bare) <= 1
    # In their order, and none that was not there.
    rest = iter(lines)
    assert all(line in rest for line in bare[:-1])


def test_a_log_of_three_runs() -> None:
    start, one, two, three = b"up\n", b"1a\n1b\n", b"2a\n2b\n", b"3a\n"
    whole = start + one + two + three
    began, ended = len(start + one), len(start + one + two)
    assert cut.log(whole, 3, 3, 9) == start + one
    assert cut.log(whole, 3, began, ended) == (start + b"[... 6 bytes of other runs ...]\n" + two)
