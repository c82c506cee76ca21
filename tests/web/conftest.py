"""The application over a fresh database, with two Readers, a clock that a test sets, and a client for each."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from quart import Quart
from quart.wrappers import Response

from bookmark_appliance.covers.cover_files import CoverFiles
from bookmark_appliance.covers.cover_keeper import CoverKeeper
from bookmark_appliance.credentials import derive_credential
from bookmark_appliance.database import Database
from bookmark_appliance.lanes.sites import SITES as REGISTRY
from bookmark_appliance.script_assembly import SCRIPTS
from bookmark_appliance.secret import Secret
from bookmark_appliance.store.bookmarks import NewSeries
from bookmark_appliance.store.readers import add_reader
from bookmark_appliance.web.app import create_app
from bookmark_appliance.web.context import WebContext

ORIGIN = "https://asurascans.com"
SITES = {site.name: site.host for site in REGISTRY.values()}


@dataclass
class SetClock:
    """Shows the time it was set to (unix ms)."""

    now: int = 1_700_000_000_000

    def now_ms(self) -> int:
        """The set time."""
        return self.now


@dataclass
class Client:
    """Speaks for one Reader, or for nobody when `credential` is empty."""

    app: Quart
    credential: str = ""

    async def ask(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Response:
        """One request; `body` is sent as JSON unless it is bytes."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        sent = {"Authorization": f"Bearer {self.credential}"} if self.credential else {}
        # The test client normalises a target; a server hands on what it was sent, and the same unquoted.
        target = {"raw_path": path.partition("?")[0].encode(), "path": unquote(path.partition("?")[0])}
        return await self.app.test_client().open(  # type: ignore[call-arg]
            path, method=method, data=data, headers=sent | dict(headers or {}), scope_base=target
        )

    async def put(self, key: str, /, **fields: Any) -> dict[str, Any]:
        """PUT that must succeed; the row that comes back."""
        response = await self.ask("PUT", f"/bookmarks/{key}", fields)
        assert response.status_code == 200, await response.get_data()
        row: dict[str, Any] = json.loads(await response.get_data())
        return row

    async def refused(self, key: str, body: Any) -> str:
        """PUT that must be refused with 400; the error text."""
        response = await self.ask("PUT", f"/bookmarks/{key}", body)
        assert response.status_code == 400, await response.get_data()
        error: str = json.loads(await response.get_data())["error"]
        return error

    async def list(self) -> list[dict[str, Any]]:
        """The Reader's list."""
        response = await self.ask("GET", "/bookmarks")
        assert response.status_code == 200
        rows: list[dict[str, Any]] = json.loads(await response.get_data())
        return rows


@dataclass
class Web:
    """What a test of the API reaches for."""

    app: Quart
    context: WebContext
    database: Database
    clock: SetClock
    reader: Client
    other: Client
    nobody: Client
    reader_id: int
    other_id: int
    created: list[NewSeries] = field(default_factory=list)

    async def sql(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """One statement behind the application's back; its rows."""
        async with self.database.connection() as connection:
            cursor = await connection.execute(statement.encode(), values)
            return await cursor.fetchall() if cursor.description else []


@pytest.fixture
async def web(database: Database, token_key: Secret, owner_discord_id: str, tmp_path: Path) -> Web:
    """The application with two Readers who hold nothing."""
    clock = SetClock()
    created: list[NewSeries] = []
    context = WebContext(
        database=database,
        clock=clock,
        public_base_url="https://books.example",
        web_base_url="https://read.example",
        owner_discord_id=owner_discord_id,
        token_key=token_key,
        discord=None,
        allowed_origins=frozenset((ORIGIN,)),
        trusted_proxies=(ip_network("127.0.0.0/8"),),
        sites=SITES,
        userscripts={name: tmp_path / name for name in SCRIPTS},
        covers=CoverKeeper(database, CoverFiles(tmp_path)),
        series_created=created.append,
    )
    app = create_app(context)
    async with database.transaction() as connection:
        readers = [await add_reader(connection, name, token_key) for name in ("201", "202")]
    clients = [Client(app, derive_credential(token_key, reader.discord_id, 0).reveal()) for reader in readers]
    return Web(
        app, context, database, clock, clients[0], clients[1], Client(app), readers[0].id, readers[1].id, created
    )
