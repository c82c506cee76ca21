"""What comes back when a page is asked for, and the ways in which nothing does.

PageError
├── Unfetchable          the address gate or the routing refused; nothing was asked of the Site
├── TransportFailure     no answer, a redirect we do not follow, a deadline
├── BrowserLost          the connection to the browser ended mid-read
└── ChallengeHeld        the browser spent its time on a challenge
"""

from collections.abc import Mapping
from dataclasses import dataclass

MAX_BODY_BYTES = 4 * 1024 * 1024
"""After decompression (SITE-040)."""


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


class PageError(Exception):
    """No page to judge; the subclass says why."""


class Unfetchable(PageError):
    """The address gate refused the address, or there is no route for it."""


class TransportFailure(PageError):
    """The Site did not answer: connection, TLS, deadline, a redirect elsewhere or one too many."""


class BrowserLost(PageError):
    """The browser went away while it was reading for us."""


class ChallengeHeld(PageError):
    """The challenge did not clear within the browser's time (BRO-010)."""


class FetcherUnavailable(Exception):
    """The plain client can't be built on this machine; the service goes on without it (OPS-004)."""
