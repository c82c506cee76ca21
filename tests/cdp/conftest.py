"""A Chromium for all tests of a process, and the pages that each of them shows it."""

import socket
import ssl
from collections.abc import AsyncIterator, Iterator

import pytest
import trio

from bookmark_appliance.cdp.browser import Browser
from tests.cdp.chromium import CHROMIUM, Chromium
from tests.cdp.pages import Pages, pages_context, serve_pages


@pytest.fixture(scope="session")
def pages_socket() -> Iterator[socket.socket]:
    """Where the pages of every test are served: a Chromium is told once."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
        yield listening


@pytest.fixture(scope="session")
def certificate() -> ssl.SSLContext:
    """Made once."""
    return pages_context()


@pytest.fixture
async def pages(pages_socket: socket.socket, certificate: ssl.SSLContext) -> AsyncIterator[Pages]:
    """The pages of one test."""
    async with serve_pages(pages_socket, certificate) as served:
        yield served


def running_chromium(pages_socket: socket.socket) -> Iterator[Chromium]:
    """A Chromium whose hosts are all at that socket; ended with the fixture that gives it."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    with Chromium(pages_socket.getsockname()[1]) as chromium:
        yield chromium


# One for the tests that leave it alive, and one for each that kills it.
shared_chromium = pytest.fixture(scope="session", name="shared_chromium")(running_chromium)
own_chromium = pytest.fixture(name="own_chromium")(running_chromium)


@pytest.fixture
async def chromium(shared_chromium: Chromium) -> AsyncIterator[Chromium]:
    """The shared one; whoever leaves a tab in it has a defect."""
    yield shared_chromium
    await no_tab_is_left(shared_chromium)


async def no_tab_is_left(chromium: Chromium) -> None:
    """Wait for the tabs that are on their way out."""
    with trio.move_on_after(5):
        while await trio.to_thread.run_sync(chromium.tabs):  # noqa: ASYNC110, another process
            await trio.sleep(0.02)
    assert await trio.to_thread.run_sync(chromium.tabs) == []


@pytest.fixture
def browser(chromium: Chromium) -> Browser:
    """A client of the shared Chromium that looks often and has as much time as the real one."""
    return Browser(chromium.endpoint, look_seconds=0.2)


@pytest.fixture
def impatient(chromium: Chromium) -> Browser:
    """One for what never comes: time enough for a few looks."""
    return Browser(chromium.endpoint, hold_seconds=1.5, look_seconds=0.2)
