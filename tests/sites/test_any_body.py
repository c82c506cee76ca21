"""No body, however broken or huge, raises, hangs, or takes more than a moment."""

import gc
import re
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookmark_appliance.lanes.judgement import judge_page
from bookmark_appliance.lanes.outcome import Judgement
from bookmark_appliance.lanes.sites import SITES
from bookmark_appliance.page import MAX_BODY_BYTES, Page
from tests.sites.hostile import CHAPTER, SERIES, bodies
from tests.sites.test_cases import CASES, Case, load_cases

MOST_CPU_SECONDS = 0.150
SECONDS_TO_SCAN = 0.065
"""For `_scan` on the machine that the limit was measured on, at rest (two shared cores, Python 3.11.2 and 3.11.7 alike,
2026-11). It walks 4 MiB with one pattern, as the readers do: what else the machine does slows both alike."""
_SCANNED = '<a href="/comics/glass-tide-4be1c07a/chapter/1">c</a>' * (4 * 1024 * 1024 // 53)
_LINK = re.compile(r"""<a\s[^<>]*href="([^"<>]*chapter[^"<>]*)"[^<>]*>""")
RUNS = 20

_PIECES = st.sampled_from(
    [
        *"<>/='\"&;#-!?[]{},:\\\n \x00",
        *"""\
<a href=
<!--
-->
<script
</script>
<title>
<template>
</template>
<astro-island props='
"title":[0,"x"]
"status":[0,"completed"]
<meta property=og:image content=
<li>Status</li>
<h3>Status:</h3>
<div id="chapters-list">
<div id="wpd-threads">
<script type="application/ld+json">
"creativeWorkStatus":
<script id="initial-data">
{"queries":{"[\\"manga\\",\\"detail\\",\\"abc\\"]":
{"latestChapterUrl":"/title/abc-x/1-chapter-9"}
{"series_books":[
{"chapter_no":"9"}
null
_cf_chl_opt
/@waf/
&amp;
&#""".splitlines(),
        *[link.format(number) for link in CHAPTER.values() for number in ("9", "1e9", "٩", "9" * 30)],
    ]
)
_BODIES = st.one_of(
    st.binary(max_size=300),
    st.lists(_PIECES, max_size=40).map(lambda pieces: "".join(pieces).encode()),
    st.lists(st.one_of(_PIECES, st.text(max_size=5)), max_size=20).map(
        lambda pieces: "".join(pieces).encode("utf-8", "replace")
    ),
)


def judged(site: str, body: bytes, status: int = 200) -> Judgement:
    return judge_page(SITES[site], SERIES[site], Page(status, {}, body, SERIES[site]), now_ms=0)


@pytest.mark.parametrize("site", SITES)
@settings(deadline=None, max_examples=150)
@given(body=_BODIES, status=st.sampled_from([200, 200, 200, 404, 503]))
def test_no_body_raises(site: str, body: bytes, status: int) -> None:
    """SITE-006: it is judged, and what is read of it keeps the rules for numbers and covers."""
    reading = judged(site, body, status).reading
    assert reading.latest is None or 0 <= reading.latest.number <= 100_000
    assert reading.cover is None or reading.cover.lower().startswith("https://")


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(load_cases()), st.floats(0, 1), st.binary(max_size=4), st.booleans())
def test_no_damage_to_a_real_body_raises(case: Case, place: float, damage: bytes, cut: bool) -> None:
    """SITE-006: cut off or damaged anywhere."""
    body = (CASES / case.file).read_bytes()
    at = int(len(body) * place)
    damaged = body[:at] + damage + (b"" if cut else body[at + len(damage) :])
    judge_page(SITES[case.site], case.series_url, Page(200, {}, damaged, case.series_url), now_ms=0)


@pytest.mark.parametrize("series_url", ["", "x", "https://", "https://[", "https://asurascans.com/comics/%", "\ud800"])
@pytest.mark.parametrize("site", SITES)
def test_no_address_raises(site: str, series_url: str) -> None:
    """LANE-025."""
    judge_page(SITES[site], series_url, Page(200, {}, b"<a href='/a/chapter-1'>", series_url), now_ms=0)


@pytest.fixture
def heap_of_its_own() -> Iterator[None]:
    """Spare the garbage collector what the tests before this one have left in memory."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("heap_of_its_own")
@pytest.mark.parametrize("site", SITES)
def test_the_longest_bodies_take_a_moment(site: str) -> None:
    """SITE-006: 4 MiB of anything. What takes longer at first is judged again, since others use the machine too."""
    for name, body in bodies(site):
        assert MAX_BODY_BYTES // 2 < len(body) <= MAX_BODY_BYTES, name
        taken = [_cpu_seconds(partial(judged, site, body))]
        while min(taken) > MOST_CPU_SECONDS and len(taken) < RUNS:
            taken.append(_cpu_seconds_at_rest(partial(judged, site, body)))
        assert min(taken) <= MOST_CPU_SECONDS, f"{name}: {taken}"


def _cpu_seconds(work: Callable[[], object]) -> float:
    started = time.thread_time()
    work()
    return time.thread_time() - started


def _cpu_seconds_at_rest(work: Callable[[], object]) -> float:
    """CPU time of `work`, less the share by which the machine, as busy as it is just now, is slower than usual."""
    before, taken, after = map(_cpu_seconds, (_scan, work, _scan))
    return taken / max(1.0, (before + after) / 2 / SECONDS_TO_SCAN)


def _scan() -> object:
    return sum(1 for link in _LINK.finditer(_SCANNED) if link[1])


def test_a_hundred_thousand_links_are_all_read() -> None:
    """SITE-005: length alone does not make a page unreadable."""
    for site in sorted(SITES.keys() - {"comix"}):
        _, body = next(bodies(site))
        latest = judged(site, body).reading.latest
        assert latest is not None, site
        assert latest.number > 70_000, site
