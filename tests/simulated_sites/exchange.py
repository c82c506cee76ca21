"""One request and the means to answer it, well or badly."""

import gzip
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import h11
import trio


@dataclass(frozen=True)
class Request:
    """What arrived, and when by `trio.current_time()`. `target` is as it stood on the wire."""

    host: str
    target: str
    headers: Mapping[str, str]
    at: float

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]


@dataclass
class Exchange:
    """A request with its connection. After anything but `answer` the connection is at its end."""

    request: Request
    stream: trio.SSLStream[trio.SocketStream]
    protocol: h11.Connection
    body: bytes = b""
    """What the Site would have answered with, had it behaved."""
    headers: list[tuple[str, str]] = field(default_factory=list)

    async def answer(self, status: int, body: bytes | str = b"", **headers: str) -> None:
        """A whole answer, compressed as the client accepts it; `retry_after="60"` is the header Retry-After."""
        data = body.encode() if isinstance(body, str) else body
        sent = {"content-type": "text/html; charset=utf-8", **dict(self.headers)}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        accepted = self.request.headers.get("accept-encoding", "")
        if sent["content-type"].startswith(("text/", "application/json")) and data:
            if "zstd" in accepted and self.request.host == "lightnovelworld.net":
                sent["content-encoding"], data = "zstd", stored_as_zstd(data)
            elif "gzip" in accepted:
                sent["content-encoding"], data = "gzip", gzip.compress(data, 1)
        if status == 304:
            data = b""
        else:
            sent["content-length"] = str(len(data))
        await self._send(h11.Response(status_code=status, headers=list(sent.items())))
        if data:
            await self._send(h11.Data(data=data))
        await self._send(h11.EndOfMessage())

    async def begin(self, *headers: str) -> None:
        """The head of a 200 answer that the caller goes on with by `stream.send_all`; ends with the connection."""
        kind = dict(self.headers).get("content-type", "text/html; charset=utf-8")
        lines = ["HTTP/1.1 200 OK", f"Content-Type: {kind}", "Connection: close", *headers]
        await self.stream.send_all("\r\n".join([*lines, "", ""]).encode())

    async def _send(self, event: Any) -> None:
        data = self.protocol.send(event)
        if data:
            await self.stream.send_all(data)


def stored_as_zstd(data: bytes) -> bytes:
    """`data` as a zstd frame of raw blocks (RFC 8878): Python 3.11 brings no zstd and size is no matter."""
    frame = bytearray(b"\x28\xb5\x2f\xfd\x00\x38")  # no content size; a window of 128 KiB, which is the largest block
    blocks = [data[start : start + 131_072] for start in range(0, len(data), 131_072)] or [b""]
    for block in blocks:
        frame += (len(block) << 3 | (block is blocks[-1])).to_bytes(3, "little") + block
    return bytes(frame)
