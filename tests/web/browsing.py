"""A browser of what sign-in rests on: cookies, redirects that are shown and not followed, a Host line."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
from quart import Quart

from tests.web.serving import serving


@dataclass
class Browser:
    """Keeps every cookie, whatever its path, and sends it again until its Max-Age says otherwise."""

    client: httpx.AsyncClient
    host: str = "read.example"
    headers: dict[str, str] = field(default_factory=dict)
    cookies: dict[str, str] = field(default_factory=dict)

    async def ask(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str] | None = None,
        form: Mapping[str, str] | bytes | None = None,
    ) -> httpx.Response:
        """One request."""
        sent = {"Host": self.host, **self.headers, **(headers or {})}
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        data = {"content": form} if isinstance(form, bytes) else {"data": form}
        response = await self.client.request(method, target, headers=sent, **data)
        self.client.cookies.clear()
        for name, (value, attributes) in cookies_of(response).items():
            if int(attributes["max-age"]) > 0:
                self.cookies[name] = value
            else:
                self.cookies.pop(name, None)
        return response

    async def get(self, target: str, **headers: str) -> httpx.Response:
        """GET; `x_forwarded_for="1.2.3.4"` is the header X-Forwarded-For."""
        return await self.ask("GET", target, {name.replace("_", "-"): value for name, value in headers.items()})


def cookies_of(response: httpx.Response) -> dict[str, tuple[str, dict[str, str]]]:
    """Name -> value and attributes, by lower-case name, of every cookie that an answer sets."""
    found = {}
    for line in response.headers.get_list("set-cookie"):
        pair, *attributes = line.split("; ")
        name, _, value = pair.partition("=")
        assert name not in found
        parsed = (attribute.partition("=") for attribute in attributes)
        found[name] = value, {key.lower(): value for key, _, value in parsed}
    return found


@asynccontextmanager
async def browsing(app: Quart) -> AsyncIterator[httpx.AsyncClient]:
    """A client of `app` on a loopback port, for any number of browsers."""
    async with (
        serving(app) as server,
        httpx.AsyncClient(
            base_url=f"http://{server.host}:{server.port}", trust_env=False, follow_redirects=False, timeout=20
        ) as client,
    ):
        yield client
