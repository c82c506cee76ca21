"""What the Reader's pages print, judged from plain rows: templates only print it.

Every text in here may have come from a Site or from anybody's script: it is text, and never markup or an address that
was not looked at.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from bookmark_appliance.bookmark_put import BookmarkPut
from bookmark_appliance.chapter import chapter_label, parse_chapter
from bookmark_appliance.series_key import SeriesKey
from bookmark_appliance.store.bookmarks import Bookmark
from bookmark_appliance.store.library import TABS, Counts, Kind, Place, Tab
from bookmark_appliance.web.wire import cover_address

FIRST_CARDS = 60
MORE_CARDS = 120
"""Cards that a further request brings: 2,000 are there after 17 of them."""
RECENT_CARDS = 12
"""UI.md 3."""

_LIBRARY_LABELS: Mapping[Kind, str] = {"manga": "Manga", "novel": "Novels"}
_TAB_LABELS: Mapping[Tab, str] = {
    "all": "All",
    "updated": "Updated",
    "favourites": "Favourites",
    "archived": "Archived",
}
_EMPTY: Mapping[Tab, tuple[str, str]] = {
    "all": ("Nothing to read here yet.", "Bookmark a series from its own page, and it appears here."),
    "updated": ("All caught up.", "A series with a new chapter appears here by itself."),
    "favourites": ("No favourites yet.", "Mark a series as a favourite, and it is kept here too."),
    "archived": ("Nothing is archived.", "What you archive rests here and can be restored at any time."),
}
_COVER_QUERY = "?w=240"


class InvalidEdit(ValueError):
    """What a form asked for can't be; the text may be shown."""


@dataclass(frozen=True, slots=True)
class Link:
    """One item of the library switch or of the tabs."""

    name: str
    label: str
    query: str
    current: bool
    count: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """A Bookmark as it is printed. `read_on` and `cover` are empty where there is none."""

    key: str
    path: str
    """The key, fit for the path of an address."""
    title: str
    monogram: str
    cover: str
    read_on: str
    site: str
    host: str
    progress: str
    """Chapter digits, empty before the first chapter."""
    latest: str
    """Chapter digits, empty where no Latest Chapter is known."""
    is_new: bool
    favorite: bool
    archived: bool
    finished: bool

    @property
    def name(self) -> str:
        """What a card is called: a Series may have no title."""
        return self.title or self.key


@dataclass(frozen=True, slots=True)
class Shelf:
    """Which list is shown: one Library, one tab of it."""

    library: Kind
    tab: Tab

    @property
    def query(self) -> str:
        """The part of an address that says so."""
        return urlencode({"library": self.library, "tab": self.tab})


@dataclass(frozen=True, slots=True)
class Chrome:
    """What stands around the cards, and is sent again after each change: the strip and the counts."""

    libraries: list[Link]
    tabs: list[Link]
    recent: list[Card]


@dataclass(frozen=True, slots=True)
class CardList:
    """A page of cards; `more` is the query of the next one, empty at the end."""

    cards: list[Card]
    more: str
    empty: tuple[str, str] | None
    """What an empty list says for itself, as a heading and a sentence."""


def shelf_asked_for(library: str, tab: str, counts: Mapping[Kind, Counts] | None = None) -> Shelf:
    """UI-003, UI-016: what the address names. Without a Library it is manga, unless `counts` has novels alone."""
    kind: Kind = "novel" if library == "novel" else "manga"
    if not library and counts and counts["novel"].anything and not counts["manga"].anything:
        kind = "novel"
    return Shelf(kind, next((known for known in TABS if known == tab), "all"))


def card(bookmark: Bookmark, hosts: Mapping[str, str], public_base_url: str) -> Card:
    """`hosts` gives the host of each Site by its name."""
    key = f"{bookmark.site}:{bookmark.series_id}"
    cover = cover_address(bookmark.cover_address, public_base_url)
    latest = bookmark.latest_chapter_num
    return Card(
        key=key,
        path=quote(key, safe=""),
        title=bookmark.title,
        monogram=monogram(bookmark.title),
        cover=cover and cover + _COVER_QUERY,
        read_on=continue_address(bookmark, hosts),
        site=bookmark.site,
        host=hosts.get(bookmark.site, bookmark.site),
        progress=_digits(bookmark.last_chapter_num) if bookmark.last_chapter_num else "",
        latest="" if latest is None else _digits(latest),
        is_new=has_new_chapter(bookmark),
        favorite=bookmark.favorite,
        archived=bookmark.status == "archived",
        finished=bookmark.finished_at != 0,
    )


def has_new_chapter(bookmark: Bookmark) -> bool:
    """SER-020: an unknown Latest Chapter is not a new one, nor is it "nothing new"."""
    return bookmark.latest_chapter_num is not None and bookmark.latest_chapter_num > bookmark.last_chapter_num


def continue_address(bookmark: Bookmark, hosts: Mapping[str, str]) -> str:
    """Where to read on (UI-017): the chapter, else the Series, and only by https on that Site's own host; else empty.

    What stands right behind the host must begin a path, a query or a fragment: there is no port, no `@` and no other
    name that a browser could see in it.
    """
    host = hosts.get(bookmark.site)
    if host is None:
        return ""
    origin = f"https://{host}"
    for address in (bookmark.last_chapter_url, bookmark.series_url):
        if address.startswith(origin) and address[len(origin) :][:1] in ("", "/", "?", "#"):
            return address
    return ""


def monogram(title: str) -> str:
    """UI-005: the first letter or digit of a title, `?` when it has none."""
    return next((letter.upper()[:1] for letter in title if letter.isalnum()), "?")


def page_title(shelf: Shelf) -> str:
    """Of the page, in a browser's tab."""
    return f"{_LIBRARY_LABELS[shelf.library]} — BookmarkManager"


def chrome(
    shelf: Shelf,
    counts: Mapping[Kind, Counts],
    recent: Sequence[Bookmark],
    hosts: Mapping[str, str],
    public_base_url: str,
) -> Chrome:
    """UI-002, UI-003, UI-004."""
    numbers = counts[shelf.library]
    return Chrome(
        libraries=[
            Link(kind, label, urlencode({"library": kind}), kind == shelf.library)
            for kind, label in _LIBRARY_LABELS.items()
        ],
        tabs=[
            Link(tab, label, Shelf(shelf.library, tab).query, tab == shelf.tab, f"{getattr(numbers, tab):,}")
            for tab, label in _TAB_LABELS.items()
        ],
        recent=[card(bookmark, hosts, public_base_url) for bookmark in recent],
    )


def card_list(
    shelf: Shelf, bookmarks: Sequence[Bookmark], limit: int, hosts: Mapping[str, str], public_base_url: str
) -> CardList:
    """The first `limit` cards of `bookmarks`; when there are more of those, the list goes on behind the last card."""
    cards = [card(bookmark, hosts, public_base_url) for bookmark in bookmarks[:limit]]
    more = ""
    if len(bookmarks) > limit:
        place = {"after": cards[-1].key, "at": bookmarks[limit - 1].updated_at}
        more = f"{shelf.query}&{urlencode(place)}"
    return CardList(cards, more, None if cards else _EMPTY[shelf.tab])


def place_asked_for(after: str, at: str) -> Place | None:
    """Where the next cards begin; None for the start of the list."""
    if not after or "\0" in after:
        return None
    return Place(after, int(at) if at.isascii() and at.isdigit() and len(at) < 19 else None)


def chapter_edit(key: SeriesKey, text: str) -> BookmarkPut:
    """The Progress that a form's field asks for; a decimal comma is as good as a point. Raises InvalidEdit."""
    chapter = parse_chapter(text.strip().replace(",", "."))
    if chapter is None:
        raise InvalidEdit("a chapter is a number from 0 to 100000, such as 12 or 12.5")
    return BookmarkPut(key=key, last_chapter_num=chapter.number, last_chapter=chapter.label)


def favorite_edit(key: SeriesKey, value: str) -> BookmarkPut:
    """Raises InvalidEdit."""
    if value not in ("true", "false"):
        raise InvalidEdit("favorite must be true or false")
    return BookmarkPut(key=key, favorite=value == "true")


def status_edit(key: SeriesKey, value: str) -> BookmarkPut:
    """UI-012: one of the two buckets. Raises InvalidEdit."""
    if value not in ("reading", "archived"):
        raise InvalidEdit("status must be reading or archived")
    return BookmarkPut(key=key, status=value)


def words_for(edit: BookmarkPut, stored: Bookmark) -> str:
    """What is said aloud once an edit is stored."""
    if edit.status is not None:
        done = "Archived" if stored.status == "archived" else "Restored"
    elif edit.favorite is not None:
        done = "Marked as a favourite" if stored.favorite else "No longer a favourite"
    else:
        done = f"Chapter {_digits(stored.last_chapter_num)} saved"
    return f"{done}: {stored.title}"


def _digits(number: float) -> str:
    return chapter_label(number).removeprefix("Chapter ")
