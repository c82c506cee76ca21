"""A challenge that only a live tab clears: a page whose script computes for a while, answers, and reloads.

The answer earns the cookie `cf_clearance`, of that host alone, for some time. Never cleared are a client without
scripts or with a wrong answer, a user agent that says Headless, and a clock zone of UTC (docs/OPERATIONS.md,
2026-08-08).
"""

import re
import secrets
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

import trio

from tests.simulated_sites.exchange import Exchange, Request

MACHINERY = "/cdn-cgi/challenge-platform/h/g"
COOKIE = "cf_clearance"
LIFETIME_SECONDS = 1800.0

_STEPS, _SLICES = 2_500, 20
_SCRIPT = """(async () => {
  const {cRay, path, seconds, slices, steps} = window._cf_chl_opt;
  let value = parseInt(cRay.slice(0, 8), 16);
  for (let slice = 0; slice < slices; slice++) {
    for (let step = 0; step < steps; step++) value = (Math.imul(value, 1664525) + 1013904223) >>> 0;
    await new Promise(done => setTimeout(done, seconds * 1000 / slices));
  }
  const zone = encodeURIComponent(Intl.DateTimeFormat().resolvedOptions().timeZone);
  await fetch(`${path}/flow/ov1/${cRay}/${value}?zone=${zone}`).catch(() => null);
  location.reload();
})();
"""
_PAGE = """<!DOCTYPE html><html lang="en-US"><head><title>Just a moment...</title></head><body>
<div class="main-wrapper" role="main"><noscript>Scripts have to be switched on to go further.</noscript></div>
<script>window._cf_chl_opt={{cvId:'3',cType:'managed',cRay:'{ray}',path:'{path}',seconds:{seconds},slices:{slices},
steps:{steps}}};var a=document.createElement('script');a.src='{path}/orchestrate/chl_page/v1?ray={ray}';
document.head.appendChild(a);</script></body></html>
"""
_POLICY = {
    "cf_mitigated": "challenge",
    "cross_origin_embedder_policy": "require-corp",
    "cross_origin_opener_policy": "same-origin",
    "cross_origin_resource_policy": "same-origin",
    "content_security_policy": "default-src 'none'; script-src 'unsafe-inline' 'self'; connect-src 'self'",
}
_FLOW = re.compile(rf"{MACHINERY}/flow/ov1/([0-9a-f]{{16}})/([0-9]{{1,10}})")


def answer_to(ray: str) -> int:
    """What the script of the challenge `ray` works out."""
    value = int(ray[:8], 16)
    for _ in range(_STEPS * _SLICES):
        value = (value * 1664525 + 1013904223) & 0xFFFFFFFF
    return value


@dataclass
class Gate:
    """The gate before one host, with whom it has let through."""

    seconds: float = 1.0
    """How long the script takes."""
    lifetime: float = LIFETIME_SECONDS
    """Of a clearance, in seconds."""
    clears: bool = True
    """False: right answers earn nothing either, and the page challenges again and again."""
    cleared: int = 0
    """Clearances given so far."""
    _rays: set[str] = field(default_factory=set)
    _clearances: dict[str, float] = field(default_factory=dict)

    def lets_through(self, request: Request) -> bool:
        """Whether the request carries a clearance of this host that is still valid."""
        try:
            cookie = SimpleCookie(request.headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return False
        return cookie is not None and self._clearances.get(cookie.value, 0) > trio.current_time()

    async def answer(self, exchange: Exchange) -> str:
        """Answer in the Site's place: with the challenge, or as its machinery; says which."""
        request = exchange.request
        if request.path.startswith(f"{MACHINERY}/orchestrate/"):
            await exchange.answer(200, _SCRIPT, content_type="text/javascript")
        elif flow := _FLOW.fullmatch(request.path):
            earned = {"set_cookie": self._clear()} if self._right(request, flow[1], int(flow[2])) else {}
            await exchange.answer(200, "{}", content_type="application/json", **earned)
        else:
            ray = secrets.token_hex(8)
            self._rays.add(ray)
            page = _PAGE.format(ray=ray, path=MACHINERY, seconds=self.seconds, slices=_SLICES, steps=_STEPS)
            await exchange.answer(403, page, **_POLICY)
            return "challenge"
        return "machinery"

    def _right(self, request: Request, ray: str, answer: int) -> bool:
        asked = ray in self._rays
        self._rays.discard(ray)  # one try each
        zone = parse_qs(urlsplit(request.target).query).get("zone", ["UTC"])[0]
        live = "Headless" not in request.headers.get("user-agent", "Headless") and zone not in ("UTC", "Etc/UTC")
        return self.clears and asked and live and answer == answer_to(ray)

    def _clear(self) -> str:
        clearance = secrets.token_urlsafe(24)
        self._clearances[clearance] = trio.current_time() + self.lifetime
        self.cleared += 1
        return f"{COOKIE}={clearance}; Path=/; Max-Age={self.lifetime:.0f}; Secure; HttpOnly; SameSite=None"
