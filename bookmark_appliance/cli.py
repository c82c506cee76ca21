"""The commands. Data goes to standard output, words to standard error (docs/INTERFACE.md).

A command imports what it runs when it runs: `version` and `config` answer without loading a web server.
"""

import functools
import json
import logging
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from bookmark_appliance.cdp.host_options import ListenAddress, listen_address
from bookmark_appliance.config import process_settings, process_zone
from bookmark_appliance.exit_codes import FAILED, USAGE, explain
from bookmark_appliance.page import MAX_BODY_BYTES
from bookmark_appliance.setting_values import IPNetwork, decimal, networks
from bookmark_appliance.settings import Settings

T = TypeVar("T")


def main() -> None:
    """Run the command line of this process; does not return."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    try:
        # Of `--help` and the like, click returns the code.
        code = commands.main(arguments, prog_name="bookmark-appliance", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return USAGE
    except BrokenPipeError:
        # Whoever read has seen enough. Python flushes again at its end, which must not fail aloud.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (Exception, KeyboardInterrupt, BaseExceptionGroup) as error:
        return _end_with(error)
    return code if isinstance(code, int) else 0


def _end_with(error: BaseException) -> int:
    ended = explain(error)
    if ended is None:
        # Through the log, which hides secrets and keeps the traceback in one record.
        logging.getLogger(__name__).critical("ended by a bug of ours", exc_info=error)
        return FAILED
    code, words = ended
    click.echo(words, err=True, nl=bool(words))
    return code


class _Text(click.ParamType[T]):
    """What `parse` makes of an argument; it raises ValueError with the rule that is broken."""

    def __init__(self, name: str, parse: Callable[[str], T]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> T:
        try:
            return self._parse(value)
        except ValueError as rule:
            self.fail(str(rule), param, ctx)


def _folder_or_file(text: str) -> Path:
    if not text.strip():
        raise ValueError("is blank")
    return Path(text)


_path = _Text("path", _folder_or_file)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the settings and the data are, as the two options of a command name it."""

    env_file: Path | None
    data_dir: Path | None

    def settings(self) -> Settings:
        """The settings, with logging set up as they ask for it."""
        from bookmark_appliance.log import set_up_logging

        settings = process_settings(env_file=self.env_file, data_dir=self.data_dir)
        set_up_logging(settings)
        for line in settings.warnings:
            logging.getLogger(__name__).warning(line)
        return settings

    def with_storage(self, act: Callable[..., Awaitable[T]], *arguments: object) -> T:
        """Run `act(connection, settings, *arguments)` in one transaction on the database of the data folder."""
        import trio

        from bookmark_appliance.data_folder import prepare_folders
        from bookmark_appliance.storage import open_storage

        settings = self.settings()
        prepare_folders(settings)

        async def run() -> T:
            async with open_storage(settings) as storage, storage.database.transaction() as connection:
                return await act(connection, storage.settings, *arguments)

        return trio.run(run)


def _has_place(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options `--env-file` and `--data-dir`, as its argument `place`."""

    @click.option("--env-file", type=_path, help="The settings file; by default .env beside the data folder.")
    @click.option("--data-dir", type=_path, help="The data folder; wins over DATA_DIR.")
    @functools.wraps(command)
    def with_place(env_file: Path | None, data_dir: Path | None, **arguments: Any) -> None:
        command(place=_Place(env_file, data_dir), **arguments)

    return with_place


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def commands() -> None:
    """Bookmark Appliance: reading progress for serialised fiction, in one file."""


@commands.command()
@_has_place
def serve(place: _Place) -> None:
    """Run the appliance."""
    settings = place.settings()
    from bookmark_appliance import appliance
    from bookmark_appliance.data_folder import held_by_serve, prepare_folders

    prepare_folders(settings)
    with held_by_serve(settings):
        appliance.run(settings)


@commands.command()
@click.option(
    "--listen",
    type=_Text("host:port", listen_address),
    required=True,
    help="Where clients connect; there is no default.",
)
@click.option("--chrome", type=_path, help="The program; by default the Chrome that is installed.")
@click.option("--profile", type=_path, help="The profile's folder; by default chrome-profile in the data folder.")
@click.option("--idle-seconds", type=click.FloatRange(0, min_open=True), default=300, show_default=True)
@click.option("--timezone", help="Chrome's zone, not UTC; by default TZ, else the name in /etc/timezone.")
@click.option(
    "--allow", type=_Text("cidr", networks), multiple=True, help="Addresses that may connect; by default all."
)
@click.option("--listen-anywhere", is_flag=True, help="Let --listen name every address of this machine.")
@_has_place
def browser(
    listen: ListenAddress,
    chrome: Path | None,
    profile: Path | None,
    idle_seconds: float,
    timezone: str | None,
    allow: tuple[tuple[IPNetwork, ...], ...],
    listen_anywhere: bool,
    place: _Place,
) -> None:
    """Run the browser host: a Chrome behind one address, there while someone is connected."""
    if listen.everywhere and not listen_anywhere:
        raise click.BadParameter(
            "whoever reaches the port drives the browser: --listen-anywhere allows every address",
            param_hint="--listen",
        )
    from bookmark_appliance.cdp import browser_host

    browser_host.run(
        place.settings(),
        listen,
        [network for given in allow for network in given],
        program=chrome,
        profile=profile,
        zone=process_zone(timezone),
        idle_seconds=idle_seconds,
    )


@commands.command()
@_has_place
def migrate(place: _Place) -> None:
    """Bring the database up to date and exit."""
    from bookmark_appliance.versions import schema_version

    async def nothing_more(*_: object) -> None:
        pass

    place.with_storage(nothing_more)
    click.echo(f"the database is at version {schema_version()}", err=True)


@commands.group()
def readers() -> None:
    """Look after Readers: their credentials and their sessions."""


_discord_id = click.argument("discord_id", type=_Text("discord_id", decimal))


@readers.command("list")
@_has_place
def readers_list(place: _Place) -> None:
    """Print every Reader, a line of JSON each."""
    from bookmark_appliance import reader_commands

    for reader in place.with_storage(reader_commands.list_all):
        click.echo(json.dumps(reader_commands.as_json(reader)))


@readers.command("add")
@_discord_id
@_has_place
def readers_add(discord_id: str, place: _Place) -> None:
    """Make a Reader, if there is none of this id, and print it."""
    from bookmark_appliance import reader_commands

    reader = place.with_storage(reader_commands.add, discord_id)
    click.echo(json.dumps(reader_commands.as_json(reader)))


@readers.command("credential")
@_discord_id
@_has_place
def readers_credential(discord_id: str, place: _Place) -> None:
    """Print the credential that a Reader's scripts hold."""
    from bookmark_appliance import reader_commands

    click.echo(place.with_storage(reader_commands.credential, discord_id).reveal())


@readers.command("rotate")
@_discord_id
@_has_place
def readers_rotate(discord_id: str, place: _Place) -> None:
    """Give a Reader a new credential and print it; the old one is refused at once."""
    from bookmark_appliance import reader_commands

    click.echo(place.with_storage(reader_commands.rotate, discord_id).reveal())


@readers.command("revoke")
@_discord_id
@_has_place
def readers_revoke(discord_id: str, place: _Place) -> None:
    """End a Reader's sessions: they sign in again, their scripts go on."""
    from bookmark_appliance import reader_commands

    ended = place.with_storage(reader_commands.revoke, discord_id)
    click.echo(f"sessions ended: {ended}", err=True)


@commands.command("sign-in-link")
@click.argument("discord_id", type=_Text("discord_id", decimal), required=False)
@_has_place
def sign_in_link(discord_id: str | None, place: _Place) -> None:
    """Print a one-time address that signs a Reader in, the owner by default."""
    from bookmark_appliance import reader_commands

    click.echo(place.with_storage(reader_commands.sign_in_link, discord_id).reveal())


@commands.command()
@click.argument("site_name", metavar="SITE")
@click.argument("series_url", metavar="URL")
@click.option("--file", "file", help="Judge this saved body (- for standard input).")
@click.option("--status", type=click.IntRange(100, 599), help="The saved body's HTTP status; 200.")
@click.option("--header", "headers", multiple=True, metavar="'K: V'", help="A header of the saved answer.")
@_has_place
def probe(
    site_name: str,
    series_url: str,
    file: str | None,
    status: int | None,
    headers: tuple[str, ...],
    place: _Place,
) -> None:
    """Read one Series page as a Lane does, and print what it says as JSON."""
    from bookmark_appliance import probe as probing
    from bookmark_appliance.lanes.sites import SITES

    site = SITES.get(site_name)
    if site is None:
        raise click.BadParameter(f"{site_name!r} is none of {', '.join(SITES)}", param_hint="SITE")
    if file is not None:
        read = probing.judge_body(site, series_url, status or 200, dict(map(_header, headers)), _saved_body(file))
    elif status is not None or headers:
        raise click.UsageError("--status and --header describe a saved body: give --file as well")
    else:
        read = probing.read_live(site, series_url, place.settings())
    click.echo(probing.line(site, series_url, read))


def _saved_body(file: str) -> bytes:
    try:
        with click.open_file(file, "rb") as stream:
            body: bytes = stream.read(MAX_BODY_BYTES + 1)  # one more tells that it was cut off
    except OSError as error:
        raise click.BadParameter(f"{file}: {error.strerror}", param_hint="--file") from None
    return body


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise click.BadParameter(f"{text!r} is not of the form 'K: V'", param_hint="--header")
    return name.strip().lower(), value.strip()


@commands.command()
@click.option("--reveal", is_flag=True, help="Show secrets too.")
@_has_place
def config(reveal: bool, place: _Place) -> None:
    """Print each setting's effective value and its source as JSON."""
    from bookmark_appliance.settings_report import report

    settings = process_settings(env_file=place.env_file, data_dir=place.data_dir)
    for line in settings.warnings:
        click.echo(line, err=True)
    click.echo(json.dumps(report(settings, reveal=reveal), indent=2))


@commands.command()
def version() -> None:
    """Print the versions of this build as JSON."""
    from bookmark_appliance.versions import versions

    click.echo(json.dumps(versions()))
