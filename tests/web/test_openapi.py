"""The description of the API against the API."""

import json
from dataclasses import replace
from typing import Any

from bookmark_appliance.bookmark_put import KINDS, STATUSES
from bookmark_appliance.covers.cover_files import relative_path
from bookmark_appliance.covers.cover_keeper import CoverKeeper
from bookmark_appliance.database import Database, Timeouts
from bookmark_appliance.postgres.trio_connection import TrioConnection
from bookmark_appliance.web.app import create_app
from bookmark_appliance.web.errors import is_page
from bookmark_appliance.web.put_body import MAX_CHARACTERS
from bookmark_appliance.web.wire import _WireBookmark
from tests.web.conftest import Client, Web
from tests.web.serving import serving


async def document(web: Web) -> dict[str, Any]:
    response = await web.nobody.ask("GET", "/openapi.json")
    assert (response.status_code, response.content_type) == (200, "application/json")
    described: dict[str, Any] = json.loads(await response.get_data())
    return described


def operations(described: dict[str, Any]) -> set[tuple[str, str]]:
    return {
        (method.upper(), path)
        for path, item in described["paths"].items()
        for method in item
        if method in ("get", "put", "post", "delete", "patch")
    }


async def test_every_route_is_described_and_no_other(web: Web) -> None:
    """API-022: the document and the running routes name the same methods and paths."""
    routes = {
        (method, rule.rule.replace("<rest:", "{").replace(">", "}"))
        for rule in web.app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
        if not is_page(rule.rule)
    }
    assert operations(await document(web)) == routes


async def test_every_status_is_described_and_can_be_had(web: Web) -> None:
    """API-002, API-004, API-014, API-022, API-032, API-038, API-049, COV-028: each documented answer is had."""
    unreachable = Database(
        "postgresql://127.0.0.1:1/none",
        pool_size=2,
        acquire_seconds=1,
        timeouts=Timeouts(),
        connection_class=TrioConnection,
    )
    covers = CoverKeeper(unreachable, web.context.covers.files)
    adrift = Client(create_app(replace(web.context, database=unreachable, covers=covers)), web.reader.credential)
    had: dict[tuple[str, str], set[str]] = {}

    async def ask(client: Client, method: str, path: str, key: str = "", body: Any = None, **headers: str) -> None:
        response = await client.ask(method, path.replace("{key}", key).replace("{address}", key), body, headers)
        had.setdefault((method, path), set()).add(str(response.status_code))

    for path in ("/healthz", "/openapi.json"):
        await ask(web.nobody, "GET", path)
    await ask(web.reader, "GET", "/bookmarks", **{"If-None-Match": "*"})
    for method, path in (("GET", "/bookmarks"), ("PUT", "/bookmarks/{key}"), ("DELETE", "/bookmarks/{key}")):
        await ask(web.reader, method, path, "asura:one", {})
        await ask(web.nobody, method, path, "asura:one", {})
        await ask(adrift, method, path, "asura:one", {})
    for method in ("PUT", "DELETE"):
        await ask(web.reader, method, "/bookmarks/{key}", "", {})
    await ask(web.reader, "PUT", "/bookmarks/{key}", "asura:one", b" " * 65_537)
    had["PUT", "/bookmarks/{key}"].add(await status_of_a_half_sent_body(web))
    cover = "ab" * 32
    web.context.covers.files.install(cover, b"cover")
    await web.sql("INSERT INTO covers VALUES (%s, %s, 'image/png')", cover, relative_path(cover))
    await ask(adrift, "GET", "/covers/{address}", cover)
    for headers in ({}, {"Range": "bytes=1-2"}, {"Range": "bytes=9-"}, {"If-None-Match": "*"}):
        await ask(web.nobody, "GET", "/covers/{address}", cover, **headers)
    await ask(web.nobody, "GET", "/covers/{address}", "none")
    await web.sql("ALTER TABLE bookmarks RENAME TO elsewhere")
    await web.sql("ALTER TABLE covers RENAME TO nowhere")
    await ask(web.nobody, "GET", "/covers/{address}", "cd" * 32)
    for method, path in (("GET", "/bookmarks"), ("PUT", "/bookmarks/{key}"), ("DELETE", "/bookmarks/{key}")):
        await ask(web.reader, method, path, "asura:two", {})
    described = await document(web)
    documented = {
        (method, path): set(described["paths"][path][method.lower()]["responses"])
        for method, path in operations(described)
    }
    assert had == documented


async def status_of_a_half_sent_body(web: Web) -> str:
    app = create_app(web.context)
    app.config["BODY_TIMEOUT"] = 0.05
    async with serving(app) as server:
        talk = await server.connect()
        head = f"Host: x\r\nAuthorization: Bearer {web.reader.credential}\r\nContent-Length: 9\r\n\r\n{{"
        status, _, _ = await talk.ask(f"PUT /bookmarks/asura:one HTTP/1.1\r\n{head}".encode(), "PUT")
    return str(status)


async def test_the_schemas_are_those_of_the_code(web: Web) -> None:
    """API-007, API-008, API-019, API-022: fields, and the words that two of them may hold."""
    schemas = (await document(web))["components"]["schemas"]
    fields = list(_WireBookmark.__struct_fields__)
    assert list(schemas["Bookmark"]["properties"]) == schemas["Bookmark"]["required"] == fields
    assert set(schemas["Bookmark"]["properties"]["status"]["enum"]) == STATUSES
    assert set(schemas["Bookmark"]["properties"]["kind"]["enum"]) == KINDS
    described = schemas["BookmarkPut"]["properties"]
    assert {name: field["maxLength"] for name, field in described.items() if "maxLength" in field} == MAX_CHARACTERS
    row = await web.reader.put("asura:one", **dict.fromkeys(schemas["BookmarkPut"]["properties"]))
    assert set(row) == set(fields)
    types = {"string": str, "number": (int, float), "integer": int, "boolean": bool}
    for name, value in row.items():
        described = schemas["Bookmark"]["properties"][name]["type"]
        allowed = described if isinstance(described, list) else [described]
        assert value is None if "null" in allowed and value is None else isinstance(value, types[allowed[0]]), name  # type: ignore[arg-type]
