"""The last answer to each Reader's `GET /bookmarks`, kept for as long as their list's version stands."""

import gzip
import hashlib
from collections import OrderedDict
from dataclasses import dataclass

from bookmark_appliance.store.bookmarks import ListVersion
from bookmark_appliance.web.compression import compress

MAX_BYTES = 16 * 1024 * 1024
"""Of compressed lists: 1,500 rows are 956 KB, and 70 KB compressed."""


@dataclass(frozen=True, slots=True)
class ListBody:
    """One answer. Only its gzip is kept, fourteen times smaller; a client that takes none has it undone again."""

    etag: str
    compressed: bytes

    @classmethod
    def of(cls, body: bytes) -> "ListBody":
        """Compresses: tens of milliseconds for the largest lists."""
        return cls(f'W/"{hashlib.sha256(body).hexdigest()[:32]}"', compress(body))

    def plain(self) -> bytes:
        """The body as it was."""
        return gzip.decompress(self.compressed)


class ListCache:
    """Bounded by the bytes it keeps; the list that was asked for longest ago goes first."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._lists: OrderedDict[int, tuple[int, ListBody]] = OrderedDict()

    def find(self, wanted: ListVersion) -> ListBody | None:
        """The answer made of exactly this version."""
        version, body = self._lists.get(wanted.reader_id, (None, None))
        if version != wanted.version:
            return None
        self._lists.move_to_end(wanted.reader_id)
        return body

    def keep(self, made_of: ListVersion, body: ListBody) -> None:
        """Keep an answer in the place of the Reader's last one. One that is larger than the whole bound isn't kept."""
        self._drop(made_of.reader_id)
        self._lists[made_of.reader_id] = (made_of.version, body)
        self._bytes += len(body.compressed)
        while self._bytes > self._max_bytes:
            self._drop(next(iter(self._lists)))

    def _drop(self, reader_id: int) -> None:
        _, body = self._lists.pop(reader_id, (None, None))
        if body is not None:
            self._bytes -= len(body.compressed)
