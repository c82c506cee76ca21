"""What ended a command, as an exit code and a line of words (docs/INTERFACE.md)."""

from collections.abc import Iterator

from bookmark_appliance.settings import SettingsError

FAILED = 1
USAGE = 2
DATABASE = 3
INTERRUPTED = 130


def explain(error: BaseException) -> tuple[int, str] | None:
    """The exit code for `error`, or for the group of errors that it is, and the words for standard error.

    None when any part of it is of no kind that we expect: a bug.
    """
    leaves = list(_leaves(error))
    codes = [code for leaf in leaves if (code := _code(leaf)) is not None]
    if len(codes) < len(leaves):
        return None
    return max(codes), "\n".join(dict.fromkeys(words for leaf in leaves if (words := _words(leaf))))


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _code(error: BaseException) -> int | None:
    # Here, since they are the errors of every room: a command that ends well loads only what it ran.
    import click
    import psycopg

    from bookmark_appliance.database import DatabaseError
    from bookmark_appliance.postgres.files import EmbeddedRefused
    from bookmark_appliance.reader_commands import UnknownReader

    match error:
        case KeyboardInterrupt() | click.Abort():
            return INTERRUPTED
        case SettingsError() | EmbeddedRefused():
            return USAGE
        case DatabaseError() | psycopg.OperationalError():
            return DATABASE
        case UnknownReader():
            return FAILED
    return None


def _words(error: BaseException) -> str:
    """Settings have a line a key; what libpq says is one sentence over several lines."""
    return str(error) if isinstance(error, SettingsError) else " ".join(str(error).split())
