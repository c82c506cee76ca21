"""The commands. Data goes to standard output, words to standard error (docs/INTERFACE.md).

A command imports what it runs when it runs: `version` and `config` answer without loading a web server.
"""

import json
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import click

from bookmark_appliance.config import SettingsError, process_settings
from bookmark_appliance.setting_values import decimal
from bookmark_appliance.settings import Settings

CHECK_FAILED = 1
USAGE = 2
DATABASE = 3
INTERRUPTED = 130

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])


def main() -> None:
    """Run the command line of this process; does not return."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command and return the exit code. What is nobody's fault but ours passes through with its traceback."""
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
        return CHECK_FAILED
    except (Exception, KeyboardInterrupt, BaseExceptionGroup) as error:
        return _explain(error)
    return code if isinstance(code, int) else 0


def _explain(error: BaseException) -> int:
    """Say in one line what ended the command, and return its exit code. Raises `error` when that is a bug."""
    leaves = list(_leaves(error))
    if any(isinstance(leaf, KeyboardInterrupt | click.Abort) for leaf in leaves):
        return INTERRUPTED

    import psycopg

    from bookmark_appliance.database import DatabaseError
    from bookmark_appliance.embedded_postgres import EmbeddedInUse
    from bookmark_appliance.postgres_files import EmbeddedRefused
    from bookmark_appliance.reader_commands import UnknownReader

    for kinds, code in (
        ((SettingsError, EmbeddedInUse, EmbeddedRefused), USAGE),
        ((DatabaseError, psycopg.Error), DATABASE),
        ((UnknownReader,), CHECK_FAILED),
    ):
        for leaf in leaves:
            if isinstance(leaf, kinds):
                # Settings have a line a key; what libpq says is one sentence over several lines.
                text = str(leaf) if isinstance(leaf, SettingsError) else " ".join(str(leaf).split())
                click.echo(text, err=True)
                return code
    raise error


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


class _FolderOrFile(click.ParamType[Path]):
    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        if not str(value).strip():
            self.fail("is blank", param, ctx)
        return Path(value)


def _reads_settings(command: Command) -> Command:
    """Give a command the two options that say where its settings and its data are."""
    command = click.option("--data-dir", type=_FolderOrFile(), help="The data folder; wins over DATA_DIR.")(command)
    return click.option("--env-file", type=_FolderOrFile(), help="The settings file; a .env beside the data folder.")(
        command
    )


def _start(env_file: Path | None, data_dir: Path | None) -> Settings:
    """Settings loaded, and logging as they ask for it."""
    from bookmark_appliance.log import set_up_logging

    settings = process_settings(env_file=env_file, data_dir=data_dir)
    set_up_logging(settings)
    for line in settings.warnings:
        logging.getLogger(__name__).warning(line)
    return settings


def _run(command: Callable[..., Awaitable[T]], env_file: Path | None, data_dir: Path | None, *arguments: object) -> T:
    """Run an asynchronous command on the settings that the options name."""
    import trio

    return trio.run(command, _start(env_file, data_dir), *arguments)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def commands() -> None:
    """Bookmark Appliance: reading progress for serialised fiction, in one file."""


@commands.command()
@_reads_settings
def serve(env_file: Path | None, data_dir: Path | None) -> None:
    """Run the appliance."""
    settings = _start(env_file, data_dir)
    from bookmark_appliance import appliance
    from bookmark_appliance.data_folder import held_by_serve, prepare_folders

    prepare_folders(settings)
    with held_by_serve(settings):
        appliance.run(settings)


@commands.command()
@_reads_settings
def migrate(env_file: Path | None, data_dir: Path | None) -> None:
    """Bring the database up to date and exit."""
    from bookmark_appliance.database_start import bring_up_to_date

    reached = _run(bring_up_to_date, env_file, data_dir)
    click.echo(f"the database is at version {reached}", err=True)


@commands.group()
def readers() -> None:
    """Look after Readers: their credentials and their sessions."""


class _DiscordId(click.ParamType[str]):
    name = "discord_id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return decimal(value)
        except ValueError as rule:
            self.fail(str(rule), param, ctx)


_discord_id = click.argument("discord_id", type=_DiscordId())


@readers.command("list")
@_reads_settings
def readers_list(env_file: Path | None, data_dir: Path | None) -> None:
    """Print every Reader, a line of JSON each."""
    from bookmark_appliance import reader_commands

    for reader in _run(reader_commands.list_all, env_file, data_dir):
        click.echo(json.dumps(reader_commands.as_json(reader)))


@readers.command("add")
@_discord_id
@_reads_settings
def readers_add(discord_id: str, env_file: Path | None, data_dir: Path | None) -> None:
    """Make a Reader, if there is none of this id, and print it."""
    from bookmark_appliance import reader_commands

    reader = _run(reader_commands.add, env_file, data_dir, discord_id)
    click.echo(json.dumps(reader_commands.as_json(reader)))


@readers.command("credential")
@_discord_id
@_reads_settings
def readers_credential(discord_id: str, env_file: Path | None, data_dir: Path | None) -> None:
    """Print the credential that a Reader's scripts hold."""
    from bookmark_appliance import reader_commands

    click.echo(_run(reader_commands.credential, env_file, data_dir, discord_id).reveal())


@readers.command("rotate")
@_discord_id
@_reads_settings
def readers_rotate(discord_id: str, env_file: Path | None, data_dir: Path | None) -> None:
    """Give a Reader a new credential and print it; the old one is refused at once."""
    from bookmark_appliance import reader_commands

    click.echo(_run(reader_commands.rotate, env_file, data_dir, discord_id).reveal())


@readers.command("revoke")
@_discord_id
@_reads_settings
def readers_revoke(discord_id: str, env_file: Path | None, data_dir: Path | None) -> None:
    """End a Reader's sessions: they sign in again, their scripts go on."""
    from bookmark_appliance import reader_commands

    ended = _run(reader_commands.revoke, env_file, data_dir, discord_id)
    click.echo(f"sessions ended: {ended}", err=True)


@commands.command()
@click.argument("site_name", metavar="SITE")
@click.argument("series_url", metavar="URL")
@click.option("--file", "body", type=click.File("rb"), help="Judge this saved body (- for standard input).")
@click.option("--status", type=click.IntRange(100, 599), help="The saved body's HTTP status; 200.")
@click.option("--header", "headers", multiple=True, metavar="'K: V'", help="A header of the saved answer.")
@_reads_settings
def probe(
    site_name: str,
    series_url: str,
    body: BinaryIO | None,
    status: int | None,
    headers: tuple[str, ...],
    env_file: Path | None,
    data_dir: Path | None,
) -> None:
    """Read one Series page as a Lane does, and print what it says as JSON."""
    import trio

    from bookmark_appliance import probe as probing
    from bookmark_appliance.lanes.page import MAX_BODY_BYTES
    from bookmark_appliance.lanes.sites import SITES

    site = SITES.get(site_name)
    if site is None:
        raise click.BadParameter(f"{site_name!r} is none of {', '.join(SITES)}", param_hint="SITE")
    if body is not None:
        saved = body.read(MAX_BODY_BYTES + 1)
        read = probing.judge_body(site, series_url, status or 200, dict(map(_header, headers)), saved)
    elif status is not None or headers:
        raise click.UsageError("--status and --header describe a saved body: give --file as well")
    else:
        read = trio.run(probing.read_live, site, series_url, _start(env_file, data_dir))
    click.echo(probing.line(site, series_url, read))


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise click.BadParameter(f"{text!r} is not of the form 'K: V'", param_hint="--header")
    return name.strip().lower(), value.strip()


@commands.command()
@click.option("--reveal", is_flag=True, help="Show secrets too.")
@_reads_settings
def config(reveal: bool, env_file: Path | None, data_dir: Path | None) -> None:
    """Print each setting's effective value and its source as JSON."""
    from bookmark_appliance.settings_report import report

    settings = process_settings(env_file=env_file, data_dir=data_dir)
    for line in settings.warnings:
        click.echo(line, err=True)
    click.echo(json.dumps(report(settings, reveal=reveal), indent=2))


@commands.command()
def version() -> None:
    """Print the versions of this build as JSON."""
    from bookmark_appliance.versions import versions

    click.echo(json.dumps(versions()))
