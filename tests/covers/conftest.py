"""What shows that nothing was connected to."""

from typing import Any

import pytest

from bookmark_appliance.lanes.curl_multi import CurlMulti


@pytest.fixture
def transfers(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Grows by one when curl is set to work: without that it opens no socket, of whatever kind."""
    begun: list[Any] = []
    perform = CurlMulti.perform

    async def spied(multi: CurlMulti, easy: Any) -> int:
        begun.append(easy)
        return await perform(multi, easy)

    monkeypatch.setattr(CurlMulti, "perform", spied)
    return begun
