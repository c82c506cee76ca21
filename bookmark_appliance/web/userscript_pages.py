"""The Reader's own copies of the userscripts, and a new credential for them (USR-006, TOK-010)."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import trio
from quart import Quart, request
from quart.wrappers import Response
from quart_trio.wrappers import TrioResponse

from bookmark_appliance.credentials import derive_credential
from bookmark_appliance.resources import resource_folder
from bookmark_appliance.secret import Secret
from bookmark_appliance.settings import Settings
from bookmark_appliance.store.readers import find_by_discord_id, rotate_credential
from bookmark_appliance.web.context import WebContext
from bookmark_appliance.web.errors import ApiError
from bookmark_appliance.web.pages import see_other
from bookmark_appliance.web.sessions import Gate, SignedIn

MANGA: Final = "manga-bookmark.user.js"
NOVEL: Final = "novel-bookmark.user.js"
SCRIPTS: Final = (MANGA, NOVEL)

_logger = logging.getLogger(__name__)


def userscript_files(settings: Settings) -> Mapping[str, Path]:
    """Where each script lies: the operator's own file where one is set, else the built-in one."""
    built_in = resource_folder("userscripts")
    return {
        MANGA: settings.userscript_path or built_in / MANGA,
        NOVEL: settings.novel_userscript_path or built_in / NOVEL,
    }


class UserscriptPages:
    """The handlers."""

    def __init__(self, context: WebContext, gate: Gate) -> None:
        self._context = context
        self._gate = gate

    def register(self, app: Quart) -> None:
        """Give `app` the routes."""
        for name in SCRIPTS:
            install = self._gate.page(self.install)
            app.add_url_rule(f"/install/{name}", f"install {name}", install, methods=["GET"], defaults={"name": name})
        app.add_url_rule("/rotate-token", "rotate_token", self._gate.fragment(self.rotate), methods=["POST"])

    async def install(self, reader: SignedIn, name: str) -> Response:
        """The script with the Reader's credential in it. Raises ApiError 404 while there is none to give."""
        async with self._context.database.connection() as connection:
            row = await find_by_discord_id(connection, reader.discord_id)
        try:
            source = await trio.Path(self._context.userscripts[name]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            _logger.warning("%s can't be served: %s", name, error)
            raise ApiError(404, "this script is not here yet") from None
        if row is None:
            raise ApiError(404, "not found")
        credential = derive_credential(self._context.token_key, row.discord_id, row.epoch)
        script = personal_script(source, credential, self._context.public_base_url, self._context.web_base_url)
        response = TrioResponse(script, content_type="text/javascript; charset=utf-8")
        response.headers["Cache-Control"] = "private, no-cache"
        if request.args.get("download") == "1":
            response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
        return response

    async def rotate(self, reader: SignedIn) -> Response:
        """A new credential: every installed copy stops at once (TOK-010). The page says what that means."""
        async with self._context.database.transaction() as connection:
            await rotate_credential(connection, reader.discord_id, self._context.token_key)
        return see_other("/?rotated#scripts")


def personal_script(source: str, credential: Secret, api_base: str, web_base: str) -> str:
    """`source` with what a Reader's copy knows filled in (USR-002)."""
    return (
        source.replace("__API_TOKEN__", credential.reveal())
        .replace("__API_BASE__", api_base)
        .replace("__WEB_BASE__", web_base)
    )
