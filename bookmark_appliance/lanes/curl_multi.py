"""libcurl's multi interface, waited for by Trio itself: no thread, and a cancelled transfer ends at once.

libcurl says which sockets it waits for, and until when. They are gathered in one selector, whose own descriptor Trio
waits for. https://curl.se/libcurl/c/libcurl-multi.html, section multi_socket, gives the rules.

curl_cffi has this for asyncio alone: its two C callbacks are given bodies of ours, for the whole process. That and the
calls below rest on what 0.17 exposes in `_wrapper`; the version is pinned and the tests run every seam.
"""

import math
import selectors
from typing import Any, Final

import trio
from curl_cffi._wrapper import ffi, lib  # type: ignore[import-not-found]
from curl_cffi.const import CurlMOpt

_POLL_REMOVE: Final = 4
_SOCKET_TIMEOUT: Final = -1


class CurlMulti:
    """One multi handle with the sockets and the timer that it asks for. Runs one transfer at a time."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._timer = math.inf
        self._handle = lib.curl_multi_init()
        self._self = ffi.new_handle(self)
        for option, value in (
            (CurlMOpt.SOCKETFUNCTION, lib.socket_function),
            (CurlMOpt.SOCKETDATA, self._self),
            (CurlMOpt.TIMERFUNCTION, lib.timer_function),
            (CurlMOpt.TIMERDATA, self._self),
        ):
            lib.curl_multi_setopt(self._handle, option, value)

    def watch(self, descriptor: int, what: int) -> None:
        """Called by libcurl. Its bits for reading and writing are the selector's."""
        if what == _POLL_REMOVE:
            self._selector.unregister(descriptor)
        elif descriptor in self._selector.get_map():
            self._selector.modify(descriptor, what)
        else:
            self._selector.register(descriptor, what)

    def set_timer(self, after_ms: int) -> None:
        """Called by libcurl; a negative time means that there is nothing to wait for."""
        self._timer = math.inf if after_ms < 0 else trio.current_time() + after_ms / 1000

    async def perform(self, easy: Any) -> int:
        """Run one transfer to its end and give curl's result code; 0 is success."""
        lib.curl_multi_add_handle(self._handle, easy)
        running, queued = ffi.new("int *"), ffi.new("int *")
        try:
            while True:
                with trio.CancelScope(deadline=self._timer):
                    await trio.lowlevel.wait_readable(self._selector.fileno())
                for descriptor, ready in self._ready():
                    lib.curl_multi_socket_action(self._handle, descriptor, ready, running)
                message = lib.curl_multi_info_read(self._handle, queued)
                if message != ffi.NULL:
                    return int(message.data.result)
        finally:
            lib.curl_multi_remove_handle(self._handle, easy)

    def _ready(self) -> list[tuple[int, int]]:
        ready = [(key.fd, events) for key, events in self._selector.select(0)]
        if trio.current_time() >= self._timer:
            self._timer = math.inf
            ready.append((_SOCKET_TIMEOUT, 0))
        return ready

    def close(self) -> None:
        lib.curl_multi_cleanup(self._handle)
        self._selector.close()


@ffi.def_extern(name="socket_function")  # type: ignore[untyped-decorator]
def _socket_function(easy: Any, descriptor: int, what: int, multi: Any, of_socket: Any) -> int:
    ffi.from_handle(multi).watch(descriptor, what)
    return 0


@ffi.def_extern(name="timer_function")  # type: ignore[untyped-decorator]
def _timer_function(handle: Any, after_ms: int, multi: Any) -> int:
    ffi.from_handle(multi).set_timer(after_ms)
    return 0
