"""One answer of a Site, as plain data: what every way to a page hands over and every judgement takes."""

from collections.abc import Mapping
from dataclasses import dataclass

MAX_BODY_BYTES = 4 * 1024 * 1024
"""Of a page, after decompression (SITE-040, BRO-016)."""

MAX_IMAGE_BYTES = 10 * 1024 * 1024
"""Of a cover, after decompression, over either way (COV-025, BRO-016)."""


@dataclass(frozen=True, slots=True)
class Page:
    """One answer of a Site.

    `headers` has lower-case names; of a repeated header the last value. `body` is decompressed and at most
    MAX_BODY_BYTES long; `truncated` says that there was more. `address` is where the answer came from, after redirects.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    address: str
    truncated: bool = False

    @property
    def text(self) -> str:
        """The body as UTF-8; what is not valid becomes U+FFFD, so that reading never raises."""
        return self.body.decode("utf-8", "replace")
