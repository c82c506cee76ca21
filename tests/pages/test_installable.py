"""The pages as an app: the manifest, its icons, and the one honest page without a connection."""

from playwright.sync_api import Page, expect

from tests.pages.appliance import Appliance
from tests.pages.browser import PHONE, Browsing
from tests.pages.test_looks import assert_sound
from tests.seed_library import Row

_SIZE = """address => new Promise((done, fail) => { const image = new Image(); image.src = address;
    image.onload = () => done([image.naturalWidth, image.naturalHeight]); image.onerror = () => fail(address); })"""


def controlled(page: Page) -> None:
    """Wait until the service worker is there for the next page."""
    page.evaluate("navigator.serviceWorker.ready.then(() => null)")


def test_manifest_and_icons(appliance: Appliance, browsing: Browsing) -> None:
    """UI-016: Chromium finds nothing wrong with the manifest, and every icon is as large as it says."""
    page = browsing.page(appliance, appliance.reader(), **PHONE)
    session = page.context.new_cdp_session(page)
    found = session.send("Page.getAppManifest")
    assert found["errors"] == []
    assert found["url"] == f"{appliance.address}/manifest.webmanifest"
    found = session.send("Page.getInstallabilityErrors")
    assert {error["errorId"] for error in found["installabilityErrors"]} <= {"in-incognito"}  # as each context here is
    manifest = page.evaluate("fetch('/manifest.webmanifest').then(answer => answer.json())")
    assert (manifest["display"], manifest["start_url"], manifest["scope"]) == ("standalone", "/", "/")
    assert any(icon.get("purpose") == "maskable" for icon in manifest["icons"])
    for icon in manifest["icons"]:
        width, height = page.evaluate(_SIZE, icon["src"])
        assert icon["sizes"] in ("any", f"{width}x{height}")
        assert width
    for link in ("icon", "apple-touch-icon"):
        assert page.evaluate(_SIZE, page.locator(f"link[rel={link}]").get_attribute("href"))


def test_without_a_connection(appliance: Appliance, browsing: Browsing) -> None:
    """UI-011, UI-016: a page of its own says so, and nothing of the Library is kept on the device."""
    browsing.expects("ERR_INTERNET_DISCONNECTED")
    page = browsing.page(appliance, appliance.reader([Row("asura", "one", "Brass Garden", "manga", 1, 1)]), **PHONE)
    controlled(page)
    page.reload()
    expect(page.locator("#list .card")).to_have_count(1)
    page.context.set_offline(True)
    page.reload()
    expect(page.locator("h1")).to_have_text("You are offline.")
    assert page.title() == "Offline — BookmarkManager"
    assert "Brass Garden" not in page.content()
    assert page.evaluate("getComputedStyle(document.querySelector('main')).maxWidth") == "760px", "it has its style"
    kept = """caches.keys().then(names => Promise.all(names.map(name => caches.open(name).then(cache => cache.keys()))))
        .then(all => all.flat().map(request => new URL(request.url).pathname).sort())"""
    assert page.evaluate(kept) == [
        *("/static/fonts/instrument-serif-400-latin.woff2", "/static/offline.html", "/static/style.css")
    ]
    assert page.evaluate("document.fonts.ready.then(() => document.fonts.check('30px \"Instrument Serif\"'))")
    assert_sound(page, "offline")
    page.get_by_role("link", name="Try again").click()
    expect(page.locator("h1")).to_have_text("You are offline.")
    page.context.set_offline(False)
    page.get_by_role("link", name="Try again").click()
    expect(page.locator("#list .card")).to_have_count(1)
