"""The TLS server that plays all six Sites and their image hosts on one loopback port."""

import ssl
import tempfile
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

import h11
import trio
import trustme

from tests.simulated_sites import faults
from tests.simulated_sites.exchange import Exchange, Request
from tests.simulated_sites.images import image
from tests.simulated_sites.pages import ASSETS, chapter_page, kagane_json, series_page
from tests.simulated_sites.world import GATED, HOSTS, SHAPES, Series, World, sample_world

HTML = "text/html; charset=utf-8"


@dataclass
class SimulatedSites:
    """A running server: what it publishes, how it is reached, and what it was asked so far."""

    world: World
    ca_file: Path
    port: int = 0
    requests: list[Request] = field(default_factory=list)
    counts: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """By host: how often it was asked for a `page`, the `api`, an `image`, an `asset` or what is `missing`, and how
    often its gate answered instead, with the `challenge` or with its `machinery`."""
    _arrival: trio.lowlevel.ParkingLot = field(default_factory=trio.lowlevel.ParkingLot)

    @property
    def connect_to(self) -> str:
        """The value of SITE_CONNECT_TO."""
        return ",".join(f"{host}=127.0.0.1:{self.port}" for host in HOSTS)

    def requests_to(self, where: str) -> list[Request]:
        """The requests for one Site's pages (its name), or for a host, or for one address, in order of arrival."""
        if where in SHAPES:
            shape = SHAPES[where]
            covers = {series.cover_target for series in self.world.series if series.site == where}
            return [seen for seen in self.requests if seen.host == shape.host and seen.target not in covers]
        return [seen for seen in self.requests if where in (seen.host, f"https://{seen.host}{seen.target}")]

    async def wait_until(self, satisfied: Callable[[], bool]) -> None:
        """Look again after each arrival; put a deadline around it."""
        while not satisfied():
            await self._arrival.park()

    async def serve(self, stream: trio.SSLStream[trio.SocketStream]) -> None:
        """One connection, as many requests as it brings."""
        protocol = h11.Connection(h11.SERVER)
        try:
            async with stream:
                while request := await _next_request(protocol, stream):
                    exchange = Exchange(request, stream, protocol)
                    await self._answer(exchange)
                    if protocol.our_state is not h11.DONE or protocol.their_state is not h11.DONE:
                        break
                    protocol.start_next_cycle()
        except (trio.BrokenResourceError, trio.ClosedResourceError, h11.RemoteProtocolError, OSError):
            pass  # the client went away, in the middle or in the handshake

    async def _answer(self, exchange: Exchange) -> None:
        request = exchange.request
        if request.path.startswith("/-/"):
            try:
                await exchange.answer(200, self._control(request.path.split("/")[2:]), content_type="text/plain")
            except LookupError as error:
                await exchange.answer(404, str(error), content_type="text/plain")
            return
        self.requests.append(request)
        self._arrival.unpark_all()
        series, kind, body = self._find(request)
        gate = self.world.gates.get(request.host)
        # novelfull's images are not behind its gate (measured 2026-08-09).
        beside = request.host == "novelfull.com" and kind.startswith("image/")
        if gate and not beside and not gate.lets_through(request):
            self.counts[request.host][await gate.answer(exchange)] += 1
            return
        self.counts[request.host][_what(series, kind, body)] += 1
        await self._answer_itself(exchange, series, kind, body)

    async def _answer_itself(self, exchange: Exchange, series: Series | None, kind: str, body: bytes) -> None:
        request = exchange.request
        moved_to = series.target if series and request.path != series.target and _stale(request.path, series) else None
        exchange.headers += self.world.policies.get(request.host, ())
        if series is not None and kind.startswith("image/") and series.site in ("comix", "kagane"):
            exchange.headers.append(("cross-origin-resource-policy", "same-origin"))
        if series is not None and not kind.startswith("image/") and series.site in self.world.validating:
            exchange.headers += _validators(series, body)
        exchange.headers.append(("content-type", kind))
        exchange.body = body
        fault = self.world.faults.get(series.address if series else "") or self.world.faults.get(request.host)
        if fault:
            await fault(exchange)
        elif not body:
            await exchange.answer(404, faults.MISSING)
        elif moved_to:
            await exchange.answer(301, location=moved_to)
        elif _unchanged(request, exchange.headers):
            await exchange.answer(304)
        else:
            await exchange.answer(200, body)

    def _find(self, request: Request) -> tuple[Series | None, str, bytes]:
        """What is at an address: the Series, the content type and the body."""
        for series in self.world.series:
            if request.host == series.shape.cover_host and request.target == series.cover_target:
                return series, series.shape.cover_type, image(series.shape.cover_type, series.slug)
            if request.host != series.shape.host:
                continue
            if request.path == series.target or (series.site == "asura" and _stale(request.path, series)):
                return series, HTML, series_page(series).encode()
            for chapter in series.chapters if series.shape.chapter else ():
                if request.path == series.chapter_target(chapter):
                    return series, HTML, chapter_page(series, chapter).encode()
            if series.site == "kagane" and request.path == f"/api/v2/series/{series.slug}":
                return series, "application/json", kagane_json(series).encode()
        if request.host in ("asurascans.com", "comix.to", "kagane.to") and request.path in ASSETS:
            kind, text = ASSETS[request.path]
            return None, kind, text.encode()
        return None, HTML, b""

    def _control(self, words: list[str]) -> str:
        """`/-/publish/SITE/SLUG/CHAPTER`, `/-/misbehave/HOST/FAULT`, `/-/behave`, `/-/gate/SITE/clearing` (or `never`,
        or `off`); anything else shows the state."""
        match words:
            case ["publish", site, slug, chapter]:
                self.world.publish(site, slug, chapter)
            case ["misbehave", host, fault]:
                self.world.misbehave(host, faults.BY_NAME[fault])
            case ["behave"]:
                self.world.behave()
            case ["gate", site, "clearing" | "never" as kind] if site in GATED:
                self.world.gate(site, clears=kind == "clearing")
            case ["gate", site, "off"] if site in GATED:
                self.world.ungate(site)
        published = [f"{series.address} {series.chapters[-1:]}" for series in self.world.series]
        known = [f"misbehaving: {sorted(self.world.faults)}", f"faults: {' '.join(faults.BY_NAME)}"]
        gates = [f"{host}: {'clearing' if gate.clears else 'never'}" for host, gate in self.world.gates.items()]
        counts = [f"requests to {host}: {dict(count)}" for host, count in self.counts.items()]
        return "\n".join([*published, *known, f"gates: {gates}", *counts, f"requests: {len(self.requests)}", ""])


@asynccontextmanager
async def simulated_sites(world: World | None = None) -> AsyncIterator[SimulatedSites]:
    """Serve `world` (the sample when none is given) on a free loopback port while the block runs."""
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(*HOSTS, "127.0.0.1").configure_cert(context)
    context.set_alpn_protocols(["http/1.1"])
    with tempfile.TemporaryDirectory(prefix="simulated-sites-") as folder:
        ca_file = Path(folder, "ca.pem")
        authority.cert_pem.write_to_path(ca_file)
        sites = SimulatedSites(world or sample_world(), ca_file)
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        sites.port = listener.socket.getsockname()[1]
        secure = trio.SSLListener(listener, context, https_compatible=True)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.serve_listeners, sites.serve, [secure])
            yield sites
            nursery.cancel_scope.cancel()


async def _next_request(protocol: h11.Connection, stream: trio.SSLStream[trio.SocketStream]) -> Request | None:
    request = None
    while True:
        event = protocol.next_event()
        if event is h11.NEED_DATA:
            protocol.receive_data(bytes(await stream.receive_some(65_536)))
        elif isinstance(event, h11.Request):
            headers = {name.decode(): value.decode("latin-1") for name, value in event.headers}
            host = headers.get("host", "").partition(":")[0]
            request = Request(host, event.target.decode("latin-1"), headers, trio.current_time())
        elif isinstance(event, h11.EndOfMessage):
            return request
        elif isinstance(event, h11.ConnectionClosed):
            return None


def _what(series: Series | None, kind: str, body: bytes) -> str:
    if series is None:
        return "asset" if body else "missing"
    return "image" if kind.startswith("image/") else "api" if kind == "application/json" else "page"


def _validators(series: Series, body: bytes) -> list[tuple[str, str]]:
    stamp = f"Mon, 03 Aug 2026 10:{series.revision // 60:02}:{series.revision % 60:02} GMT"
    return [("etag", f'W/"{crc32(body):08x}"'), ("last-modified", stamp)]


def _unchanged(request: Request, headers: list[tuple[str, str]]) -> bool:
    validators = dict(headers)
    asked = request.headers
    if "if-none-match" in asked:
        return asked["if-none-match"] == validators.get("etag")
    return "if-modified-since" in asked and asked["if-modified-since"] == validators.get("last-modified")


def _stale(path: str, series: Series) -> bool:
    """An address of asura with the hash of an earlier deployment."""
    return path.startswith(f"/comics/{series.slug}-") and len(path) == len(series.target)
