"""The settings file: `KEY=VALUE` lines, read as Docker Compose reads an env file.

The earlier deployment's file was read by Compose, so the same text must come to the same values here (CFG-010), a
signing key above all. The rules are those of https://docs.docker.com/compose/how-tos/environment-variables/variable-interpolation/
in so far as one line can hold a value: none of our settings has more than one line.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_ASSIGNMENT = re.compile(r"(?:export\s+)?(?P<key>[A-Za-z_][A-Za-z0-9_.]*)\s*=(?P<value>.*)", re.ASCII)
_SINGLE_QUOTED = re.compile(r"'(?P<body>(?:[^'\\]|\\.)*)'\s*(?:#.*)?")
_DOUBLE_QUOTED = re.compile(r'"(?P<body>(?:[^"\\]|\\.)*)"\s*(?:#.*)?')
_INLINE_COMMENT = re.compile(r"\s#")

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_REFERENCE = (
    rf"\$(?:(?P<dollar>\$)|(?P<bare>{_NAME})"
    rf"|\{{(?P<braced>{_NAME})(?:(?P<operator>:?-)(?P<default>[^{{}}]*))?\}}|(?P<bad>\{{))"
)
_IN_PLAIN_TEXT = re.compile(_REFERENCE, re.ASCII)
_IN_DOUBLE_QUOTES = re.compile(rf"\\(?P<escaped>.)|{_REFERENCE}", re.ASCII)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v", '"': '"', "\\": "\\", "$": "$"}


class UnreadableLine(ValueError):
    """A line that is not of the form KEY=VALUE. The text names the line's number and never its value."""


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """What a settings file says. `unset_references` are names that a `$NAME` asked for and nothing sets."""

    values: Mapping[str, str]
    unset_references: tuple[str, ...] = ()


def parse_settings_file(content: bytes, environ: Mapping[str, str]) -> SettingsFile:
    """The values of a settings file; of a repeated key the last one wins.

    `$NAME` and `${NAME}` take the environment's value, else that of an earlier line, else nothing. Raises
    UnreadableLine, also for text that is not UTF-8.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line_number = content.count(b"\n", 0, error.start) + 1
        raise UnreadableLine(f"line {line_number} is not valid UTF-8") from None
    values: dict[str, str] = {}
    unset: list[str] = []

    def look_up(name: str) -> str | None:
        return environ.get(name, values.get(name))

    for line_number, raw_line in enumerate(text.split("\n"), start=1):
        line = raw_line.strip()
        if not line or line.startswith("#"):
            continue
        assignment = _ASSIGNMENT.fullmatch(line)
        if assignment is None:
            raise UnreadableLine(f"line {line_number} is not of the form KEY=VALUE")
        try:
            values[assignment["key"]] = _value(assignment["value"], look_up, unset)
        except UnreadableLine as error:
            raise UnreadableLine(f"line {line_number}, {assignment['key']}: {error}") from None
    return SettingsFile(values, tuple(dict.fromkeys(unset)))


def _value(text: str, look_up: Callable[[str], str | None], unset: list[str]) -> str:
    value = text.lstrip()
    if value.startswith("'"):
        return _quoted(_SINGLE_QUOTED, value).replace("\\'", "'")
    if value.startswith('"'):
        return _expand(_IN_DOUBLE_QUOTES, _quoted(_DOUBLE_QUOTED, value), look_up, unset)
    # Searched before the text is trimmed: `KEY= # words` is blank, `KEY=#words` is not.
    comment = _INLINE_COMMENT.search(text)
    return _expand(_IN_PLAIN_TEXT, (text[: comment.start()] if comment else text).strip(), look_up, unset)


def _quoted(pattern: re.Pattern[str], text: str) -> str:
    quoted = pattern.fullmatch(text)
    if quoted is None:
        raise UnreadableLine("the closing quote is missing, or text follows it")
    return quoted["body"]


def _expand(pattern: re.Pattern[str], text: str, look_up: Callable[[str], str | None], unset: list[str]) -> str:
    def replacement(found: re.Match[str]) -> str:
        parts = found.groupdict()
        if (escaped := parts.get("escaped")) is not None:
            return _ESCAPES.get(escaped, f"\\{escaped}")
        if parts["dollar"]:
            return "$"
        if parts["bad"]:
            raise UnreadableLine("only $NAME, ${NAME}, ${NAME-default} and ${NAME:-default} are understood after a $")
        name = parts["bare"] or parts["braced"]
        value = look_up(name)
        if parts["operator"] and (value is None or (parts["operator"] == ":-" and not value)):
            return str(parts["default"])
        if value is None:
            unset.append(name)
            return ""
        return value

    return pattern.sub(replacement, text)
