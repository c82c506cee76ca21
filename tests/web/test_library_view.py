"""What the Reader's pages make of plain rows."""

from dataclasses import replace
from urllib.parse import parse_qs

import pytest

from bookmark_appliance.series_key import SeriesKey
from bookmark_appliance.store.bookmarks import Bookmark
from bookmark_appliance.store.library import TABS, Counts, Place, Tab
from bookmark_appliance.web import library_view as view

HOSTS = {"asura": "asurascans.com", "comix": "comix.to"}
KEY = SeriesKey("asura", "one")
ROW = Bookmark(
    site="asura",
    series_id="one",
    title="The One",
    series_url="https://asurascans.com/comics/one",
    cover_address="ab" * 32,
    kind="manga",
    latest_chapter="Chapter 12.5",
    latest_chapter_num=12.5,
    finished_at=0,
    last_chapter="Chapter 12",
    last_chapter_num=12,
    last_chapter_url="https://asurascans.com/comics/one/chapter/12",
    favorite=False,
    status="reading",
    updated_at=1_700_000_000_000,
)
READING = view.Shelf("manga", "all")


def card(row: Bookmark = ROW, **changes: object) -> view.Card:
    """The card of a changed row."""
    return view.card(replace(row, **changes), HOSTS, "https://books.example")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("latest", "read", "new"), [(12.5, 12.0, True), (12.0, 12.0, False), (11.0, 12.0, False), (None, 0.0, False)]
)
def test_a_new_chapter_is_a_known_number_ahead_of_progress(latest: float | None, read: float, new: bool) -> None:
    """SER-020: an unknown number says neither."""
    shown = card(latest_chapter_num=latest, last_chapter_num=read)
    assert shown.is_new is new
    assert (shown.latest == "") is (latest is None)


@pytest.mark.parametrize(
    ("chapter", "series", "address"),
    [
        ("https://asurascans.com/c/1", "https://asurascans.com/c", "https://asurascans.com/c/1"),
        ("", "https://asurascans.com/c", "https://asurascans.com/c"),
        ("https://asurascans.com", "", "https://asurascans.com"),
        ("https://asurascans.com?c=1", "", "https://asurascans.com?c=1"),
        ("javascript:alert(1)", "https://asurascans.com/c", "https://asurascans.com/c"),
        ("http://asurascans.com/c/1", "", ""),
        ("https://comix.to/title/1", "https://comix.to/title", ""),
        ("https://asurascans.com.evil.example/", "https://asurascans.com@evil.example/", ""),
        ("https://asurascans.com:evil@evil.example/", "https://asurascans.com\\@evil.example/", ""),
        ("https://asurascans.com\t.evil.example/", "https://asurascans.com\n.evil.example/", ""),
        (" https://asurascans.com/c/1", "//asurascans.com/c", ""),
        ("https://www.asurascans.com/", "https://asurascans.com:8443/", ""),
        ("data:text/html,x", "", ""),
        ("", "", ""),
    ],
)
def test_reading_goes_on_at_the_sites_own_host_alone(chapter: str, series: str, address: str) -> None:
    """UI-017: the chapter, else the Series; anything else is no link."""
    assert card(last_chapter_url=chapter, series_url=series).read_on == address


def test_a_site_that_nobody_knows_has_no_address() -> None:
    """UI-017: a row of a Site that was given up."""
    shown = card(site="gone", last_chapter_url="https://gone/", series_url="https://asurascans.com/")
    assert (shown.read_on, shown.host) == ("", "gone")


@pytest.mark.parametrize(
    ("title", "letter"),
    [
        *(("The One", "T"), ("ångström", "Å"), ('"><script>', "S"), ("  7 Letters", "7"), ("月下", "月")),
        *(("", "?"), ("…!", "?"), ("\u202eabc", "A"), ("🗡 Sword", "S"), ("ßs", "S")),
    ],
)
def test_a_card_without_a_cover_shows_a_letter(title: str, letter: str) -> None:
    """UI-005: the first one of the title; a question mark where there is none."""
    assert card(title=title, cover_address="").monogram == letter


def test_a_cover_is_the_small_rendition_of_the_wires_address() -> None:
    """UI-005, COV-026: ours, or none."""
    assert card().cover == f"https://books.example/covers/{'ab' * 32}?w=240"
    assert card(cover_address="").cover == ""


def test_chapters_are_shown_as_numbers() -> None:
    """SER-020: whatever the label says; nothing read yet is no chapter 0."""
    assert (card().progress, card().latest) == ("12", "12.5")
    assert card(last_chapter_num=0.0, last_chapter="<b>").progress == ""


def test_the_key_is_fit_for_a_path_and_the_name_is_never_empty() -> None:
    """UI-016: a slash in a key belongs to the key."""
    shown = card(series_id='a/b ?#"%2F', title="")
    assert shown.path == "asura%3Aa%2Fb%20%3F%23%22%252F"
    assert shown.name == shown.key == 'asura:a/b ?#"%2F'


def test_the_address_names_library_and_tab_or_gets_the_first() -> None:
    """UI-002, UI-003, UI-016: what is unknown is the usual; only who has novels alone begins with them."""
    some, none = Counts(all=1), Counts()
    ask = view.shelf_asked_for
    assert ask("", "") == ask("comics", "finished") == view.Shelf("manga", "all")
    assert ask("novel", "archived") == view.Shelf("novel", "archived")
    assert ask("", "updated", {"manga": none, "novel": some}) == view.Shelf("novel", "updated")
    assert ask("", "", {"manga": Counts(archived=1), "novel": some}).library == "manga"
    assert ask("manga", "", {"manga": none, "novel": some}).library == "manga"


def test_a_list_says_where_it_goes_on() -> None:
    """UI-016: behind the last card shown, where it stood then."""
    rows = [replace(ROW, series_id=f"s&{number}", updated_at=100 - number) for number in range(3)]
    whole = view.card_list(READING, rows, 3, HOSTS, "")
    assert (len(whole.cards), whole.more) == (3, "")
    begun = view.card_list(READING, rows, 2, HOSTS, "")
    assert len(begun.cards) == 2
    asked = {name: values[0] for name, values in parse_qs(begun.more, strict_parsing=True).items()}
    assert asked == {"library": "manga", "tab": "all", "after": "asura:s&1", "at": "99"}
    assert view.place_asked_for(asked["after"], asked["at"]) == Place("asura:s&1", 99)


@pytest.mark.parametrize("at", ["", "-1", "x", "٣", "1" * 19, "1.0"])
def test_a_time_that_is_none_is_left_out(at: str) -> None:
    """UI-016: the key alone says it then."""
    assert view.place_asked_for("asura:one", at) == Place("asura:one", None)
    assert view.place_asked_for("", at) is None
    assert view.place_asked_for("asura:\0", at) is None


@pytest.mark.parametrize("tab", TABS)
def test_an_empty_list_explains_itself(tab: Tab) -> None:
    """UI-002: each in its own words."""
    empty = view.card_list(view.Shelf("novel", tab), [], 60, HOSTS, "").empty
    assert empty
    assert view.card_list(READING, [ROW], 60, HOSTS, "").empty is None
    others = [view.card_list(view.Shelf("novel", other), [], 60, HOSTS, "").empty for other in TABS]
    assert others.count(empty) == 1


@pytest.mark.parametrize(
    ("text", "number", "label"),
    [(" 12 ", 12, "Chapter 12"), ("12,5", 12.5, "Chapter 12.5"), ("0", 0, "Chapter 0"), ("007", 7, "Chapter 007")],
)
def test_a_chapter_is_typed_as_people_type(text: str, number: float, label: str) -> None:
    """UI-012: a decimal comma too."""
    edit = view.chapter_edit(KEY, text)
    assert (edit.last_chapter_num, edit.last_chapter) == (number, label)
    assert (edit.last_chapter_url, edit.favorite, edit.status, edit.latest_chapter_num) == (None,) * 4


@pytest.mark.parametrize(
    "text", ["", "twelve", "-1", "1e3", "nan", "inf", "100001", "1.2.3", "12a", "١٢", "\0", "9" * 99]
)
def test_what_is_no_chapter_is_refused_in_few_words(text: str) -> None:
    """UI-011, UI-012: in words that a page can show as they are."""
    with pytest.raises(view.InvalidEdit) as refused:
        view.chapter_edit(KEY, text)
    assert len(str(refused.value)) <= 120
    assert not str(refused.value).startswith("<")


def test_marks_and_buckets_have_two_values() -> None:
    """UI-012: nothing but the two of each."""
    assert view.favorite_edit(KEY, "true").favorite is True
    assert view.favorite_edit(KEY, "false").favorite is False
    assert view.status_edit(KEY, "archived").status == "archived"
    for value in ("", "finished", "READING", "1"):
        with pytest.raises(view.InvalidEdit):
            view.status_edit(KEY, value)
        with pytest.raises(view.InvalidEdit):
            view.favorite_edit(KEY, value)


def test_what_was_done_is_said() -> None:
    """UI-009, UI-012: with the title, for who does not see the card move."""
    said = view.words_for
    assert said(view.status_edit(KEY, "archived"), replace(ROW, status="archived")) == "Archived: The One"
    assert said(view.status_edit(KEY, "reading"), ROW) == "Restored: The One"
    assert said(view.favorite_edit(KEY, "true"), replace(ROW, favorite=True)) == "Marked as a favourite: The One"
    assert said(view.favorite_edit(KEY, "false"), ROW) == "No longer a favourite: The One"
    assert said(view.chapter_edit(KEY, "12"), ROW) == "Chapter 12 saved: The One"
