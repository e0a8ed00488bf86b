"""analysis.mistakes: what is wrong with a table, in the words of the file."""

from __future__ import annotations

import tomllib
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import mistakes
from analysis.claims import kinds, read_claim
from analysis.mistakes import mistake, nearest
from analysis.study import BadInput, StudySpec

BASE = {"id": "c", "says": "a sentence", "source": "a text"}
SAMPLES: dict[Any, object] = {str: "x", int: 1, float: 1.0, bool: True}


def sample(kind: Any) -> object:
    """A value of a type."""
    if get_origin(kind) is Literal:
        return get_args(kind)[0]
    if get_origin(kind) is tuple:
        return [sample(get_args(kind)[0])]
    if get_origin(kind) in (Union, UnionType):
        return sample(get_args(kind)[0])
    return SAMPLES.get(kind, {})


def whole(name: str) -> dict[str, object]:
    """A claim of a kind with every key it needs."""
    fields = msgspec.structs.fields(kinds()[name].claim)
    table = {field.encode_name: sample(field.type) for field in fields if field.required}
    return {**table, **BASE, "kind": name}


def said(table: dict[str, object]) -> str:
    """The line that refuses a claim."""
    with pytest.raises(BadInput) as error:
        read_claim(table)
    assert "\n" not in str(error.value)
    return str(error.value)


def words_of(kind: Any) -> tuple[str, ...]:
    return tuple(word for word in get_args(kind) if word)


LITERALS = [
    (name, field.encode_name, words_of(field.type))
    for name in kinds()
    for field in msgspec.structs.fields(kinds()[name].claim)
    if get_origin(field.type) is Literal
]
REQUIRED = [
    (name, field.encode_name)
    for name in kinds()
    for field in msgspec.structs.fields(kinds()[name].claim)
    if field.required and field.encode_name != "kind"
]


def test_there_are_words_to_choose_from() -> None:
    assert len(LITERALS) > 10
    assert ("magnitude", "base", ("of", "against")) in LITERALS


@pytest.mark.parametrize("name", list(kinds()))
def test_a_whole_claim_of_every_kind_is_read(name: str) -> None:
    read_claim(whole(name))


@pytest.mark.parametrize(("name", "key", "words"), LITERALS)
def test_every_choice_of_every_kind_lists_its_words(
    name: str, key: str, words: tuple[str, ...]
) -> None:
    assert said({**whole(name), key: "qqqq"}) == f"{key} is 'qqqq'; one of {', '.join(words)}"
    near = said({**whole(name), key: words[-1] + "s"})
    assert near.endswith(f"; did you mean {words[-1]!r}?")
    assert said({**whole(name), key: 3}) == f"{key} is 3; one of {', '.join(words)}"


def test_the_words_for_a_percentage() -> None:
    assert said({**whole("magnitude"), "measure": "percentage"}) == (
        "measure is 'percentage'; one of value, ratio, difference, percent, share; "
        "did you mean 'percent'?"
    )


def test_the_choice_of_a_table_inside() -> None:
    assert said({**whole("rule"), "when": {"slots_of": "chose"}}) == (
        "when.slots_of is 'chose'; one of choose, over; did you mean 'choose'?"
    )


def test_a_word_in_other_letters_is_near() -> None:
    table = {**whole("capacity"), "binds": "KV CACHE"}
    assert said(table).endswith("max_num_seqs, KV cache; did you mean 'KV cache'?")


@pytest.mark.parametrize(("name", "key"), REQUIRED)
def test_every_missing_key_of_every_kind_is_named_with_what_is_needed(name: str, key: str) -> None:
    table = whole(name)
    del table[key]
    line = said(table)
    article = "an" if name[0] in "aeiou" else "a"
    assert line.startswith(f"has no `{key}`; {article} {name} needs ")
    assert key in line.partition(" needs ")[2].split(", ")


def test_own_keys_are_listed_unless_one_that_all_claims_need_is_missing() -> None:
    table = whole("gap_attribution")
    del table["metric"]
    assert said(table) == (
        "has no `metric`; a gap_attribution needs metric, baseline, treatment, workload, "
        "concurrency, cause"
    )
    del table["cause"], table["says"]
    assert said(table) == (
        "has no `says`, `metric` and `cause`; a gap_attribution needs id, kind, says, source, "
        "metric, baseline, treatment, workload, concurrency, cause"
    )


def test_a_repeat_that_lacks_something() -> None:
    assert said({"repeats": "x", "id": "y", "says": "z"}) == (
        "has no `source`; a repeat needs id, repeats, says, source"
    )


@pytest.mark.parametrize(
    ("name", "keys", "line"),
    [
        ("magnitude", {"stated": 43.1}, "stated is 43.1; text is expected, in quotes"),
        ("magnitude", {"stated": True}, "stated is true; text is expected"),
        ("magnitude", {"of": "mean_itl"}, "of is 'mean_itl'; a table is expected"),
        ("magnitude", {"of": {"concurrency": "10"}},
         "of.concurrency is '10'; a whole number is expected, without quotes"),
        ("magnitude", {"of": {"minus": {"over": {"metric": []}}}},
         "of.minus.over.metric is a list of 0; text is expected"),
        ("magnitude", {"of": {"times": {}}}, "of.times is a table; a number is expected"),
        ("magnitude", {"metric": "stay"},
         "unknown key 'metric'; it is a key of `of` or `against`"),
        ("magnitude", {"of": {"plus": {"metrc": "x"}}},
         "unknown key 'metrc' in of.plus; did you mean 'metric'?"),
        ("composite", {"parts": "x"}, "parts is 'x'; a list is expected: ['x']"),
        ("composite", {"parts": {}}, "parts is a table; a list is expected"),
        ("composite", {"parts": ["x", 3]}, "item 2 of parts is 3; text is expected, in quotes"),
        ("crossover", {"crosses": "true"},
         "crosses is 'true'; true or false is expected, without quotes"),
        ("crossover", {"within": [1]}, "within is a list of 1; a list of 2 is expected"),
        ("crossover", {"within": 10}, "within is 10; a list of 2 is expected"),
        ("crossover", {"within": [1, "2"]},
         "item 2 of within is '2'; a whole number is expected, without quotes"),
        ("equivalence", {"margin": False}, "margin is false; a number, or text is expected"),
        ("rule", {"choose": 3}, "choose is 3; a table is expected"),
        ("rule", {"choose": {"a b\n": []}},
         "choose.'a b\\n' is a list of 0; text, a whole number, or true or false is expected"),
        ("configuration", {"where": {"rate": {}}},
         "where.rate is a table; text, a number, or true or false is expected"),
        ("capacity", {"concurrency": 0.5}, "concurrency is 0.5; a whole number is expected"),
        ("fit", {"gpu": "x" * 50, "type": 10**4500},
         "type is a number of more than 18 digits; text is expected, in quotes"),
        ("length", {"fits": "y" * 50},
         f"fits is '{'y' * 39}…'; true or false is expected, without quotes"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_said_with_what_is_expected(
    name: str, keys: dict[str, object], line: str
) -> None:
    assert said({**whole(name), **keys}) == line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("arm = 'x'", "arm is 'x'; [[arm]] tables are expected"),
        ("[arm]\nname = 'x'", "arm is a table; [[arm]] tables are expected"),
        ("gpu = 'x'", "unknown key 'gpu'; it is a key of `arm`"),
        ("[[arm]]\nname = ''\ngpus = 0", "gpus of [[arm]] number 1 is 0; a whole number of at "
         "least 1 is expected"),
        ("[[arm]]\nname = 'a'\n[[arm]]\nname = 3", "name of [[arm]] number 2 is 3; text is "
         "expected, in quotes"),
        ("[[arm]]\nname = 'a'\ngpus = '2'", "gpus of arm 'a' is '2'; a whole number of at least 1 "
         "is expected, without quotes"),
        ("arm = [1]", "[[arm]] number 1 is 1; a table is expected"),
        ("[[workload]]\nname = 'a'\nreference = {}", "reference of workload 'a' has no `arm`"),
        ("[[assign]]\nwhere = { day = 1979-05-27 }", "day of where of [[assign]] number 1 is a "
         "date or time; text, a number, or true or false is expected"),
    ],
)  # fmt: skip
def test_a_table_among_several_is_called_by_its_name_or_number(text: str, line: str) -> None:
    assert mistake(tomllib.loads(text), StudySpec) == line


class Odd(msgspec.Struct):
    """Types that no file of the project has."""

    raw: bytes = b""
    text: Literal["", "a"] = ""


def test_a_type_without_a_plain_word_is_another_value() -> None:
    assert mistake({"raw": 3}, Odd) == "raw is 3; another value is expected"


def test_a_table_without_a_mistake_has_none() -> None:
    assert mistake({"text": "a"}, Odd) == ""
    assert mistake(whole("magnitude"), kinds()["magnitude"].claim) == ""


TOML = st.recursive(
    st.text(max_size=5) | st.integers() | st.floats() | st.booleans() | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)  # fmt: skip


@settings(deadline=None)
@given(st.sampled_from(list(kinds())), st.data())
def test_any_table_is_read_or_refused_in_one_line(name: str, data: st.DataObject) -> None:
    keys = [field.encode_name for field in msgspec.structs.fields(kinds()[name].claim)]
    change = data.draw(st.dictionaries(st.sampled_from(keys), TOML, min_size=1, max_size=3))
    table = {**whole(name), **change, "kind": name}
    try:
        read_claim(table)
    except BadInput as error:
        assert "\n" not in str(error)
        assert "`$" not in str(error)
        assert "Expected" not in str(error)


# the nearest right word


def test_a_word_that_is_nearly_right() -> None:
    assert nearest("modle", ["model", "gpu"]) == "did you mean 'model'?"


def test_a_word_like_no_other_lists_what_there_is() -> None:
    assert nearest("zzz", ["model", "gpu", "gpu"]) == "known: gpu, model"


def test_a_word_where_there_is_nothing() -> None:
    assert nearest("zzz", []) == "there are none"


def test_names_are_shown_escaped_and_cut():
    assert nearest("zzz", ["a\x1b[2J\n", "b" * 99]) == f"known: a\\x1b[2J\\n, {'b' * 39}…"
    assert nearest("model" * 30, ["model" * 30]) == f"known: {('model' * 30)[:39]}…"


def test_a_word_is_compared_with_so_many_names_only(monkeypatch):
    names = [f"claim-{n:06}" for n in range(100_000)]
    monkeypatch.setattr(mistakes, "_close", None)
    assert nearest("claim-x", names) == "it is none of the 100,000 there are"


def test_a_long_list_of_words_is_cut() -> None:
    words = [f"key-{letter * 9}" for letter in "abcdefghijklmno"]
    line = nearest("0", words)
    assert line.startswith("known: key-aaaaaaaaa, ")
    assert line.endswith(" and 3 more")
