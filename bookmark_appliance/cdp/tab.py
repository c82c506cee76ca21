"""One tab: what is done with it, and what can be seen in it.

Everything of ours runs in an isolated world of the page: it shares the document and its cookies, not the page's own
`fetch` or `String`, so that no page can lie by patching them. The Runtime domain stays disabled, since a page can tell
when it is enabled.
"""

import base64
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec
import trio

from bookmark_appliance.cdp.connection import Connection, Event
from bookmark_appliance.cdp.errors import CdpError, CommandFailed, PageFailed, TornDown
from bookmark_appliance.page import Page

PIECE_BYTES: Final = 512 * 1024
"""The most of a body that travels in one message; there it is a third longer, in base64."""

MOST_DIALOGS: Final = 20
"""A page that opens more of them never ends."""

_WORLD: Final = "reading"
_NO_BODY: Final = "net::ERR_HTTP_RESPONSE_CODE_FAILURE"
"""Chrome shows a page of its own for an error status without a body; the Site did answer."""

_KEEP: Final = """
    globalThis.piece = (start, length) => {
        let text = "";
        for (let at = start; at < Math.min(start + length, bytes.length); at += 8192)
            text += String.fromCharCode(...bytes.subarray(at, Math.min(at + 8192, start + length)));
        return btoa(text);
    };
    return { ...seen, size: bytes.length, piece: globalThis.piece(0, length) };
"""

_FETCH: Final = f"""async (most, length, address, cache) => {{
    const answer = await fetch(address, {{ cache }});
    const parts = [];
    let size = 0, truncated = false;
    for (const reader = answer.body?.getReader(); reader && !truncated;) {{
        const {{ done, value }} = await reader.read();
        if (done) break;
        truncated = value.length > most - size;
        parts.push(value.subarray(0, most - size));
        size += parts.at(-1).length;
        if (truncated) reader.cancel();
    }}
    const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
    const headers = Object.fromEntries(answer.headers);
    const seen = {{ status: answer.status, address: answer.url, headers, truncated }};
    {_KEEP}
}}"""

_DOCUMENT: Final = f"""async (most, length) => {{
    if (document.readyState === "loading")
        await new Promise((resolve) => document.addEventListener("DOMContentLoaded", resolve, {{ once: true }}));
    const empty = !document.head?.hasChildNodes() && !document.body?.hasChildNodes();
    const whole = new TextEncoder().encode(empty ? "" : document.documentElement.outerHTML);
    const bytes = whole.subarray(0, most);
    const seen = {{ status: 0, address: location.href, headers: {{}}, truncated: whole.length > most }};
    {_KEEP}
}}"""

_PIECE: Final = "(start, length) => globalThis.piece(start, length)"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TabRead:
    """What to read: `fetch` an address from inside the tab that shows `address`, or None for the document it shows.

    The address to fetch may be relative to the one that is shown in the end; "" is that one itself. Of the body at most
    `most_bytes` are taken. A `fresh` fetch comes from no cache.
    """

    address: str
    fetch: str | None
    most_bytes: int
    fresh: bool = True


class Rejected(CdpError):
    """The document `shown` could not fetch, or is no answer of the Site at all."""

    def __init__(self, reason: str, shown: str) -> None:
        super().__init__(reason)
        self.shown = shown


class _Response(msgspec.Struct):
    url: str
    status: int
    headers: dict[str, str]


class _ResponseReceived(msgspec.Struct, rename="camel"):
    loader_id: str
    type: str
    response: msgspec.Raw
    frame_id: str = ""


class _Dialog(msgspec.Struct):
    type: str = ""


class _Navigated(msgspec.Struct, rename="camel"):
    loader_id: str = ""
    error_text: str = ""


class _World(msgspec.Struct):
    id: int = msgspec.field(name="executionContextId")


class _Frame(msgspec.Struct):
    shown: str = msgspec.field(name="loaderId")


class _Tree(msgspec.Struct):
    frame: _Frame


class _FrameTree(msgspec.Struct):
    tree: _Tree = msgspec.field(name="frameTree")


class _Value(msgspec.Struct):
    value: msgspec.Raw = msgspec.Raw(b"null")
    description: str = ""


class _Thrown(msgspec.Struct):
    exception: _Value = msgspec.field(default_factory=_Value)


class _Called(msgspec.Struct):
    result: _Value
    thrown: _Thrown | None = msgspec.field(name="exceptionDetails", default=None)


class _Seen(msgspec.Struct):
    status: int
    address: str
    headers: dict[str, str]
    truncated: bool
    size: int
    piece: str


class Tab:
    """A page that is attached as `session`; `frame` is the id of its main frame."""

    def __init__(self, connection: Connection, session: str, frame: str) -> None:
        self._connection = connection
        self._session = session
        self._frame = frame
        self._responses: dict[str, _Response] = {}

    async def prepare(self) -> None:
        """Before the first page: answer its dialogs, watch its responses, let no policy of its own stop a fetch."""
        dialogs = self._connection.subscribe(self._session, "Page.javascriptDialogOpening")
        responses = self._connection.subscribe(self._session, "Network.responseReceived")
        self._connection.start_soon(lambda: self._answer_dialogs(dialogs))
        self._connection.start_soon(lambda: self._keep_responses(responses))
        for method, params in (
            ("Page.enable", {}),
            ("Page.setBypassCSP", {"enabled": True}),
            ("Network.enable", {"maxTotalBufferSize": 0, "maxResourceBufferSize": 0}),
            ("Network.setBypassServiceWorker", {"bypass": True}),
        ):
            await self._connection.tell(method, params, session=self._session)

    async def navigate(self, address: str) -> Page | None:
        """Go there; return once the page has begun, or with the whole answer where there is nothing to look at.

        Raises PageFailed with Chrome's word for what went wrong.
        """
        navigated = await self._command("Page.navigate", {"url": address}, _Navigated)
        response = self._responses.get(navigated.loader_id)
        if navigated.error_text == _NO_BODY and response is not None:
            return Page(response.status, _headers(response.headers), b"", response.url)
        if navigated.error_text:
            raise PageFailed(navigated.error_text)
        return None

    async def look(self, read: TabRead) -> Page:
        """What is there now. Raises TornDown, Rejected, and what a command raises."""
        world = await self._command("Page.createIsolatedWorld", {"frameId": self._frame, "worldName": _WORLD}, _World)
        # In this order: a call that succeeds in that world was answered by the document whose id was asked in between.
        shown = (await self._command("Page.getFrameTree", {}, _FrameTree)).tree.frame.shown
        if read.fetch is None:
            seen = await self._call(world, shown, _Seen, _DOCUMENT, read.most_bytes, PIECE_BYTES)
            response = self._responses.get(shown)
            if response is None:
                raise Rejected("the tab shows no answer of the Site", shown)
            seen.status, seen.headers = response.status, response.headers
        else:
            cache = "no-store" if read.fresh else "default"
            seen = await self._call(world, shown, _Seen, _FETCH, read.most_bytes, PIECE_BYTES, read.fetch, cache)
        body = bytearray(_decoded(seen.piece))
        while len(body) < seen.size <= read.most_bytes:
            body += _decoded(await self._call(world, shown, str, _PIECE, len(body), PIECE_BYTES))
        if len(body) != seen.size:
            raise CommandFailed("a body that is not as long as it says")
        return Page(seen.status, _headers(seen.headers), bytes(body), seen.address, seen.truncated)

    async def _call(self, world: _World, shown: str, answer: type[T], function: str, *arguments: str | int) -> T:
        called = await self._command(
            "Runtime.callFunctionOn",
            {
                "functionDeclaration": function,
                "executionContextId": world.id,
                "arguments": [{"value": argument} for argument in arguments],
                "awaitPromise": True,
                "returnByValue": True,
            },
            _Called,
        )
        if called.thrown is not None:
            raise Rejected(called.thrown.exception.description.partition("\n")[0], shown)
        try:
            return msgspec.json.decode(called.result.value, type=answer)
        except msgspec.MsgspecError as error:
            raise CommandFailed(f"an answer that we don't understand: {error}") from error

    async def _command(self, method: str, params: Mapping[str, Any], answer: type[T]) -> T:
        """A command that the page has to answer: it takes the time that the whole read has."""
        return await self._connection.command(method, params, answer, session=self._session, seconds=math.inf)

    async def _answer_dialogs(self, dialogs: trio.MemoryReceiveChannel[Event]) -> None:
        opened = 0
        async for event in dialogs:
            opened += 1
            if opened > MOST_DIALOGS:
                self._connection.fail_session(self._session, "the page opens dialogs without end")
                return
            leaves = msgspec.json.decode(event.params, type=_Dialog).type == "beforeunload"
            try:
                await self._connection.command("Page.handleJavaScriptDialog", {"accept": leaves}, session=self._session)
            except TornDown:
                continue  # closed by itself
            except CdpError:
                return  # whoever waits for the page hears of it

    async def _keep_responses(self, responses: trio.MemoryReceiveChannel[Event]) -> None:
        async for event in responses:
            received = msgspec.json.decode(event.params, type=_ResponseReceived)
            if (received.type, received.frame_id) == ("Document", self._frame):
                self._responses = {received.loader_id: msgspec.json.decode(received.response, type=_Response)}


def _decoded(piece: str) -> bytes:
    try:
        return base64.b64decode(piece, validate=True)
    except ValueError as error:
        raise CommandFailed("a body that is not in base64") from error


def _headers(raw: Mapping[str, str]) -> dict[str, str]:
    """Lower-case names; Chrome joins what was repeated with line ends, and the last value counts."""
    return {name.lower(): value.rpartition("\n")[2] for name, value in raw.items()}
