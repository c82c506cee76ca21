"""Readers who are signed in, each with a browser: what tests of the library share."""

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import quote

import httpx

from bookmark_appliance.store.sessions import create_session
from bookmark_appliance.web.sessions import COOKIE
from tests.web.browsing import Browser, browsing
from tests.web.conftest import Web
from tests.web.markup import Element, read

HTMX = {"HX-Request": "true"}


@dataclass
class Desk:
    """A Reader's browser."""

    browser: Browser

    async def see(self, target: str = "/", headers: Mapping[str, str] | None = None) -> Element:
        """What a GET shows."""
        response = await self.browser.ask("GET", target, headers)
        assert response.status_code == 200, response.text
        return read(response.text)

    async def act(
        self,
        act: str,
        key: str,
        form: Mapping[str, str] | None = None,
        *,
        shelf: str = "library=manga&tab=all",
        htmx: bool = True,
    ) -> httpx.Response:
        """Post a card's form, `act` being the last part of its path."""
        target = f"/ui/bookmarks/{quote(key, safe='')}/{act}?{shelf}"
        return await self.browser.ask("POST", target, HTMX if htmx else {}, form or {})

    async def keys(self, target: str = "/") -> list[str]:
        """The keys of the cards that a page shows, in order."""
        return card_keys(await self.see(target))


def card_keys(page: Element) -> list[str]:
    """The keys of the cards, in order."""
    return [card.attributes["id"].removeprefix("card-") for card in page.find(".card")]


@asynccontextmanager
async def two_desks(web: Web) -> AsyncIterator[tuple[Desk, Desk]]:
    """The browsers of the two Readers, signed in."""
    async with browsing(web.app) as client:
        yield (
            Desk(Browser(client, cookies={COOKIE: await session(web, web.reader_id)})),
            Desk(Browser(client, cookies={COOKIE: await session(web, web.other_id)})),
        )


async def session(web: Web, reader_id: int) -> str:
    """A new session of this Reader."""
    session_id = secrets.token_hex(32)
    async with web.database.transaction() as connection:
        await create_session(connection, session_id, reader_id, web.clock.now_ms())
    return session_id
