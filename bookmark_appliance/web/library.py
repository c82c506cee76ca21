"""The Reader's library: its page, its lists, and what a Reader changes there (UI-001 to UI-016)."""

from collections.abc import Callable, Mapping
from typing import Final

from quart import Quart, request
from quart.wrappers import Response

from bookmark_appliance.bookmark_put import BookmarkPut
from bookmark_appliance.postgres.trio_connection import TrioConnection
from bookmark_appliance.series_key import SeriesKey
from bookmark_appliance.store.bookmarks import Bookmark, edit_bookmark, remove_bookmark
from bookmark_appliance.store.library import Counts, Kind, count_bookmarks, read_page, read_recent
from bookmark_appliance.web import library_view as view
from bookmark_appliance.web.context import WebContext
from bookmark_appliance.web.errors import ApiError
from bookmark_appliance.web.json_api import path_key
from bookmark_appliance.web.page_safety import read_form
from bookmark_appliance.web.pages import Pages, see_other
from bookmark_appliance.web.put_body import parse_path_key
from bookmark_appliance.web.sessions import Gate, SignedIn

_PATH: Final = b"/ui/bookmarks/"

_EDITS: Final[Mapping[str, Callable[[SeriesKey, str], BookmarkPut]]] = {
    "chapter": view.chapter_edit,
    "favorite": view.favorite_edit,
    "status": view.status_edit,
}
"""By the last part of the path, which is also the name of the form's field."""


class LibraryPages:
    """The handlers. A change answers htmx with the card and what stands around it, a plain form with the way back."""

    def __init__(self, context: WebContext, pages: Pages, gate: Gate) -> None:
        self._context = context
        self._pages = pages
        self._gate = gate

    def register(self, app: Quart) -> None:
        """Give `app` the routes. It must know the converter `rest`."""
        for rule, method, handler in (
            ("/", "GET", self._gate.page(self.page)),
            ("/ui/list", "GET", self._gate.fragment(self.list)),
            ("/ui/bookmarks/<rest:key>/chapter", "POST", self._gate.fragment(self.edit)),
            ("/ui/bookmarks/<rest:key>/favorite", "POST", self._gate.fragment(self.edit)),
            ("/ui/bookmarks/<rest:key>/status", "POST", self._gate.fragment(self.edit)),
            ("/ui/bookmarks/<rest:key>/remove", "POST", self._gate.fragment(self.remove)),
            ("/ui/bookmarks/<rest:key>", "DELETE", self._gate.fragment(self.remove)),
        ):
            app.add_url_rule(rule, f"library {method} {rule}", handler, methods=[method])

    async def page(self, reader: SignedIn) -> Response:
        """The whole page."""
        async with self._context.database.connection() as connection:
            counts = await count_bookmarks(connection, reader.reader_id)
            shelf = _shelf(counts)
            cards = await self._cards(connection, reader, shelf)
            chrome = await self._chrome(connection, reader, shelf, counts)
        return self._pages.render(
            "library.html",
            shelf=shelf,
            title=view.page_title(shelf),
            nothing_at_all=not any(count.anything for count in counts.values()),
            list=cards,
            chrome=chrome,
            is_owner=reader.is_owner,
            rotated="rotated" in request.args,
        )

    async def list(self, reader: SignedIn) -> Response:
        """A list with its counts and its strip; with `after` the next cards alone."""
        async with self._context.database.connection() as connection:
            if request.args.get("after"):
                shelf = _shelf()
                return self._pages.render(
                    "library_more.html", shelf=shelf, list=await self._cards(connection, reader, shelf)
                )
            return await self._whole_list(connection, reader)

    async def edit(self, reader: SignedIn, key: str) -> Response:
        """Change the Progress, the favourite mark or the bucket. Raises ApiError 400 and 404."""
        field = request.path.rpartition("/")[2]
        series = parse_path_key(path_key(_PATH, f"/{field}".encode()))
        value = (await read_form()).get(field, "")
        if series is None:
            raise _not_held()
        try:
            edit = _EDITS[field](series, value)
        except view.InvalidEdit as error:
            raise ApiError(400, str(error)) from None
        async with self._context.database.connection() as connection:
            stored = await edit_bookmark(connection, reader.reader_id, edit, self._context.clock.now_ms())
            if stored is None:
                raise _not_held()
            return await self._changed(connection, reader, stored, view.words_for(edit, stored))

    async def remove(self, reader: SignedIn, key: str) -> Response:
        """Let go of the Bookmark, whether there is one or not (API-032)."""
        behind = b"/remove" if request.method == "POST" else b""
        series = parse_path_key(path_key(_PATH, behind))
        async with self._context.database.connection() as connection:
            if series is not None:
                await remove_bookmark(connection, reader.reader_id, series)
            return await self._changed(connection, reader, None, "Removed.")

    async def _changed(
        self, connection: TrioConnection, reader: SignedIn, stored: Bookmark | None, words: str
    ) -> Response:
        """The answer to a change: the card where it was if it still belongs there, else nothing in its place.

        A card stays in Updated and Favourites until the list is shown anew: what a slip of the finger did can be undone
        where it was done.
        """
        shelf = _shelf()
        stays = stored is not None and (stored.status == "archived") == (shelf.tab == "archived")
        card = view.card(stored, self._context.sites, self._context.public_base_url) if stored and stays else None
        if "HX-Request" not in request.headers:
            return see_other(f"/?{shelf.query}" + (f"#card-{card.path}" if card else ""))
        counts = await count_bookmarks(connection, reader.reader_id)
        if card is None and getattr(counts[shelf.library], shelf.tab) == 0:
            response = await self._whole_list(connection, reader, words)
            response.headers["HX-Retarget"] = "#list"
            response.headers["HX-Reswap"] = "innerHTML"
            return response
        chrome = await self._chrome(connection, reader, shelf, counts)
        return self._pages.render("library_change.html", shelf=shelf, card=card, chrome=chrome, words=words)

    async def _whole_list(self, connection: TrioConnection, reader: SignedIn, words: str = "") -> Response:
        counts = await count_bookmarks(connection, reader.reader_id)
        shelf = _shelf(counts)
        cards = await self._cards(connection, reader, shelf)
        chrome = await self._chrome(connection, reader, shelf, counts)
        return self._pages.render("library_list.html", shelf=shelf, list=cards, chrome=chrome, words=words)

    async def _cards(self, connection: TrioConnection, reader: SignedIn, shelf: view.Shelf) -> view.CardList:
        after = view.place_asked_for(request.args.get("after", ""), request.args.get("at", ""))
        limit = view.MORE_CARDS if after else view.FIRST_CARDS
        # One more than is shown tells whether the list goes on.
        rows = await read_page(connection, reader.reader_id, shelf.library, shelf.tab, limit=limit + 1, after=after)
        return view.card_list(shelf, rows, limit, self._context.sites, self._context.public_base_url)

    async def _chrome(
        self, connection: TrioConnection, reader: SignedIn, shelf: view.Shelf, counts: Mapping[Kind, Counts]
    ) -> view.Chrome:
        """UI-004: only the tab All has a strip."""
        rows = []
        if shelf.tab == "all":
            rows = await read_recent(connection, reader.reader_id, shelf.library, view.RECENT_CARDS)
        return view.chrome(shelf, counts, rows, self._context.sites, self._context.public_base_url)


def _shelf(counts: Mapping[Kind, Counts] | None = None) -> view.Shelf:
    return view.shelf_asked_for(request.args.get("library", ""), request.args.get("tab", ""), counts)


def _not_held() -> ApiError:
    return ApiError(404, "this series is not in your library")
