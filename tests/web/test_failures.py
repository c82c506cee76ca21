"""What a client hears when something of ours fails."""

import json
import logging
from dataclasses import replace

import pytest
from quart.wrappers import Response

from bookmark_appliance.database import Database, Timeouts
from bookmark_appliance.postgres.trio_connection import TrioConnection
from bookmark_appliance.web.app import create_app
from tests.web.conftest import Client, Web

CALLS = [("GET", "/bookmarks"), ("PUT", "/bookmarks/asura:one"), ("DELETE", "/bookmarks/asura:one")]


async def error_of(response: Response) -> str:
    answer = json.loads(await response.get_data())
    assert list(answer) == ["error"]
    assert response.headers["X-Request-Id"]
    text: str = answer["error"]
    return text


@pytest.mark.parametrize(("method", "path"), [*CALLS, ("PUT", "/bookmarks/"), ("GET", "/bookmarks/asura:one")])
async def test_a_failing_lookup_is_never_a_401(web: Web, method: str, path: str) -> None:
    """API-004, API-022: a 401 would stop every installed script; 503 says when to come back."""
    await web.sql("ALTER TABLE readers RENAME TO elsewhere")
    response = await web.reader.ask(method, path, {})
    assert response.status_code == 503
    assert int(response.headers["Retry-After"]) > 0
    assert await error_of(response) == "the database is not available, try again"


@pytest.mark.parametrize(("method", "path"), CALLS)
async def test_an_unreachable_database_is_503(web: Web, method: str, path: str) -> None:
    """API-004: nothing listens there; no word of where that is."""
    nowhere = Database(
        "postgresql://someone:secret@127.0.0.1:1/none",
        pool_size=2,
        acquire_seconds=1,
        timeouts=Timeouts(),
        connection_class=TrioConnection,
    )
    client = Client(create_app(replace(web.context, database=nowhere)), web.reader.credential)
    response = await client.ask(method, path, {})
    assert response.status_code == 503
    assert "secret" not in await error_of(response)


@pytest.mark.parametrize(("method", "path"), CALLS)
async def test_a_failing_store_is_500_with_an_id_that_the_log_knows(
    web: Web, caplog: pytest.LogCaptureFixture, method: str, path: str
) -> None:
    """API-038: the detail is in the log alone, the path isn't; a credential that is nobody's hears 401 all the same."""
    await web.sql("ALTER TABLE bookmarks RENAME TO elsewhere")
    with caplog.at_level(logging.ERROR):
        response = await web.reader.ask(method, path, {})
    assert response.status_code == 500
    assert await error_of(response) == "internal error"
    assert response.headers["X-Request-Id"] in caplog.text
    assert 'relation "bookmarks" does not exist' in caplog.text
    assert f"{method} {'/bookmarks/<rest:key>' if 'asura' in path else path} (" in caplog.text
    assert "asura:one" not in caplog.messages[-1]
    assert web.reader.credential not in caplog.text
    assert (await Client(web.app, "wrong").ask(method, path, {})).status_code == 401
