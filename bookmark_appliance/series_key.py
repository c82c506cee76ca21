"""The identity of a Series: which Site, and which work there (SER-001, API-010)."""

from dataclasses import dataclass

MAX_SERIES_ID_LENGTH = 512
"""Characters; API-013."""


@dataclass(frozen=True, slots=True, order=True)
class SeriesKey:
    """(site, series_id). On the wire it is `<site>:<series_id>`; the id may itself hold colons and slashes."""

    site: str
    series_id: str

    def __str__(self) -> str:
        return f"{self.site}:{self.series_id}"

    @classmethod
    def parse(cls, text: str) -> "SeriesKey | None":
        """Cut at the first colon (API-011). None when there is no colon, a part is empty, or the id is too long."""
        site, colon, series_id = text.partition(":")
        if not colon or not site or not series_id or len(series_id) > MAX_SERIES_ID_LENGTH:
            return None
        return cls(site, series_id)
