"""Logging: one record a line, as text for people or JSON for machines, and no secret in either.

Titles and addresses come from strangers, so control characters are escaped: no value can begin a line of its own. A
traceback belongs to its record; in text its lines are indented below it.
"""

import json
import logging
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TextIO
from zoneinfo import ZoneInfo

from bookmark_appliance.settings import Settings

PACKAGE = "bookmark_appliance"

SHORTEST_REDACTED = 6
"""Characters. Blanking every occurrence of a shorter text would spoil lines that hold no secret."""

_CONTROLS = [*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
"""C0, DEL, C1, the Unicode line ends, and the marks that make a terminal show text in another order."""
_ESCAPES = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in _CONTROLS}
_ESCAPES |= {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}


class _Formatter(logging.Formatter):
    """What both forms share: the parts of a record, redacted and on one line each."""

    def __init__(self, secrets: Iterable[str]) -> None:
        super().__init__()
        # The longest first: an address goes as a whole, not with its password cut out.
        self._secrets = sorted({text for text in secrets if len(text) >= SHORTEST_REDACTED}, key=len, reverse=True)

    def _clean(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text.translate(_ESCAPES)

    def _message(self, record: logging.LogRecord) -> str:
        return self._clean(record.getMessage())

    def _traceback(self, record: logging.LogRecord) -> list[str]:
        text = self.formatException(record.exc_info) if record.exc_info else ""
        if record.stack_info:
            text += f"\n{record.stack_info}"
        return [self._clean(line) for line in text.split("\n") if line]


class TextFormatter(_Formatter):
    """`2026-08-12 10:00:00 INFO lanes.asura message`, in the given zone."""

    def __init__(self, zone: ZoneInfo, secrets: Iterable[str] = ()) -> None:
        super().__init__(secrets)
        self._zone = zone

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line, its traceback indented below it."""
        time = datetime.fromtimestamp(record.created, self._zone)
        first = f"{time:%Y-%m-%d %H:%M:%S} {record.levelname} {_room(record.name)} {self._message(record)}"
        return "\n    ".join([first, *self._traceback(record)])


class JsonFormatter(_Formatter):
    """One JSON object a line: `time` (RFC 3339, UTC), `level`, `logger`, `message`, `traceback` where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line of JSON."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = {
            "time": time.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": _room(record.name),
            "message": self._message(record),
        }
        if traceback := self._traceback(record):
            fields["traceback"] = "\n".join(traceback)
        return json.dumps(fields, ensure_ascii=False)


def set_up_logging(settings: Settings, stream: TextIO | None = None) -> None:
    """Send every record of this process to `stream` (standard error) in the form that the settings ask for.

    LOG_LEVEL is ours alone: other packages speak from WARNING on, since httpx tells at INFO whole addresses, the
    webhook's among them.
    """
    secrets = settings.secret_texts
    stream = sys.stderr if stream is None else stream
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        JsonFormatter(secrets) if settings.log_format == "json" else TextFormatter(settings.api_tz, secrets)
    )
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger(PACKAGE).setLevel(settings.log_level.upper())
    logging.captureWarnings(True)
    logging.raiseExceptions = False  # a full disk below the log is no reason to stop


def _room(logger: str) -> str:
    return logger.removeprefix(f"{PACKAGE}.")
