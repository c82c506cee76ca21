"""What the tests of the cover fetcher share."""

from collections.abc import Awaitable, Callable, Collection, Iterator
from itertools import repeat

import pytest
import trio

from bookmark_appliance.covers.cover_fetcher import CoverFetcher
from bookmark_appliance.lanes.page_fetcher import FETCH_SECONDS
from tests.simulated_sites import SimulatedSites
from tests.simulated_sites.exchange import Exchange
from tests.simulated_sites.faults import Fault
from tests.simulated_sites.world import HOSTS

CDN = "cdn.asurascans.com"
COVER = f"https://{CDN}/asura-images/covers/lantern-of-the-ninth-gate.d4dcb8.webp"


class Names:
    """A resolver that counts: it gives one answer after the other, the last one for ever."""

    def __init__(self, *answers: Collection[str]) -> None:
        self.lookups: list[str] = []
        self._all = answers
        self._answers: Iterator[Collection[str]] = iter([*answers[:-1], *repeat(answers[-1], 100)] if answers else ())

    def __repr__(self) -> str:
        return f"Names{self._all}"

    async def __call__(self, host: str) -> Collection[str]:
        await trio.lowlevel.checkpoint()
        self.lookups.append(host)
        answer = next(self._answers, None)
        if answer is None:
            pytest.fail(f"{host} was looked up")
        return answer


def cover_fetcher_for(
    sites: SimulatedSites,
    *,
    look_up: Callable[[str], Awaitable[Collection[str]]] | None = None,
    fetch_seconds: float = FETCH_SECONDS,
) -> CoverFetcher:
    """A fetcher that is led to `sites` for their hosts and trusts their certificate; no other name exists."""
    connect_to = dict.fromkeys(HOSTS, ("127.0.0.1", sites.port))
    return CoverFetcher(connect_to, sites.ca_file, look_up=look_up or Names(), fetch_seconds=fetch_seconds)


def answering(body: bytes, *headers: str, status: str = "200 OK", declared: bool = True) -> Fault:
    """These very bytes under these very header lines, and the end of the connection; `declared` gives their length."""

    async def fault(exchange: Exchange) -> None:
        length = [f"Content-Length: {len(body)}"] if declared else []
        head = "\r\n".join([f"HTTP/1.1 {status}", "Connection: close", *headers, *length, "", ""])
        await exchange.stream.send_all(head.encode() + body)
        await exchange.stream.aclose()

    return fault


def gif(length: int) -> bytes:
    """A body that begins as a GIF, `length` bytes long."""
    return b"GIF89a\x01\x00\x01\x00".ljust(length, b"\0")
