"""What a Site is to us: one entry of plain data and pure functions. Its module in `sites/` is all that knows it."""

from collections.abc import Callable
from dataclasses import dataclass

from bookmark_appliance.chapter import Chapter
from bookmark_appliance.clock import HOUR_MS, SECOND_MS
from bookmark_appliance.lanes.tags import Markup


@dataclass(frozen=True, slots=True)
class Reading:
    """What a Series page said. `cover` is an absolute https address at the Site or its image host."""

    latest: Chapter | None = None
    cover: str | None = None
    completed: bool = False
    landmarks: bool = True
    """False when the page lacks what this Site's pages always have: it is not the page we know (log line only)."""


NOTHING_READ = Reading(landmarks=False)


class UnreadableBody(Exception):
    """The body is not of the kind this Site answers with (a JSON Site that answered neither JSON nor HTML)."""


class RefusingBody(Exception):
    """The body is of a kind that means refusal at this Site (HTML where JSON was asked)."""


class MissingSeries(Exception):
    """The Site's own 'no such page', answered with status 200."""


@dataclass(frozen=True, slots=True)
class BrowserRead:
    """How a Site is read through the browser.

    `page_address` maps a Series address to the address whose body is read, or None when the Site does not claim it
    (BRO-001, BRO-003, BRO-005). `in_tab_fetch` tells whether that body is fetched from inside the tab (BRO-002,
    BRO-004) or is the cleared document itself (BRO-006).
    """

    page_address: Callable[[str], str | None]
    in_tab_fetch: bool
    plain_fallback: bool = False
    """Read over plain TLS when there is no browser (novelfull)."""
    image_address: Callable[[str], bool] | None = None
    """Whether an image address must be read through the browser (BRO-013)."""


@dataclass(frozen=True, slots=True)
class Site:
    """One third-party source.

    `read(series_url, markup)` is pure, linear in the page, and raises nothing but UnreadableBody, RefusingBody and
    MissingSeries. `reader_version` goes up when it would read the same body differently (LANE-055).
    `own_check(address, markup)` knows a challenge that is this Site's own, by where the answer came from and what it
    holds, whatever its status.
    """

    name: str
    host: str
    read: Callable[[str, Markup], Reading]
    own_check: Callable[[str, Markup], bool] | None = None
    browser: BrowserRead | None = None
    rest_ms: int = HOUR_MS
    gap_ms: int = 10 * SECOND_MS
    reader_version: int = 1

    @property
    def origin(self) -> str:
        """`https://<host>`, as a browser sends it in `Origin`."""
        return f"https://{self.host}"

    @property
    def plain(self) -> bool:
        """Whether a page may ever be read over plain TLS (SITE-003)."""
        return self.browser is None or self.browser.plain_fallback
