"""The ways in which no page comes back when one is asked for.

PageError
├── Unfetchable          the address gate or the routing refused; nothing was asked of the Site
├── TransportFailure     no answer, a redirect we do not follow, a deadline
├── BrowserLost          the connection to the browser ended mid-read
└── ChallengeHeld        the browser spent its time on a challenge
"""


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
