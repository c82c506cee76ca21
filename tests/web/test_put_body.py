"""What a PUT may say: the rules that need no database."""

import json
from typing import Any

import pytest

from bookmark_appliance.bookmark_put import BookmarkPut
from bookmark_appliance.series_key import SeriesKey
from bookmark_appliance.web.put_body import MAX_CHARACTERS, InvalidPut, parse_path_key, parse_put

SITES = frozenset(("asura", "demonic"))


def put(key: str = "asura:one", /, **fields: Any) -> BookmarkPut:
    return parse_put(key, json.dumps(fields).encode(), SITES)


def refusal(key: str, body: bytes) -> str:
    with pytest.raises(InvalidPut) as caught:
        parse_put(key, body, SITES)
    return str(caught.value)


def test_the_key_is_cut_at_the_first_colon() -> None:
    """API-011, API-050: what follows may hold colons and slashes."""
    assert put("asura:solo-leveling-123").key == SeriesKey("asura", "solo-leveling-123")
    assert put("asura:a:b/c").key == SeriesKey("asura", "a:b/c")


@pytest.mark.parametrize("key", ["", "asura", "asura:", ":one", "asura:" + "x" * 513, "asura:a\0b"])
def test_a_key_that_is_none_is_refused(key: str) -> None:
    """API-013: whatever the body says."""
    assert "key" in refusal(key, b"{}")


def test_the_longest_key_is_taken() -> None:
    """API-013: 512 characters of any script."""
    assert put("asura:" + "é" * 512).key.series_id == "é" * 512
    assert parse_path_key("asura:" + "é" * 513) is None


@pytest.mark.parametrize(("name", "most"), MAX_CHARACTERS.items())
def test_a_text_has_a_longest_length(name: str, most: int) -> None:
    """API-014: 64 kB in each title of one Reader's list took the service's memory."""
    assert refusal("asura:one", json.dumps({name: "é" * (most + 1)}).encode()).startswith(f"{name}: ")
    taken = put(**{name: "é" * most, "last_chapter_num": 1, "latest_chapter_num": 1})
    assert getattr(taken, name) == "é" * most


def test_an_unknown_site_is_refused() -> None:
    """API-013: names are compared as they are."""
    assert refusal("ASURA:one", b"{}") == "unknown site"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"{} x",
        b"{}{}",
        b"[]",
        b"5",
        b"null",
        b'"text"',
        b"\xef\xbb\xbf{}",
        b'{"title":"\xff"}',
        b'{"of_no_interest":"\xff"}',
        b'{"title":"\\ud800"}',
        b'{"title":"\\udc00"}',
        b'{"last_chapter_num":NaN}',
        b'{"x":' + b"[" * 30_000 + b"]" * 30_000 + b"}",
    ],
)
def test_a_body_that_is_no_json_object_is_refused(body: bytes) -> None:
    """API-014, API-046: text after the value, and brackets nested by the thousand, included."""
    assert "JSON" in refusal("asura:one", body)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("site", [5, [], True]),
        ("series_id", [5]),
        ("title", [5, ["a"], {}, True, "a\0b"]),
        ("series_url", [5, "\0"]),
        ("last_chapter", [12, "\0"]),
        ("last_chapter_num", ["12", True, [], -1, -0.5, 100_000.5, 10**400]),
        ("last_chapter_url", [False, "\0"]),
        ("favorite", ["true", 1, 0]),
        ("latest_chapter", [12, "\0"]),
        ("latest_chapter_num", ["12", True, -1, 100_001]),
        ("status", [5]),
        ("kind", [5]),
    ],
)
def test_a_field_at_fault_is_named(field: str, values: list[Any]) -> None:
    """API-014, API-046: a wrong type, a number out of bounds, a NUL that no text of Postgres may hold."""
    for value in values:
        assert refusal("asura:one", json.dumps({field: value}).encode()).startswith(f"{field}: "), value


def test_a_number_too_large_for_a_float_is_named() -> None:
    """API-046: 1e999 is JSON and no number of ours."""
    assert refusal("asura:one", b'{"latest_chapter_num":1e999}').startswith("latest_chapter_num: ")


def test_the_bounds_are_numbers_themselves() -> None:
    """API-046: 0 and 100000; minus zero is zero."""
    assert put(last_chapter_num=100_000).last_chapter_num == 100_000
    assert str(put(last_chapter_num=-0.0).last_chapter_num) == "0.0"


@pytest.mark.parametrize("status", ["finished", "Reading", "x", " "])
def test_an_unknown_status_is_refused(status: str) -> None:
    """API-019: `finished` is no bucket."""
    assert refusal("asura:one", json.dumps({"status": status}).encode()) == "invalid status"


@pytest.mark.parametrize("kind", ["book", "Manga", " "])
def test_an_unknown_kind_is_refused(kind: str) -> None:
    """API-022: manga or novel."""
    assert refusal("asura:one", json.dumps({"kind": kind}).encode()) == "invalid kind"


def test_null_blank_and_missing_are_one() -> None:
    """API-018, API-020, API-044: nothing is said by them."""
    texts = ["site", "series_id", "title", "series_url", "last_chapter", "last_chapter_url"]
    texts += ["latest_chapter", "status", "kind"]
    names = [*texts, "last_chapter_num", "latest_chapter_num", "favorite"]
    assert put(**dict.fromkeys(names)) == put()
    assert put(**dict.fromkeys(texts, "")) == put()


def test_the_body_may_repeat_the_key_and_not_contradict_it() -> None:
    """API-043: blanks are filled from the path."""
    assert put(site="asura", series_id="one") == put()
    assert "site" in refusal("asura:one", b'{"site":"demonic"}')
    assert "series_id" in refusal("asura:one", b'{"series_id":"two"}')


def test_fields_that_are_not_a_clients_to_say_are_ignored() -> None:
    """API-015, API-024, API-028, API-046: whatever they hold."""
    ignored = {"cover": 5, "finished": "yes", "updated_at": [], "latest_checked_at": 1, "unknown": {"a": [None]}}
    assert put(**ignored) == put()


def test_a_number_without_a_label_gets_one() -> None:
    """API-044: and a label without its number says nothing."""
    named = put(last_chapter_num=12, latest_chapter_num=12.5)
    assert (named.last_chapter, named.latest_chapter) == ("Chapter 12", "Chapter 12.5")
    assert put(last_chapter_num=1, last_chapter="Prologue").last_chapter == "Prologue"
    alone = put(last_chapter="Prologue", last_chapter_url="https://asurascans.com/x", latest_chapter="Epilogue")
    assert alone == put()
