"""`browser`, the browser host: checks what it was started with, then runs its tasks."""

import logging
from collections.abc import Sequence
from pathlib import Path

import trio

from bookmark_appliance.cdp.chrome_command import NAMES, ChromeOptions, find_chrome
from bookmark_appliance.cdp.chrome_keeper import ChromeKeeper
from bookmark_appliance.cdp.front import Front
from bookmark_appliance.cdp.host_options import ListenAddress, browser_zone
from bookmark_appliance.data_folder import PRIVATE, held, make_folder
from bookmark_appliance.setting_values import IPNetwork
from bookmark_appliance.settings import Settings, SettingsError, own_origin
from bookmark_appliance.shutdown import Shutdown

log = logging.getLogger(__name__)


def run(
    settings: Settings,
    listen: ListenAddress,
    allow: Sequence[IPNetwork],
    *,
    program: Path | None,
    profile: Path | None,
    zone: tuple[str, str],
    idle_seconds: float,
) -> None:
    """`browser`: returns after an orderly end. `zone` is a name and where it comes from.

    Raises SettingsError for a zone that Chrome may not be in, where there is no Chrome, for a profile that can't be
    used or that another host uses, and for an address that can't be listened on.
    """
    name, source = zone
    try:
        zone_name = browser_zone(name)
    except ValueError as rule:
        raise SettingsError(f"{source}: {rule} (found {name!r:.100})") from None
    names = NAMES if program is None else (str(program),)
    if (found := find_chrome(names)) is None:
        raise SettingsError(f"--chrome: no program {' or '.join(names)} is here")
    if profile is None:
        make_folder("DATA_DIR", settings.data_dir, PRIVATE)
    folder = (profile or settings.data_dir / "chrome-profile").absolute()
    options = ChromeOptions(found, folder, zone_name, settings.site_connect_to, settings.site_ca_file)
    make_folder("--profile", folder, PRIVATE)
    with held(folder / "browser-host.lock", f"--profile: another browser host runs on {folder}"):
        trio.run(serve, listen, allow, ChromeKeeper(options, idle_seconds=idle_seconds))


async def serve(listen: ListenAddress, allow: Sequence[IPNetwork], keeper: ChromeKeeper) -> None:
    """Listen until SIGTERM or SIGINT, then end Chrome in good order. Raises SettingsError where it can't listen."""
    shutdown = Shutdown()
    async with trio.open_nursery() as signals:
        await signals.start(shutdown.watch)
        signals.start_soon(_kill_when_cut_short, shutdown, keeper)
        async with trio.open_nursery() as nursery:
            listeners = await _listen(listen)
            host, port = listeners[0].socket.getsockname()[:2]
            nursery.start_soon(keeper.run)
            await nursery.start(trio.serve_listeners, Front(keeper, allow).serve, listeners)
            log.info("listening on %s", own_origin(host, port))
            await shutdown.asked.wait()
            nursery.cancel_scope.cancel()
        signals.cancel_scope.cancel()


async def _kill_when_cut_short(shutdown: Shutdown, keeper: ChromeKeeper) -> None:
    with shutdown.everything:
        await trio.sleep_forever()
    keeper.kill()


async def _listen(listen: ListenAddress) -> list[trio.SocketListener]:
    try:
        return await trio.open_tcp_listeners(listen.port, host=listen.host)
    except OSError as error:
        raise SettingsError(f"--listen: no listening on {listen.host}:{listen.port}: {error.strerror}") from None
