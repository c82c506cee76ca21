import io
import json
import logging
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from bookmark_appliance.config import load_settings
from bookmark_appliance.log import TextFormatter, set_up_logging
from bookmark_appliance.secret import Secret

NOON_UTC = 1_786_536_000.0
"""2026-08-12 12:00:00 UTC, in unix seconds."""


def logged(*arguments: object, level: int = logging.INFO, name: str = "lanes.asura", **environ: str) -> str:
    """What one record looks like under these settings."""
    stream = io.StringIO()
    set_up_logging(load_settings(environ, env_file=Path("/dev/null")), stream)
    logging.getLogger(f"bookmark_appliance.{name}").log(level, *arguments)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("zone", "time"),
    [
        ("UTC", "2026-08-12 12:00:00"),
        ("Asia/Jakarta", "2026-08-12 19:00:00"),
        ("America/New_York", "2026-08-12 08:00:00"),
    ],
)
def test_a_text_line_has_time_level_room_and_message(zone: str, time: str) -> None:
    """CFG-001: API_TZ is the zone of text log lines."""
    record = logging.LogRecord("bookmark_appliance.lanes.asura", logging.INFO, "", 0, "read %d", (3,), None)
    record.created = NOON_UTC
    assert TextFormatter(ZoneInfo(zone)).format(record) == f"{time} INFO lanes.asura read 3"


def test_json_lines_are_for_machines() -> None:
    """CFG-001: LOG_FORMAT"""
    fields = json.loads(logged("read %s", "a\nb", LOG_FORMAT="json", API_TZ="Asia/Jakarta"))
    assert fields.pop("time").endswith("Z")
    assert fields == {"level": "info", "logger": "lanes.asura", "message": "read a\\nb"}


@pytest.mark.parametrize("format_", ["text", "json"])
@pytest.mark.parametrize(
    "hostile",
    [
        "x\n2026-08-12 10:00:00 INFO cli forged",
        "x\r\nforged",
        "x\u2028forged",
        "x\x85forged",
        "x\x1b[2Jforged",
        "x\x00\x7f\x0bforged",
        "x\u202eforged",
    ],
)
def test_a_hostile_title_cannot_begin_a_line(format_: str, hostile: str) -> None:
    """OPS-001: one event a line."""
    line = logged("title %s", hostile, LOG_FORMAT=format_)
    assert line.endswith("\n")
    assert len(line.splitlines()) == 1
    assert "forged" in line
    assert all(character.isprintable() for character in line[:-1])


def test_a_traceback_stays_with_its_record() -> None:
    """OPS-001: in text its lines are indented, whatever the error says; in JSON they are a field."""
    stream = io.StringIO()
    for format_ in ("text", "json"):
        set_up_logging(load_settings({"LOG_FORMAT": format_}, env_file=Path("/dev/null")), stream)
        try:
            raise ValueError("first\n2026-08-12 10:00:00 INFO cli forged")
        except ValueError:
            logging.getLogger("bookmark_appliance.web").exception("failed")
    text, _, last = stream.getvalue().rstrip("\n").rpartition("\n")
    first, *rest = text.split("\n")
    assert first.endswith("ERROR web failed")
    assert len(rest) > 3
    assert all(line.startswith("    ") for line in rest)
    fields = json.loads(last)
    assert "Traceback" in fields["traceback"]
    assert "forged" in fields["traceback"]


SECRETS = {
    "TOKEN_KEY": "the-token-key-with-its-characters",
    "DATABASE_URL": "postgresql://reader:db%21password@db.internal/books",
    "DISCORD_WEBHOOK_URL": "https://discord.com/api/webhooks/1/hook-secret",
    "METRICS_TOKEN": "metrics-secret",
}


@pytest.mark.parametrize("format_", ["text", "json"])
@pytest.mark.parametrize("secret", [*SECRETS.values(), "db%21password", "db!password"])
def test_no_secret_reaches_the_log(format_: str, secret: str) -> None:
    """OPS-001, CFG-008: neither by its type nor, should someone reveal it, by its text."""
    stream = io.StringIO()
    settings = load_settings({**SECRETS, "LOG_FORMAT": format_}, env_file=Path("/dev/null"))
    set_up_logging(settings, stream)
    log = logging.getLogger("bookmark_appliance.test")
    log.info("wrapped %s", Secret(secret))
    try:
        raise ValueError(f"refused: {secret}")
    except ValueError:
        log.exception("plain <%s> and in %r", secret, {"key": secret})
    lines = stream.getvalue()
    assert "wrapped ***" in lines
    assert "plain <***>" in lines
    assert secret not in lines


@pytest.mark.parametrize(
    ("threshold", "level", "heard"),
    [
        ("info", logging.DEBUG, False),
        ("info", logging.INFO, True),
        ("debug", logging.DEBUG, True),
        ("warning", logging.INFO, False),
        ("error", logging.WARNING, False),
        ("error", logging.ERROR, True),
    ],
)
def test_the_level_is_ours(threshold: str, level: int, heard: bool) -> None:
    """CFG-001: LOG_LEVEL"""
    assert bool(logged("message", level=level, LOG_LEVEL=threshold)) == heard


@pytest.mark.parametrize("name", ["httpx", "httpcore.http11", "hypercorn.error", "hypercorn.access", "quart.app"])
def test_other_packages_speak_only_from_warning_on(name: str) -> None:
    """CFG-008: httpx tells at INFO the addresses that it asks, the webhook's among them."""
    stream = io.StringIO()
    set_up_logging(load_settings({"LOG_LEVEL": "debug"}, env_file=Path("/dev/null")), stream)
    logging.getLogger(name).info("quiet")
    logging.getLogger(name).warning("loud")
    assert "quiet" not in stream.getvalue()
    assert f"WARNING {name} loud" in stream.getvalue()


def test_logging_can_be_set_up_again_without_doubling_lines() -> None:
    """OPS-001"""
    logged("once")
    assert logged("twice").count("twice") == 1
