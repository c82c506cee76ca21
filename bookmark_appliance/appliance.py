"""The only place where parts are wired: the task tree of `serve`, its start and its end."""

import logging
from contextlib import AsyncExitStack, suppress
from functools import partial

import click
import trio

from bookmark_appliance.clock import HOUR_MS, SECOND_MS, SystemClock
from bookmark_appliance.config import Settings
from bookmark_appliance.covers.cover_files import CoverFiles
from bookmark_appliance.covers.cover_keeper import CoverKeeper
from bookmark_appliance.covers.cover_worker import CoverWorker
from bookmark_appliance.database import DATABASE_ERRORS, DatabaseUnavailable
from bookmark_appliance.discord import discord_settings
from bookmark_appliance.fetchers import browser_fetcher, cover_fetcher, plain_fetcher
from bookmark_appliance.lanes.acquisition import Acquirer
from bookmark_appliance.lanes.fault_watch import FaultWatch
from bookmark_appliance.lanes.lane import Lane
from bookmark_appliance.lanes.lane_keeper import keep_lanes
from bookmark_appliance.lanes.request_slots import RequestSlots
from bookmark_appliance.lanes.routing import Route
from bookmark_appliance.lanes.series_read import SeriesReader
from bookmark_appliance.lanes.sites import SITES
from bookmark_appliance.lanes.supervision import contain
from bookmark_appliance.reader_commands import sign_in_link
from bookmark_appliance.settings import SettingsError, own_origin
from bookmark_appliance.shutdown import Shutdown
from bookmark_appliance.storage import Storage, open_storage
from bookmark_appliance.web.app import create_app
from bookmark_appliance.web.context import WebContext
from bookmark_appliance.web.server import serve_web
from bookmark_appliance.web.userscript_pages import userscript_files

POOL_SIZE = 12
"""Connections: the Lanes and Acquisitions hold one each for moments, the rest is for requests."""

log = logging.getLogger(__name__)


def run(settings: Settings) -> None:
    """`serve`: returns after an orderly end. Raises what made a start impossible, or what broke the supervisor."""
    trio.run(serve, settings)


async def serve(settings: Settings) -> None:
    """Open the storage, then run web, Lanes and Acquisition until the end is asked for; close the storage last."""
    shutdown = Shutdown()
    async with trio.open_nursery() as signals:
        await signals.start(shutdown.watch)
        with shutdown.everything:
            async with AsyncExitStack() as stack:
                with shutdown.start:
                    opened = open_storage(settings, serve=True, pool_size=POOL_SIZE)
                    storage = await stack.enter_async_context(opened)
                if not shutdown.asked.is_set():
                    await _run_parts(storage, shutdown)
        signals.cancel_scope.cancel()


async def _run_parts(storage: Storage, shutdown: Shutdown) -> None:
    """The tree of tasks. Lanes and Acquisition are contained; the web server and the database of our own are fatal."""
    settings, database, clock = storage.settings, storage.database, SystemClock()
    listeners = await _listen(settings)
    host, port = listeners[0].socket.getsockname()[:2]
    settings = settings.bound_to(port)
    slots = RequestSlots(database, clock)
    browser = browser_fetcher(settings)
    reader = SeriesReader(clock, plain_fetcher(settings), browser)
    keeper = CoverKeeper(database, CoverFiles(settings.cover_dir))
    covers = CoverWorker(SITES, keeper, slots, clock, cover_fetcher(settings), browser.fetch_image if browser else None)
    faults = FaultWatch(database, SITES, browser_configured=reader.has(Route.BROWSER))
    acquirer = Acquirer(SITES, database, reader, slots, clock, covers.take)
    app = create_app(
        WebContext(
            database=database,
            clock=clock,
            public_base_url=settings.public_base_url,
            web_base_url=settings.web_base_url,
            owner_discord_id=settings.owner_discord_id,
            token_key=settings.token_key,
            discord=discord_settings(settings),
            allowed_origins=frozenset(settings.allowed_origins),
            trusted_proxies=settings.trusted_proxies,
            sites={site.name: site.host for site in SITES.values()},
            userscripts=userscript_files(settings),
            covers=keeper,
            series_created=lambda series: acquirer.offer(series.key),
        )
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_end_with_database, storage)
        nursery.start_soon(contain, "acquirer", acquirer.run)
        nursery.start_soon(contain, "covers", covers.run)
        if settings.latest_chapter_poll_enabled:
            lanes = [Lane(site, database, reader, slots, faults, clock, covers.take) for site in SITES.values()]
            log.info(
                "%d lanes, rest %dh, gap %ds",
                len(lanes),
                lanes[0].site.rest_ms // HOUR_MS,
                lanes[0].site.gap_ms // SECOND_MS,
            )
            nursery.start_soon(keep_lanes, lanes, storage.open_session)
        else:
            log.info("polling is off")
        async with trio.open_nursery() as web:
            await web.start(partial(serve_web, app, listeners, shutdown=shutdown.asked))
            if not shutdown.asked.is_set():
                log.info("listening on %s", own_origin(host, port))
                if settings.local_mode:
                    await _show_sign_in_link(storage, settings)
        nursery.cancel_scope.cancel()


async def _listen(settings: Settings) -> list[trio.SocketListener]:
    try:
        return await trio.open_tcp_listeners(settings.port, host=settings.bind)
    except OSError as error:
        raise SettingsError(f"BIND, PORT: no listening on {settings.bind}:{settings.port}: {error.strerror}") from None


async def _show_sign_in_link(storage: Storage, settings: Settings) -> None:
    """The way in without Discord (SES-027), for whoever looks at the console; the log has no part in it."""
    try:
        async with storage.database.transaction() as connection:
            link = await sign_in_link(connection, settings)
    except DATABASE_ERRORS as error:
        log.warning("no sign-in link could be made: %s", error)
        return
    with suppress(OSError):  # nobody reads it
        click.echo(f"Sign in, once and within ten minutes: {link.reveal()}")


async def _end_with_database(storage: Storage) -> None:
    """Nothing works without the database: its end is ours, loudly, and the init system starts us again."""
    await storage.wait_lost()
    raise DatabaseUnavailable("the embedded database has ended by itself")
