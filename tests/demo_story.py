"""What happens by itself in the demo, so that its log shows Lanes that run, refuse, pause and recover."""

import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

import httpx
import trio

from bookmark_appliance.clock import MINUTE_MS, SystemClock
from bookmark_appliance.config import load_settings
from bookmark_appliance.database import Database
from bookmark_appliance.series_key import SeriesKey
from bookmark_appliance.storage import open_storage
from bookmark_appliance.store.lane_rows import pause_lane, resume_lane
from bookmark_appliance.store.owner_acts import request_poll
from tests.simulated_sites.world import GATED, Series, sample_world

FIRST_CHAPTER_SECONDS = 20
PAUSE_SECONDS = 45
REFUSED_SITE, PAUSED_SITE = "asura", "demonic"


async def tell_story(settings: Path, address: str, credential: str, sites: str, *, challenges: bool) -> None:
    """Bookmark, refuse, pause, resume, behave again. `sites` is the address of the simulated Sites' own controls.

    With `challenges` some Sites are behind one, which takes a browser.
    """
    world = sample_world()
    async with (
        httpx.AsyncClient(headers={"Authorization": f"Bearer {credential}"}) as api,
        httpx.AsyncClient(verify=False) as control,  # the simulated Sites' own authority is theirs alone
        open_storage(load_settings({}, env_file=settings)) as storage,
    ):
        for site in GATED if challenges else ():
            await control.get(f"{sites}/-/gate/{site}/clearing")
        for series in world.series:
            body = {"title": series.title, "series_url": series.address, "last_chapter_num": 2}
            (await api.put(f"{address}/bookmarks/{series.site}:{series.slug}", json=body)).raise_for_status()
        await trio.sleep(FIRST_CHAPTER_SECONDS)
        if challenges:
            for row in (await api.get(f"{address}/bookmarks")).json():
                if row["key"].startswith(tuple(GATED)):
                    say(f"{row['key']}: {row['latest_chapter'] or 'nothing yet'}, through its challenge")

        refused = [series for series in world.series if series.site == REFUSED_SITE]
        say(f"{REFUSED_SITE} answers with a challenge, and the owner asks for both its Series")
        await control.get(f"{sites}/-/misbehave/{refused[0].shape.host}/challenge")
        await force(storage.database, refused)

        say(f"the owner pauses {PAUSED_SITE}, and asks for its Series: they wait")
        async with storage.database.connection() as connection:
            await pause_lane(connection, PAUSED_SITE, SystemClock().now_ms(), 60 * MINUTE_MS)
        await force(storage.database, [series for series in world.series if series.site == PAUSED_SITE])
        await trio.sleep(PAUSE_SECONDS)
        say(f"the owner lets {PAUSED_SITE} go on")
        async with storage.database.connection() as connection:
            await resume_lane(connection, PAUSED_SITE)

        await control.get(f"{sites}/-/behave")
        say(f"{REFUSED_SITE} behaves again; its Lane finds out when the quarter of an hour is over")
        await force(storage.database, refused)


async def force(database: Database, wanted: Sequence[Series]) -> None:
    """Ask for Forced Polls, as the owner's press does."""
    async with database.connection() as connection:
        for series in wanted:
            await request_poll(connection, SeriesKey(series.site, unquote(series.slug)), SystemClock().now_ms())


def say(words: str) -> None:
    """A line of the story among those of the log."""
    print(f"--- {words}", file=sys.stderr, flush=True)
