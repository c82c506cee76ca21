"""What can go wrong with a browser. Our own caller giving up is `trio.Cancelled`, and nothing else is.

CdpError
├── BrowserGone      it can't be reached, its connection has ended, or it does not answer any more
├── PageFailed       the browser is well, this page is not: no answer of the Site, crashed, stuck, closed
└── CommandFailed    the browser answered a command with an error
    └── TornDown     since the document went away under it: a reload or a navigation
"""


class CdpError(Exception):
    """The tree's root."""


class BrowserGone(CdpError):
    """There is no browser behind the endpoint, or not any more."""


class PageFailed(CdpError):
    """This page could not be read; the next one may."""


class CommandFailed(CdpError):
    """An error of the protocol; the text is Chrome's."""


class TornDown(CommandFailed):
    """The document that was asked is gone; ask the next one."""
