"""A page of a Site with the panel in it, alone: the test gives its state and hears what is pressed.

It runs as the whole script does, in an isolated world, so that the page's own scripts and the panel share nothing but
the document.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from playwright.sync_api import Browser, BrowserContext, CDPSession, Locator, Page, Route

from bookmark_appliance.chapter import HIGHEST_CHAPTER
from bookmark_appliance.lanes.sites import SITES
from tests.seed_library import drawn_cover
from tests.serving_process import ROOT

PARTS = ROOT / "userscripts" / "parts"
HERE = "https://asurascans.com/comics/brass-garden-4be1c07a"
WEB = "https://read.example"
API = "https://books.example"
PATIENCE = 10_000
"""Milliseconds, on a machine that is busy with other tests."""

PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}
DESK: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}

PLAIN = """<!doctype html><html lang=en><meta name=viewport content="width=device-width,initial-scale=1">
<title>A page</title><main><h1>A page</h1><div style="height:4000px">Long</div></main>"""

_AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
_SITES = {
    "manga": [{"site": site, "host": SITES[site].host} for site in ("asura", "comix", "demonic", "kagane")],
    "novel": [{"site": site, "host": SITES[site].host} for site in ("lightnovelworld", "novelfull")],
}
_MOUNT = """
  globalThis.pressed = [];
  globalThis.panel = createPanel({
    library: %(library)s, webBase: %(web)s, sites: %(sites)s,
    place: {
      load: () => JSON.parse(localStorage.getItem("place")),
      save: (place) => localStorage.setItem("place", JSON.stringify(place)),
    },
    actions: new Proxy({}, {get: (_, name) => async (...given) => { pressed.push([name, ...given]); }}),
  });
"""

Row = dict[str, Any]
State = dict[str, Any]


def row(title: str, read: float = 12, latest: float | None = None, site: str = "asura", **other: Any) -> Row:
    """A Bookmark as it comes over the wire."""
    slug = title.lower().replace(" ", "-")
    series = f"https://{SITES[site].host}/{slug}"
    return {
        "key": f"{site}:{slug}",
        "site": site,
        "series_id": slug,
        "title": title,
        "series_url": series,
        "cover": "",
        "last_chapter": f"Chapter {read:g}",
        "last_chapter_num": read,
        "last_chapter_url": f"{series}/chapter/{read:g}",
        "favorite": False,
        "latest_chapter": "",
        "latest_chapter_num": latest,
        "updated_at": 1,
        "status": "reading",
        "kind": "manga",
        "finished": False,
        **other,
    }


def many_rows(number: int) -> list[Row]:
    return [
        row(f"Series number {i}", read=i % 90, latest=i % 91, cover=f"{API}/covers/{i:064x}") for i in range(number)
    ]


def state(rows: Sequence[Row] = (), page: Any = None, online: bool = True, **sync: Any) -> State:
    """What the logic hands over; `sync` is what differs from all being well."""
    well = {"state": "saved", "waiting": 0, "oldestAt": 0, "unstored": False, "givenUp": False, "notice": ""}
    return {"page": page, "rows": list(rows), "sync": {**well, **sync}, "online": online}


def at(bookmark: Row, chapter: float | None = None, kind: str = "chapter") -> dict[str, Any]:
    """The page of a Series, or of one of its chapters; None is a number that could not be read."""
    return {
        "type": kind,
        "site": bookmark["site"],
        "seriesId": bookmark["series_id"],
        "key": bookmark["key"],
        "title": bookmark["title"],
        "seriesUrl": bookmark["series_url"],
        "chapterLabel": "" if chapter is None else f"Chapter {chapter:g}",
        "chapterNum": chapter,
        "chapterUrl": f"{bookmark['series_url']}/chapter/x" if kind == "chapter" else "",
    }


class IsolatedWorld:
    """A JavaScript world of its own in the page's document."""

    def __init__(self, page: Page) -> None:
        self.cdp: CDPSession = page.context.new_cdp_session(page)
        frame = self.cdp.send("Page.getFrameTree")["frameTree"]["frame"]["id"]
        created = self.cdp.send("Page.createIsolatedWorld", {"frameId": frame, "worldName": "userscripts"})
        self._id = created["executionContextId"]

    def run(self, expression: str) -> Any:
        """The value of an expression, or of the promise that it is."""
        asked = {"expression": expression, "contextId": self._id, "returnByValue": True, "awaitPromise": True}
        answer = self.cdp.send("Runtime.evaluate", asked)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")


@dataclass
class Stage:
    """A page with the panel in it."""

    page: Page
    world: IsolatedWorld
    asked: list[str]
    """Every cover that was asked for."""

    @property
    def shadow(self) -> Locator:
        """The panel's host: what is looked for in it is found in its shadow root."""
        return self.page.locator("[data-bookmark-panel]")

    def find(self, selector: str) -> Locator:
        return self.shadow.locator(selector)

    def button(self, name: str, within: str = "#panel") -> Locator:
        return self.find(within).get_by_role("button", name=name, exact=True)

    def render(self, wanted: State) -> None:
        self.world.run(f"panel.render({json.dumps(wanted)})")

    def open(self, wanted: State) -> None:
        """Show this, open."""
        self.render(wanted)
        self.world.run("panel.open()")

    def pressed(self) -> list[list[Any]]:
        """The actions that were asked for since, but that it was opened."""
        found: list[list[Any]] = self.world.run("pressed.splice(0).filter(([name]) => name !== 'opened')")
        return found

    def focused(self) -> str:
        """The words on what has the focus in the panel, or the name of its tag."""
        found: str = self.page.evaluate(
            """() => {
              const focused = document.querySelector("[data-bookmark-panel]").shadowRoot.activeElement;
              return focused && (focused.getAttribute("aria-label") || focused.textContent || focused.localName);
            }"""
        )
        return found

    def touch(self, kind: str, *points: tuple[float, float]) -> None:
        """`touchStart`, `touchMove` or `touchEnd` with the fingers at these places; a frame later it was heard."""
        self.world.cdp.send(
            "Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y} for x, y in points]}
        )
        self.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def set_stage(
    browser: Browser, html: str = PLAIN, library: str = "manga", headers: Any = None, **options: Any
) -> Stage:
    """A page of asura's with this content, in a context of its own, and the panel in it."""
    context = browser.new_context(**{"color_scheme": "dark", "reduced_motion": "reduce", **DESK, **options})
    context.set_default_timeout(PATIENCE)
    asked: list[str] = []
    serve_pages(context, html, asked, headers or {})
    page = context.new_page()
    page.goto(HERE)
    return Stage(page, mount(page, library), asked)


def mount(page: Page, library: str = "manga", before: str = "") -> IsolatedWorld:
    """Put the panel into a page that is there; `before` runs ahead of it in its world."""
    world = IsolatedWorld(page)
    world.run(before or "0")
    given = {"library": library, "web": WEB, "sites": _SITES[library]}
    mounted = _MOUNT % {name: json.dumps(value) for name, value in given.items()}
    figures = f"const HIGHEST_CHAPTER = {HIGHEST_CHAPTER};"
    css = f"const PANEL_CSS = {json.dumps((PARTS / 'panel.css').read_text())};"
    world.run(f"(() => {{ 'use strict';\n{figures}{css}\n{(PARTS / 'panel.js').read_text()}\n{mounted} }})()")
    return world


def serve_pages(context: BrowserContext, html: str, asked: list[str], headers: dict[str, str]) -> None:
    """asura's pages are `html`; covers are drawings, but for those whose address ends with `broken`."""

    drawing = drawn_cover("a cover").body

    def cover(route: Route) -> None:
        asked.append(route.request.url)
        if "broken" in route.request.url:
            route.fulfill(status=404)
        else:
            route.fulfill(body=drawing, content_type="image/jpeg")

    context.route("**/*", lambda route: route.fulfill(body="elsewhere", content_type="text/html"))
    context.route(f"{HERE}*", lambda route: route.fulfill(body=html, content_type="text/html", headers=headers))
    context.route("**/covers/**", cover)


def count_work(cdp: CDPSession) -> None:
    """Let `work_ms` count the time that a page's own thread is at work: other tests share the machine."""
    cdp.send("Performance.enable", {"timeDomain": "threadTicks"})


def work_ms(cdp: CDPSession) -> float:
    """Since the page began."""
    metrics = {one["name"]: one["value"] for one in cdp.send("Performance.getMetrics")["metrics"]}
    return 1000 * float(metrics["TaskDuration"])


def findings(page: Page) -> list[str]:
    """What axe-core finds serious or critical in the panel as it is."""
    page.evaluate(_AXE)
    found: list[str] = page.evaluate(
        """async () => {
          const host = document.querySelector("[data-bookmark-panel]");
          const {violations} = await axe.run(host, {resultTypes: ["violations"]});
          return violations.filter(({impact}) => impact === "serious" || impact === "critical")
            .flatMap(({id, nodes}) => nodes.map(({target, failureSummary}) => `${id} ${target} ${failureSummary}`));
        }"""
    )
    return found
