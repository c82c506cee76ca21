"""Checks against the real Sites, for a person who asks for them: nothing here runs by itself (SITE-043)."""

import os
import re

import pytest

from bookmark_appliance.lanes.address_gate import fetchable
from bookmark_appliance.lanes.page_fetcher import PageFetcher
from bookmark_appliance.lanes.sites import SITES

LNW_SERIES_URL = os.environ.get("SMOKE_LNW_SERIES_URL", "")


@pytest.mark.skipif(not LNW_SERIES_URL, reason="SMOKE_LNW_SERIES_URL names no live page")
async def test_the_comments_of_a_live_page_come_once_and_last() -> None:
    """SITE-043: the comment element occurs exactly once and after the last chapter anchor."""

    async def at_once() -> None:
        pass

    page = await PageFetcher(fetchable).fetch(SITES["lightnovelworld"], LNW_SERIES_URL, before_request=at_once)
    starts = [found.start() for found in re.finditer(r"""<[a-z]+\s[^>]*id=["']wpd-threads["']""", page.text)]
    last_anchor = max(found.start() for found in re.finditer(r"""href=["'][^"']*-chapter-[0-9]""", page.text))
    assert len(starts) == 1, starts
    assert starts[0] > last_anchor
