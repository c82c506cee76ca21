"""From the wire to the judgement: what a Site does, fetched over TLS and judged."""

import pytest

from bookmark_appliance.chapter import Chapter
from bookmark_appliance.lanes.judgement import judge_page
from bookmark_appliance.lanes.outcome import Judgement, Outcome
from bookmark_appliance.lanes.page_errors import TransportFailure
from bookmark_appliance.lanes.sites import SITES
from tests.lanes.fetching import at_once, fetcher_for
from tests.simulated_sites import SimulatedSites, faults
from tests.simulated_sites.exchange import Exchange
from tests.simulated_sites.faults import Fault
from tests.simulated_sites.world import Series

pytest_plugins = ["tests.simulated_sites.fixtures"]


async def read(sites: SimulatedSites, series: Series) -> Judgement:
    """One read as a Lane makes it; a Site behind the browser is asked for the address that the browser would read."""
    site = SITES[series.site]
    address = (site.browser and site.browser.page_address(series.address)) or series.address
    page = await fetcher_for(sites).fetch(site, address, before_request=at_once)
    return judge_page(site, series.address, page, now_ms=0)


async def test_every_series_reads_as_it_was_published(simulated_sites: SimulatedSites) -> None:
    """LANE-028, SITE-041: number, Cover and completion of each simulated page, decoys notwithstanding."""
    for series in simulated_sites.world.series:
        judged = await read(simulated_sites, series)
        digits = max(series.chapters, key=float)
        assert judged.outcome is Outcome.SUCCESS, (series.address, judged)
        assert judged.reading.latest == Chapter(float(digits), f"Chapter {digits}")
        assert judged.reading.cover == series.cover_address.replace(" ", "%20")
        assert judged.reading.completed is series.completed


@pytest.mark.parametrize("site", sorted(SITES.keys() - {"demonic", "kagane"}))
async def test_a_page_without_chapters_is_no_chapter(simulated_sites: SimulatedSites, site: str) -> None:
    """LANE-024: the page as we know it with an empty list, and a page that we do not know."""
    series = simulated_sites.world.add(site, "7h2qk-an-empty-shelf", chapters=0)
    assert (await read(simulated_sites, series)).outcome is Outcome.NO_CHAPTER
    simulated_sites.world.misbehave(series.address, faults.redesign)
    judged = await read(simulated_sites, series)
    assert (judged.outcome, judged.reading.landmarks) == (Outcome.NO_CHAPTER, False)


async def test_a_series_of_notices_is_no_chapter(simulated_sites: SimulatedSites) -> None:
    """LANE-024: kagane's well-formed answer without a chapter number."""
    series = simulated_sites.world.add("kagane", "019d0005-1111-7005-8222-333344445505", chapters=0)
    assert (await read(simulated_sites, series)).outcome is Outcome.NO_CHAPTER


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        pytest.param(faults.challenge, Outcome.REFUSED, id="challenge"),
        pytest.param(faults.challenge_in_body, Outcome.REFUSED, id="challenge in a body"),
        pytest.param(faults.status(404, cf_mitigated="challenge"), Outcome.REFUSED, id="header on a 404"),
        pytest.param(faults.status(403), Outcome.REFUSED, id="403"),
        pytest.param(faults.status(429, retry_after="60"), Outcome.REFUSED, id="429"),
        pytest.param(faults.status(503, retry_after="60"), Outcome.REFUSED, id="503 with Retry-After"),
        pytest.param(faults.status(404), Outcome.NOT_FOUND, id="404"),
        pytest.param(faults.status(410), Outcome.NOT_FOUND, id="410"),
        pytest.param(faults.soft_404, Outcome.NOT_FOUND, id="soft 404"),
        pytest.param(faults.status(500), Outcome.ERRORS, id="500"),
        pytest.param(faults.status(503), Outcome.ERRORS, id="503 alone"),
        pytest.param(faults.status(302), Outcome.ERRORS, id="redirect to nowhere"),
    ],
)
async def test_an_answer_comes_to_its_outcome(simulated_sites: SimulatedSites, fault: Fault, outcome: Outcome) -> None:
    """LANE-022, LANE-026, LANE-027: demonic, whose module knows a missing page when it sees one."""
    series = simulated_sites.world.find("demonic", "Widow%2527s-Clockwork")
    simulated_sites.world.misbehave(series.address, fault)
    judged = await read(simulated_sites, series)
    assert judged.outcome is outcome
    assert judged.reading.latest is None


async def test_retry_after_lengthens_the_refusal(simulated_sites: SimulatedSites) -> None:
    """LANE-022: what the header says reaches the judgement."""
    series = simulated_sites.world.series[0]
    simulated_sites.world.misbehave(series.address, faults.status(429, retry_after="7200"))
    assert (await read(simulated_sites, series)).retry_after_ms == 7_200_000


async def test_html_where_kagane_answers_json_is_a_refusal(simulated_sites: SimulatedSites) -> None:
    """LANE-022: and a body that is neither is an error (LANE-027)."""
    series = simulated_sites.world.add("kagane", "019d0005-1111-7005-8222-333344445505")
    simulated_sites.world.misbehave(series.address, faults.redesign)
    assert (await read(simulated_sites, series)).outcome is Outcome.REFUSED
    simulated_sites.world.misbehave(series.address, faults.status(200, "neither"))
    assert (await read(simulated_sites, series)).outcome is Outcome.ERRORS


async def test_the_number_of_a_long_page_is_read_from_what_fits(simulated_sites: SimulatedSites) -> None:
    """SITE-040: a truncated page is read as far as it goes."""

    async def long_page(exchange: Exchange) -> None:
        await exchange.answer(200, exchange.body + b"<p>" + b"and so on " * 500_000)

    series = simulated_sites.world.series[0]
    simulated_sites.world.misbehave(series.address, long_page)
    assert (await read(simulated_sites, series)).outcome is Outcome.SUCCESS


@pytest.mark.parametrize("fault", [faults.reset, faults.redirect_to("https://elsewhere.example/")])
async def test_no_answer_is_no_page(simulated_sites: SimulatedSites, fault: Fault) -> None:
    """LANE-027: a broken connection and a redirect elsewhere are failures before any judgement."""
    series = simulated_sites.world.series[0]
    simulated_sites.world.misbehave(series.address, fault)
    with pytest.raises(TransportFailure):
        await read(simulated_sites, series)
