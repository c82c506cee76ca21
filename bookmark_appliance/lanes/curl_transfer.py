"""One browser-like HTTPS request at a time through curl_cffi: limits, trust and routing, no rule of the domain.

`CAINFO_BLOB`, `CONNECT_TO` and `PREREQFUNCTION` want pointers that curl_cffi's own `setopt` does not pass (TRAPS 34),
so they are set through its binding; the tests run all three.
"""

import io
import re
import ssl
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from curl_cffi._wrapper import ffi, lib  # type: ignore[import-not-found]
from curl_cffi.const import CurlECode, CurlInfo, CurlOpt
from curl_cffi.curl import CURL_WRITEFUNC_ERROR, DEFAULT_CACERT, Curl, CurlError

from bookmark_appliance.lanes.curl_multi import CurlMulti
from bookmark_appliance.lanes.page import FetcherUnavailable, Page, TransportFailure

MAX_HEADER_BYTES: Final = 64 * 1024
"""Of one answer, interim answers and trailers included; curl's own limit is 300 kB."""

HTTPS_PORT: Final = 443

_ENCODINGS: Final = "gzip, deflate, br, zstd"
"""As Chrome sends it. Set again, because the profile alone only asks for them and does not decompress."""

_GO_ON, _ABORT = 0, 1
"""What a CURLOPT_PREREQFUNCTION answers."""

_BEFORE_TARGET = re.compile(r"^(?:[A-Za-z][A-Za-z0-9+.-]*:)?(?://[^/?#]*)?")
_UNPRINTABLE = re.compile(rb"[^\x21-\x7e]")


class CurlClient:
    """How every request is made."""

    def __init__(self, profile: str, ca_file: Path | None, connect_to: Mapping[str, tuple[str, int]]) -> None:
        """Trust the machine's own anchors and those of `ca_file` (PEM); tried once, without a connection.

        `connect_to` maps a host to the (address, port) to connect to; the name that is verified stays the host's.
        Raises FetcherUnavailable.
        """
        self._profile = profile
        self._trust = _trust_anchors(ca_file)
        # struct curl_blob { void *data; size_t len; unsigned flags; }, which curl_cffi does not declare. With flags 0
        # curl reads our bytes in place.
        data = int(ffi.cast("uintptr_t", ffi.from_buffer(self._trust)))
        self._trust_blob = ffi.new("uintptr_t[3]", [data, len(self._trust), 0])
        connections = ffi.NULL
        for host, (address, port) in connect_to.items():
            to = f"[{address}]" if ":" in address else address
            connections = lib.curl_slist_append(connections, f"{host}:{HTTPS_PORT}:{to}:{port}".encode())
        self._connections = ffi.gc(connections, lib.curl_slist_free_all)
        try:
            with self.open("localhost", {}, 0):
                pass
        except CurlError as error:
            raise FetcherUnavailable(str(error)) from error

    @contextmanager
    def open(
        self, host: str, headers: Mapping[str, str], body_limit: int, addresses: Collection[str] = ()
    ) -> Iterator["Transfer"]:
        """Requests to `https://<host>`, one after another, that share their cookies; `headers` go out with each.

        With `addresses` nothing is looked up, and nothing is asked of any other; without, the name is looked up anew.
        """
        transfer = Transfer(body_limit, addresses)
        try:
            if transfer.easy.impersonate(self._profile) != 0:
                raise CurlError(f"browser profile {self._profile!r} is unknown to this curl_cffi")
            for option, value in (
                (CurlOpt.URL, f"https://{host}:{HTTPS_PORT}/"),
                (CurlOpt.RESOLVE, [f"{host}:{HTTPS_PORT}:{','.join(addresses)}"] if addresses else []),
                (CurlOpt.PROTOCOLS_STR, "https"),
                (CurlOpt.FOLLOWLOCATION, 0),
                (CurlOpt.FORBID_REUSE, 1),  # a kept connection may die while a hop waits for its turn
                (CurlOpt.PROXY, ""),  # unset, curl takes the environment's
                (CurlOpt.COOKIEFILE, ""),  # cookies in memory
                (CurlOpt.NOSIGNAL, 1),
                (CurlOpt.ACCEPT_ENCODING, _ENCODINGS),
                (CurlOpt.HTTPHEADER, [_header_line(name, value) for name, value in headers.items()]),
            ):
                transfer.easy.setopt(option, value)
            transfer.set_pointer(CurlOpt.CAINFO_BLOB, ffi.cast("void *", self._trust_blob))
            transfer.set_pointer(CurlOpt.CONNECT_TO, self._connections)
            yield transfer
        finally:
            transfer.close()


class Transfer:
    """See `CurlClient.open`. Not for two tasks at once."""

    def __init__(self, body_limit: int, addresses: Collection[str]) -> None:
        self.easy = Curl()
        self._multi = CurlMulti()
        self._addresses = {ip_address(address) for address in addresses}
        self._body_limit = body_limit
        self._intake = _Intake(body_limit)
        self._asked = False
        self._before_request = ffi.callback("int(void *, char *, char *, int, int)", self._allow_one, error=_ABORT)
        self.easy.setopt(CurlOpt.HEADERFUNCTION, lambda line: self._intake.take_header(line))
        self.easy.setopt(CurlOpt.WRITEFUNCTION, lambda chunk: self._intake.take_body(chunk))
        self.set_pointer(CurlOpt.PREREQFUNCTION, self._before_request)

    def set_pointer(self, option: CurlOpt, pointer: Any) -> None:
        """Set an option to a pointer, which the caller keeps alive. Raises CurlError."""
        if code := lib._curl_easy_setopt(self.easy._curl, option, pointer):
            raise CurlError(f"curl refused {option.name} ({code})")

    def _allow_one(self, _: Any, peer: Any, *__: Any) -> int:
        if self._addresses and ip_address(ffi.string(peer).decode()) not in self._addresses:
            return _ABORT
        # Up to five times curl asks again by itself, at once: after REFUSED_STREAM for one.
        allowed, self._asked = not self._asked, True
        return _GO_ON if allowed else _ABORT

    async def get(self, address: str) -> Page:
        """Ask once for path and query of `address`, byte for byte; what can't stand in a request line is encoded.

        A body longer than the limit is cut off there and the rest never read. Raises TransportFailure.
        """
        self._intake = intake = _Intake(self._body_limit)
        self._asked = False
        # Not as part of URL: there curl turns %c3 into %C3 and squeezes dot segments.
        self.easy.setopt(CurlOpt.REQUEST_TARGET, _wire_target(address))
        code = await self._multi.perform(self.easy._curl)
        if intake.headers_too_long:
            raise TransportFailure("header block too long")
        if code != 0 and not intake.truncated:
            raise TransportFailure(_reason(code))
        status = self.easy.getinfo(CurlInfo.RESPONSE_CODE)
        assert isinstance(status, int)
        return Page(status, intake.headers, intake.body.getvalue(), address, intake.truncated)

    def close(self) -> None:
        """Close the connection, free what libcurl holds, and let go of what has come.

        The callbacks make a circle of this object, which only the collector breaks: a body must not wait for it.
        """
        self._multi.close()
        self.easy.close()
        self._intake = _Intake(0)


class _Intake:
    """What has come of one answer. A callback that does not take all it was given ends the transfer."""

    def __init__(self, body_limit: int) -> None:
        self.headers: dict[str, str] = {}
        self.headers_too_long = False
        self.truncated = False
        self._header_bytes = 0
        self.body = io.BytesIO()
        self._room = body_limit

    def take_header(self, line: bytes) -> int:
        self._header_bytes += len(line)
        if self._header_bytes > MAX_HEADER_BYTES:
            self.headers_too_long = True
            return CURL_WRITEFUNC_ERROR
        name, colon, value = line.decode("latin-1").partition(":")
        if line.startswith(b"HTTP/"):
            self.headers.clear()  # the next answer after an interim one
        elif colon:
            self.headers[name.strip().lower()] = value.strip()
        return len(line)

    def take_body(self, chunk: bytes) -> int:
        self.body.write(chunk[: self._room])
        if len(chunk) > self._room:
            self.truncated = True
            return CURL_WRITEFUNC_ERROR
        self._room -= len(chunk)
        return len(chunk)


def _trust_anchors(ca_file: Path | None) -> bytes:
    try:
        anchors = Path(DEFAULT_CACERT).read_bytes()
        if ca_file is not None:
            ssl.create_default_context(cafile=ca_file)  # refuses a file without anchors; curl would not
            anchors += b"\n" + ca_file.read_bytes()
    except OSError as error:
        raise FetcherUnavailable(f"trust anchors: {error}") from error
    return anchors


def _reason(code: int) -> str:
    if code == CurlECode.ABORTED_BY_CALLBACK:
        return "not answered at the first try"
    # By the number alone: the message of a transfer itself quotes addresses.
    return str(ffi.string(lib.curl_easy_strerror(code)).decode())


def _header_line(name: str, value: str) -> bytes:
    # curl sends a line break as it is. Anything else goes back as it came: an ETag may hold any byte.
    if re.search(r"[\r\n\0]", name + value):
        raise ValueError(f"header {name!r} holds a line break")
    return f"{name}: {value}".encode("latin-1")


def _wire_target(address: str) -> bytes:
    target = _BEFORE_TARGET.sub("", address).partition("#")[0]
    rooted = target if target.startswith("/") else f"/{target}"
    return _UNPRINTABLE.sub(lambda found: b"%%%02X" % ord(found[0]), rooted.encode())
