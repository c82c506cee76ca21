"""The path and the body of a PUT of a Bookmark, and what they come to before they meet the stored row (API-011 to
API-028, API-043 to API-048)."""

import re
from collections.abc import Set

import msgspec

from bookmark_appliance.bookmark_put import KINDS, STATUSES, BookmarkPut
from bookmark_appliance.chapter import HIGHEST_CHAPTER, chapter_label
from bookmark_appliance.series_key import SeriesKey

MAX_CHARACTERS = {
    "title": 1_000,
    "series_url": 2_048,
    "last_chapter_url": 2_048,
    "last_chapter": 200,
    "latest_chapter": 200,
}
"""Several times what the Sites have. Every Reader's list holds these texts, made in memory as a whole: with nothing but
the body's bound, 600 Bookmarks of one Reader took more than a gigabyte."""

_ERROR_FIELD = re.compile(r" - at `\$\.(\w+)`$")


class InvalidPut(Exception):
    """The request can't be taken; the text tells the client why."""


class _Body(msgspec.Struct):
    """The fields that are read; `cover`, `finished`, `updated_at` and unknown ones are ignored whatever they hold."""

    site: str | None = None
    series_id: str | None = None
    title: str | None = None
    series_url: str | None = None
    last_chapter: str | None = None
    last_chapter_num: float | None = None
    last_chapter_url: str | None = None
    favorite: bool | None = None
    latest_chapter: str | None = None
    latest_chapter_num: float | None = None
    status: str | None = None
    kind: str | None = None


_decoder = msgspec.json.Decoder(_Body)


def parse_put(path_key: str, body: bytes, sites: Set[str], *, advance: bool = False) -> BookmarkPut:
    """The PUT that `body` asks for at `path_key`, which is decoded already and decides the identity (API-043).

    `sites` are the names we know. Raises InvalidPut, naming the field where one is at fault.
    """
    key = parse_path_key(path_key)
    if key is None:
        raise InvalidPut("key must be <site>:<series_id>, the id at most 512 characters")
    if key.site not in sites:
        raise InvalidPut("unknown site")
    fields = _decode(body)
    if (fields.site or key.site) != key.site:
        raise InvalidPut("site disagrees with the key")
    if (fields.series_id or key.series_id) != key.series_id:
        raise InvalidPut("series_id disagrees with the key")
    if fields.status and fields.status not in STATUSES:
        raise InvalidPut("invalid status")
    if fields.kind and fields.kind not in KINDS:
        raise InvalidPut("invalid kind")
    last, latest = _number(fields, "last_chapter_num"), _number(fields, "latest_chapter_num")
    last_address = _text(fields, "last_chapter_url") or None
    return BookmarkPut(
        key=key,
        title=_text(fields, "title"),
        series_url=_text(fields, "series_url"),
        last_chapter_num=last,
        last_chapter=_label(last, _text(fields, "last_chapter")),
        last_chapter_url=None if last is None else last_address,
        favorite=fields.favorite,
        status=fields.status or None,
        kind=fields.kind or None,
        latest_chapter_num=latest,
        latest_chapter=_label(latest, _text(fields, "latest_chapter")),
        advance=advance,
    )


def parse_path_key(text: str) -> SeriesKey | None:
    """The key, or None where no row can have it; Postgres stores no NUL."""
    return None if "\0" in text else SeriesKey.parse(text)


def _decode(body: bytes) -> _Body:
    try:
        return _decoder.decode(body.decode())  # as text: what is skipped is not looked at for UTF-8
    except msgspec.ValidationError as error:
        field = _ERROR_FIELD.search(str(error))
        if field is None:
            raise InvalidPut("the body must be a JSON object") from None
        raise InvalidPut(f"{field[1]}: {str(error)[: field.start()].lower().replace('`', '')}") from None
    except (
        msgspec.DecodeError,
        UnicodeDecodeError,
        RecursionError,
    ):  # the latter: brackets nested by the thousand in an ignored field
        raise InvalidPut("the body is not valid JSON") from None


def _text(fields: _Body, name: str) -> str:
    text: str = getattr(fields, name) or ""
    if "\0" in text:
        raise InvalidPut(f"{name}: must not hold a NUL character")
    if len(text) > MAX_CHARACTERS[name]:
        raise InvalidPut(f"{name}: must have at most {MAX_CHARACTERS[name]} characters")
    return text


def _number(fields: _Body, name: str) -> float | None:
    number: float | None = getattr(fields, name)
    if number is None:
        return None
    if not 0 <= number <= HIGHEST_CHAPTER:  # false for NaN too; JSON has no infinity
        raise InvalidPut(f"{name}: must be between 0 and {HIGHEST_CHAPTER}")
    return number + 0.0  # no minus zero


def _label(number: float | None, label: str) -> str | None:
    return None if number is None else label or chapter_label(number)
