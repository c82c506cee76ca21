"""Which addresses may be fetched, which way, and what the registry holds."""

import pytest

from bookmark_appliance.clock import HOUR_MS, SECOND_MS
from bookmark_appliance.lanes.address_gate import fetchable
from bookmark_appliance.lanes.routing import Route, browser_address, image_needs_browser, route
from bookmark_appliance.lanes.sites import SITES

ID = "019fe11a-84c3-7fc3-a84b-88787374b617"


def test_the_registry_holds_six_sites_in_name_order() -> None:
    """SITE-002, SITE-004, LANE-001."""
    assert {name: site.host for name, site in SITES.items()} == {
        "asura": "asurascans.com",
        "comix": "comix.to",
        "demonic": "demonicscans.org",
        "kagane": "kagane.to",
        "lightnovelworld": "lightnovelworld.net",
        "novelfull": "novelfull.com",
    }
    assert list(SITES) == sorted(SITES)
    assert {site.name for site in SITES.values()} == set(SITES)
    assert {(site.rest_ms, site.gap_ms) for site in SITES.values()} == {(HOUR_MS, 10 * SECOND_MS)}


@pytest.mark.parametrize(
    "path", ["", "/", "/comics/x-4be1c07a", "?a=b", "#x", ":443/x", "/a%25252Db", "/café", "/a@b:80//evil.example"]
)
def test_the_sites_own_addresses_pass_the_gate(path: str) -> None:
    """SITE-001."""
    assert fetchable(SITES["asura"], f"https://asurascans.com{path}")


@pytest.mark.parametrize(
    "address",
    [
        "",
        "http://asurascans.com/comics/x",
        "file:///etc/passwd",
        "HTTPS://asurascans.com/",
        "https:/asurascans.com/",
        "https:asurascans.com/",
        "//asurascans.com/",
        "asurascans.com/",
        "https://",
        "https:///asurascans.com/",
        "https://evil.example/x",
        "https://evil.example/asurascans.com",
        "https://asurascans.com.evil.example/",
        "https://asurascans.com./",
        "https://www.asurascans.com/",
        "https://asurascans.comics/",
        "https://AsuraScans.com/",
        "https://asurascans.com:80/",
        "https://asurascans.com:8443/",
        "https://asurascans.com:4430/",
        "https://asurascans.com:/",
        "https://asurascans.com:443@evil.example/",
        "https://user@asurascans.com/",
        "https://asurascans.com@evil.example/",
        "https://asurascans.com\\@evil.example/",
        "https://asurascans.com\\evil",
        "https://asurascans.com/a\\b",
        " https://asurascans.com/",
        "https://asurascans.com/ ",
        "https://asurascans.com/a b",
        "https://asurascans.com/a\nb",
        "https://asurascans.com/a\r\nHost: evil.example",
        "https://asurascans.com\t/",
        "https://asurascans.com/\x00",
        "https://asurascans.com/\x7f",
        "https://asurascans.com/\x85",
        "https://asurascans.com/\u2028",
        "https://asurascans.com/\ud800",
        "https://аsurascans.com/",  # noqa: RUF001 - a Cyrillic letter is the point
        "https://asurascans。com/",
        "https://asurascans.com%2eevil.example/",
        "https://xn--surascans-7fg.com/",
    ],
)
def test_every_other_address_is_refused(address: str) -> None:
    """SITE-001: no request leaves for it."""
    assert not fetchable(SITES["asura"], address)


@pytest.mark.parametrize(
    ("site", "with_browser", "without"),
    [
        ("asura", Route.PLAIN, Route.PLAIN),
        ("demonic", Route.PLAIN, Route.PLAIN),
        ("lightnovelworld", Route.PLAIN, Route.PLAIN),
        ("kagane", Route.BROWSER, None),
        ("comix", Route.BROWSER, None),
        ("novelfull", Route.BROWSER, Route.PLAIN),
        ("unknown", None, None),
    ],
)
def test_each_site_has_its_route(site: str, with_browser: Route | None, without: Route | None) -> None:
    """SITE-003, BRO-018, BRO-021: a browser that is down is as good as none."""
    assert route(SITES.get(site), browser_usable=True) is with_browser
    assert route(SITES.get(site), browser_usable=False) is without


@pytest.mark.parametrize(
    ("site", "series_url", "page_address"),
    [
        ("kagane", f"https://kagane.to/series/{ID}", f"https://kagane.to/api/v2/series/{ID}"),
        ("kagane", f"https://kagane.to/series/{ID}/", f"https://kagane.to/api/v2/series/{ID}"),
        ("kagane", "https://kagane.to/search", None),
        ("kagane", f"https://evil.example/series/{ID}", None),
        ("kagane", f"http://kagane.to/series/{ID}", None),
        ("kagane", f"https://kagane.to/series/{ID}0", None),
        ("kagane", f"https://kagane.to/series/{ID[:-1]}g", None),
        ("kagane", f"https://kagane.to/series/{ID}/reader/x", None),
        ("kagane", f"https://kagane.to/series/{ID}\n", None),
        ("kagane", "garbage", None),
        ("comix", "https://comix.to/title/n8we-x", "https://comix.to/title/n8we-x"),
        ("comix", "https://comix.to/title/n8we-x/?a=b#c", "https://comix.to/title/n8we-x/"),
        ("comix", "https://comix.to/title/n8we%2527x?a=/b", "https://comix.to/title/n8we%2527x"),
        ("comix", "http://comix.to/title/n8we-x", None),
        ("comix", "https://comix.to.evil.example/title/n8we-x", None),
        ("comix", "https://comix.to/search", None),
        ("comix", "https://comix.to/title/", None),
        ("comix", "https://comix.to/title/n8we-x/11139891-chapter-80", None),
        ("comix", "garbage", None),
        ("novelfull", "https://novelfull.com/reverend-insanity.html", "https://novelfull.com/reverend-insanity.html"),
        ("novelfull", "http://novelfull.com/reverend-insanity.html", None),
        ("novelfull", "https://novelfull.net/reverend-insanity.html", None),
        ("novelfull", "https://novelfull.com/genre/Xianxia", None),
        ("novelfull", "https://novelfull.com/reverend-insanity.htmlx", None),
        ("asura", "https://asurascans.com/comics/x", None),
    ],
)
def test_what_the_browser_is_asked_to_read(site: str, series_url: str, page_address: str | None) -> None:
    """BRO-001, BRO-003, BRO-005, BRO-007."""
    assert browser_address(SITES[site], series_url) == page_address


@pytest.mark.parametrize(
    ("address", "through_browser"),
    [
        (f"https://kagane.to/api/v2/image/{ID}/compressed", True),
        ("https://static.comix.to/039d/i/1/34/6a6742bf15736@280.jpg", True),
        ("https://static.comix.to/a_b/C-d.webp", True),
        (f"http://kagane.to/api/v2/image/{ID}/compressed", False),
        (f"https://kagane.to/api/v2/image/{ID}/compressed?x=1", False),
        (f"https://kagane.to/api/v2/image/{ID[:-1]}/compressed", False),
        (f"https://kagane.to/api/v2/image/{ID}/original", False),
        ("http://static.comix.to/x.jpg", False),
        ("https://static.comix.to.evil.example/x.jpg", False),
        ("https://evil.example/static.comix.to/x.jpg", False),
        ("https://static.comix.to/x.jpg?a=b", False),
        ("https://static.comix.to/x.svg", False),
        ("https://static.comix.to/../x.jpg", False),
        ("https://static.comix.to/a/..%2fx.jpg", False),
        ("https://static.comix.to/x.jpg\n", False),
        ("https://static.comix.to", False),
        ("https://static.comix.to/", False),
        ("https://gg.asuracomic.net/covers/x.webp", False),
    ],
)
def test_which_images_lie_behind_a_gate(address: str, through_browser: bool) -> None:
    """BRO-013, BRO-014, COV-010."""
    assert image_needs_browser(SITES.values(), address) is through_browser
