"""One tab: what is done with it, and what can be seen in it.

Everything of ours runs in an isolated world of the page: it shares the document and its cookies, not the page's own
`fetch` or `String`, so that no page can lie by patching them. The Runtime domain stays disabled, since a page can tell
when it is enabled.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from bookmark_appliance.cdp.connection import Connection
from bookmark_appliance.cdp.errors import CdpError, CommandFailed, PageFailed, TornDown
from bookmark_appliance.page import Page

PIECE_BYTES: Final = 512 * 1024
"""The most of a body that travels in one message; there it is a third longer, in base64."""

MOST_DIALOGS: Final = 20
"""A page that opens more of them never ends."""

SLACK_BYTES: Final = 1024 * 1024
"""What a document may load beyond what is read of it before it is stopped: what has arrived need not be parsed yet."""

_NO_BODY: Final = "net::ERR_HTTP_RESPONSE_CODE_FAILURE"
"""Chrome shows a page of its own for an error status without a body; the Site did answer."""

_LOOK: Final = """async (most, length, address, cache) => {
    let bytes, seen;
    try {
        if (address === null) {
            if (document.readyState === "loading")
                await new Promise((done) => {
                    document.addEventListener("readystatechange", done, { once: true });
                    setTimeout(done, 2000);
                });
            if (document.readyState === "loading") return { loading: true };
            const empty = !document.head?.hasChildNodes() && !document.body?.hasChildNodes();
            const whole = new TextEncoder().encode(empty ? "" : document.documentElement.outerHTML);
            bytes = whole.subarray(0, most);
            seen = { address: location.href, truncated: whole.length > most };
        } else {
            const answer = await fetch(address, { cache });
            const parts = [];
            let size = 0, truncated = false;
            for (const reader = answer.body?.getReader(); reader && !truncated;) {
                const { done, value } = await reader.read();
                if (done) break;
                truncated = value.length > most - size;
                parts.push(value.subarray(0, most - size));
                size += parts.at(-1).length;
                if (truncated) reader.cancel();
            }
            bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
            const headers = Object.fromEntries(answer.headers);
            seen = { status: answer.status, address: answer.url, headers, truncated };
        }
    } catch (error) {
        return { rejected: String(error) };
    }
    globalThis.piece = (start) => {
        let text = "";
        for (let at = start; at < Math.min(start + length, bytes.length); at += 8192)
            text += String.fromCharCode(...bytes.subarray(at, Math.min(at + 8192, start + length)));
        return btoa(text);
    };
    return { ...seen, size: bytes.length, piece: globalThis.piece(0) };
}"""

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
    received: int = 0
    """Bytes of its body so far, as we count them."""


class _Told(msgspec.Struct, rename="camel"):
    """What an event tells, as far as it matters here; a document's request has its loader's id."""

    type: str = ""
    request_id: str = ""
    frame_id: str = ""
    response: msgspec.Raw = msgspec.Raw(b"")
    data_length: int = 0
    error_text: str = ""
    canceled: bool = False


class _Navigated(msgspec.Struct, rename="camel"):
    loader_id: str = ""
    error_text: str = ""


class _Seen(msgspec.Struct):
    loading: bool = False
    rejected: str = ""
    status: int = 0
    address: str = ""
    headers: dict[str, str] = {}
    truncated: bool = False
    size: int = 0
    piece: bytes = b""
    """Base64 on the way."""


class Tab:
    """A page that is attached as `session`, for one read; `frame` is the id of its main frame."""

    def __init__(self, connection: Connection, session: str, frame: str, read: TabRead) -> None:
        self._connection = connection
        self._session = session
        self._frame = frame
        self._read = read
        self._most_loaded = read.most_bytes + SLACK_BYTES
        self._loading = True
        self._dialogs = 0
        self._responses: dict[str, _Response] = {}
        """At most the newest document's, by its loader."""

    async def prepare(self) -> None:
        """Before the first page: answer its dialogs, watch its responses, let no policy of its own stop a fetch."""
        self._connection.hear(self._session, self._hear)
        for method, params in (
            ("Page.enable", {}),
            ("Page.setBypassCSP", {"enabled": True}),
            ("Network.enable", {"maxTotalBufferSize": 0, "maxResourceBufferSize": 0}),
            ("Network.setBypassServiceWorker", {"bypass": True}),
        ):
            await self._connection.tell(method, params, session=self._session)

    async def navigate(self) -> Page | None:
        """Go there; return once the page has begun, or with the whole answer where there is nothing to look at.

        Raises PageFailed with Chrome's word for what went wrong.
        """
        navigated = await self._command("Page.navigate", {"url": self._read.address}, _Navigated)
        response = self._responses.get(navigated.loader_id)
        if navigated.error_text == _NO_BODY and response is not None:
            return Page(response.status, _headers(response.headers), b"", response.url)
        if navigated.error_text:
            raise PageFailed(navigated.error_text)
        return None

    async def look(self) -> Page:
        """What is there now. Raises TornDown, Rejected, and what a command raises."""
        read, in_frame = self._read, {"frameId": self._frame, "worldName": "reading"}
        world = await self._command("Page.createIsolatedWorld", in_frame, int, "executionContextId")
        # In this order: a call that succeeds in that world was answered by the document whose id was asked in between.
        shown = await self._command("Page.getFrameTree", {}, str, "frameTree", "frame", "loaderId")
        cache = "no-store" if read.fresh else "default"
        seen = await self._call(world, _Seen, _LOOK, read.most_bytes, PIECE_BYTES, read.fetch, cache)
        if seen.loading and self._loading:
            raise TornDown("the document is still loading")
        if seen.rejected or seen.loading:
            raise Rejected(seen.rejected or "the document broke off", shown)
        if read.fetch is None:
            response = self._responses.get(shown)
            if response is None:
                raise Rejected("the tab shows no answer of the Site", shown)
            seen.status, seen.headers = response.status, response.headers
            seen.truncated |= response.received > self._most_loaded
        body = bytearray(seen.piece)
        while len(body) < seen.size <= read.most_bytes:
            body += await self._call(world, bytes, "(start) => globalThis.piece(start)", len(body))
        if len(body) != seen.size:
            raise CommandFailed("a body that is not as long as it says")
        return Page(seen.status, _headers(seen.headers), bytes(body), seen.address, seen.truncated)

    async def _call(self, world: int, answer: type[T], function: str, *arguments: str | int | None) -> T:
        params = {
            "functionDeclaration": function,
            "executionContextId": world,
            "arguments": [{"value": argument} for argument in arguments],
            "awaitPromise": True,
            "returnByValue": True,
        }
        return await self._command("Runtime.callFunctionOn", params, answer, "result", "value")

    async def _command(self, method: str, params: Mapping[str, Any], answer: type[T], *at: str) -> T:
        return await self._connection.command(method, params, answer, at=at, session=self._session)

    def _hear(self, method: str, params: msgspec.Raw) -> None:
        match method:
            case "Network.responseReceived" | "Network.dataReceived" | "Network.loadingFailed":
                self._follow(msgspec.json.decode(params, type=_Told))
            case "Page.frameStartedLoading" | "Page.frameStoppedLoading":
                # Chrome says that a load failed only if it fails after the commit; that it stopped it says in any case.
                if msgspec.json.decode(params, type=_Told).frame_id == self._frame:
                    self._loading = method == "Page.frameStartedLoading"
            case "Page.javascriptDialogOpening":
                self._answer(msgspec.json.decode(params, type=_Told))
            case "Inspector.targetCrashed":
                self._lose("the page crashed")
            case "Inspector.detached":
                self._lose("the page was closed")

    def _follow(self, told: _Told) -> None:
        """Keep the response of the document; stop it where it is too long, and give up one that can't be whole."""
        if (told.type, told.frame_id) == ("Document", self._frame):
            self._responses = {told.request_id: msgspec.json.decode(told.response, type=_Response)}
        elif response := self._responses.get(told.request_id):
            response.received += told.data_length
            if response.received - told.data_length <= self._most_loaded < response.received:
                self._connection.tell_soon("Page.stopLoading", {}, session=self._session)
            if told.error_text not in ("", _NO_BODY) and not told.canceled and self._read.fetch is None:
                self._lose(told.error_text)

    def _answer(self, dialog: _Told) -> None:
        self._dialogs += 1
        if self._dialogs > MOST_DIALOGS:
            self._lose("the page opens dialogs without end")
        else:
            leave = {"accept": dialog.type == "beforeunload"}
            self._connection.tell_soon("Page.handleJavaScriptDialog", leave, session=self._session)

    def _lose(self, reason: str) -> None:
        self._connection.fail(PageFailed(reason), self._session)


def _headers(raw: Mapping[str, str]) -> dict[str, str]:
    """Lower-case names; Chrome joins what was repeated with line ends, and the last value counts."""
    return {name.lower(): value.rpartition("\n")[2] for name, value in raw.items()}
