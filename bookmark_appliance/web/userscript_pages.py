"""The Readers' own copies of the userscripts, and a new credential for them (USR-001 to USR-007, TOK-010)."""

import logging
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import trio
from quart import Quart, request
from quart.wrappers import Response
from quart_trio.wrappers import TrioResponse

from bookmark_appliance.build_info import build_info
from bookmark_appliance.credentials import credential_hash, derive_credential
from bookmark_appliance.script_assembly import MANGA, NOVEL, SCRIPTS, assemble
from bookmark_appliance.secret import Secret
from bookmark_appliance.settings import Settings
from bookmark_appliance.store.bookmarks import find_list_version
from bookmark_appliance.store.readers import find_by_discord_id, rotate_credential
from bookmark_appliance.web.context import WebContext
from bookmark_appliance.web.errors import ApiError
from bookmark_appliance.web.pages import see_other
from bookmark_appliance.web.sessions import Gate, SignedIn

_CREDENTIAL: Final = "__API_TOKEN__"

_VERSION: Final = re.compile(r"^[ \t]*//[ \t]*@version\b[^\r\n]*", re.MULTILINE)

_logger = logging.getLogger(__name__)


def userscript_files(settings: Settings) -> Mapping[str, Path]:
    """The operator's own file for each script that has one (CFG-005)."""
    files = {MANGA: settings.userscript_path, NOVEL: settings.novel_userscript_path}
    return {name: path for name, path in files.items() if path is not None}


class UserscriptPages:
    """The handlers. The built-in scripts are put together here: a broken part ends the start, not a request."""

    def __init__(self, context: WebContext, gate: Gate) -> None:
        self._context = context
        self._gate = gate
        self._built_in = {name: stamped(assemble(name), build_info().built_at / 1_000) for name in SCRIPTS}

    def register(self, app: Quart) -> None:
        """Give `app` the routes."""
        app.add_url_rule("/u/<credential>/<name>", "update", self.update, methods=["GET"])
        for name in SCRIPTS:
            install = self._gate.page(self.install)
            app.add_url_rule(f"/install/{name}", f"install {name}", install, methods=["GET"], defaults={"name": name})
        app.add_url_rule("/rotate-token", "rotate_token", self._gate.fragment(self.rotate), methods=["POST"])

    async def update(self, credential: str, name: str) -> Response:
        """What a script's engine looks for: it sends no header, so the address says whose copy it is. Never 401."""
        if name not in SCRIPTS:
            raise ApiError(404, "not found")
        async with self._context.database.connection() as connection:
            known = await find_list_version(connection, credential_hash(credential))
        if known is None:
            raise ApiError(404, "not found")
        return await self._script(name, Secret(credential), "no-cache")

    async def install(self, reader: SignedIn, name: str) -> Response:
        """The script with the credential of who is signed in; `download=1` saves it as a file."""
        async with self._context.database.connection() as connection:
            row = await find_by_discord_id(connection, reader.discord_id)
        if row is None:
            raise ApiError(404, "not found")
        credential = derive_credential(self._context.token_key, row.discord_id, row.epoch)
        response = await self._script(name, credential, "private, no-cache")
        if request.args.get("download") == "1":
            response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
        return response

    async def _script(self, name: str, credential: Secret, cache: str) -> Response:
        """The copy of the Reader with this credential. Raises ApiError 404 where an own file can't be read."""
        context = self._context
        source = await self._source(name)
        if _CREDENTIAL not in source:
            _logger.warning("%s has no place for a credential and is served as it is", name)
        script = personal_script(source, credential, context.public_base_url, context.web_base_url)
        response = TrioResponse(script, content_type="text/javascript; charset=utf-8")
        response.headers["Cache-Control"] = cache
        return response

    async def _source(self, name: str) -> str:
        own = self._context.userscripts.get(name)
        if own is None:
            return self._built_in[name]
        path = trio.Path(own)
        try:
            return stamped((await path.read_bytes()).decode(), (await path.stat()).st_mtime)
        except (OSError, UnicodeDecodeError) as error:
            _logger.warning("%s can't be served: %s", name, error)
            raise ApiError(404, "this script is not here") from None

    async def rotate(self, reader: SignedIn) -> Response:
        """A new credential: every installed copy stops at once (TOK-010). The page says what that means."""
        async with self._context.database.transaction() as connection:
            await rotate_credential(connection, reader.discord_id, self._context.token_key)
        return see_other("/?rotated#scripts")


def stamped(source: str, time: float) -> str:
    """`source` with the UTC of `time` (unix s) for its version: a later one outranks what is installed (USR-004)."""
    version = f"// @version      {datetime.fromtimestamp(time, UTC):%Y.%m.%d.%H%M}"
    return _VERSION.sub(version, source)


def personal_script(source: str, credential: Secret, api_base: str, web_base: str) -> str:
    """`source` with what a Reader's copy knows filled in (USR-002)."""
    return (
        source.replace(_CREDENTIAL, credential.reveal())
        .replace("__API_BASE__", api_base)
        .replace("__WEB_BASE__", web_base)
    )
