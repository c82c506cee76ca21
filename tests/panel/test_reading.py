"""The whole script as a Reader lives with it: simulated Sites, a real Chromium, a running `serve`."""

from collections.abc import Callable
from functools import partial
from typing import Any

from playwright.sync_api import BrowserContext, expect

from tests.pages.appliance import Reader
from tests.panel.device import NOVEL, Device, credential_of, served_script, stored
from tests.simulated_sites.world import Series

Publish = Callable[..., Series]
Install = Callable[..., Device]

PROBE = """
(() => {
  const heard = [];
  globalThis.heard = heard;
  const listen = (object, name) => {
    const original = object[name];
    object[name] = function (...given) {
      for (const each of given) heard.push(typeof each === "string" ? each : String(each?.url ?? JSON.stringify(each)));
      return original.apply(this, given);
    };
  };
  for (const [object, names] of [
    [window, ["fetch", "postMessage", "setTimeout"]], [XMLHttpRequest.prototype, ["open", "setRequestHeader", "send"]],
    [Headers.prototype, ["set", "append"]], [Storage.prototype, ["setItem"]], [JSON, ["parse"]],
    [String.prototype, ["startsWith", "replace", "concat"]], [Array.prototype, ["push", "join", "map"]],
    [Element.prototype, ["setAttribute", "append", "attachShadow"]], [history, ["pushState", "replaceState"]],
  ]) for (const name of names) if (!(object === Array.prototype && name === "push")) listen(object, name);
  globalThis.found = () => {
    const roots = [document, ...[...document.querySelectorAll("*")].map((one) => one.shadowRoot).filter(Boolean)];
    const texts = roots.map((root) => root.documentElement?.outerHTML ?? root.innerHTML);
    const sheets = roots.flatMap((root) => [...root.adoptedStyleSheets])
      .flatMap((sheet) => [...sheet.cssRules].map((rule) => rule.cssText));
    const names = Object.getOwnPropertyNames(window).map((name) => {
      try { return ["function", "string"].includes(typeof window[name]) ? String(window[name]) : ""; }
      catch { return ""; }
    });
    const loaded = performance.getEntries().map((entry) => entry.name);
    return [...heard, ...texts, ...sheets, ...names, ...loaded, document.cookie,
      ...Object.values(localStorage), ...Object.values(sessionStorage)].join("\\n");
  };
})();
"""


def probe(context: BrowserContext) -> None:
    """Let each page's own scripts listen in from the beginning."""
    context.add_init_script(PROBE)


def shows(device: Device, chapter: str) -> bool:
    """Whether the panel has the Series of this page at that chapter."""
    return device.find(".page .chapters").first.inner_text().startswith(chapter)


def progress(reader: Reader, series: Series) -> Any:
    return stored(reader, series).get("last_chapter_num")


def test_from_a_fresh_profile_to_the_library_page(device: Install, publish: Publish, reader: Reader) -> None:
    """USR-008, USR-015, USR-016, USR-018, USR-022, TOK-012: first bookmark, reading on, back, offline for two chapters,
    archived there; all of it arrives once, a second device and the library page show it, and the page learns nothing.
    """
    series = publish()
    phone = device()
    probe(phone.context)
    phone.goes_to(series.address)
    phone.opens()
    phone.button("+ Bookmark this").click()
    expect(phone.button("Favourite")).to_be_visible()
    phone.waits_until(lambda: progress(reader, series) == 0)

    phone.goes_to(f"https://asurascans.com{series.chapter_target('12.5')}")
    phone.reads_until(lambda: progress(reader, series) == 12.5)
    phone.follows("3")
    before = len(phone.puts)
    phone.reads_until(lambda: len(phone.puts) > before)
    assert phone.puts[-1]["last_chapter_num"] == 3
    assert progress(reader, series) == 12.5

    phone.context.set_offline(True)
    phone.opens()
    for chapter in ("14", "15"):
        phone.follows(chapter)
        phone.reads_until(partial(shows, phone, f"Chapter {chapter}"))
    phone.button("Archive").click()
    phone.button("Archive", ".page .form").click()
    expect(phone.button("Restore")).to_be_visible()
    expect(phone.find(".sync")).to_have_text("Offline · 1 waiting, just now")
    before = len(phone.puts)
    phone.context.set_offline(False)
    expect(phone.find(".sync")).to_have_text("All saved")
    assert [(put["last_chapter_num"], put["status"]) for put in phone.puts[before:]] == [(15, "archived")]
    row = stored(reader, series)
    assert (row["last_chapter_num"], row["status"]) == (15, "archived")

    desk = device()
    probe(desk.context)
    desk.goes_to(series.address)
    desk.opens()
    expect(desk.find(".page .chapters").first).to_contain_text("Chapter 15")
    expect(desk.button("Restore")).to_be_visible()
    expect(desk.find(".count")).to_have_text(["0", "0", "1"])

    library = desk.context.new_page()
    desk.context.add_cookies([{"name": "bmgr_session", "value": reader.session, "url": reader.appliance.address}])
    library.goto(f"{reader.appliance.address}/?library=manga&tab=archived")
    expect(library.locator(".card h2")).to_have_text([series.title])
    expect(library.locator(".card .progress")).to_have_text("Chapter 15")

    credential = credential_of(reader)
    for each in (phone, desk):
        found = each.page.evaluate("found()")
        assert series.title in found
        assert credential not in found


def test_two_devices(device: Install, publish: Publish, reader: Reader) -> None:
    """USR-015: one that is behind does not set the other back, and learns where it is."""
    series = publish()
    ahead, behind = device(), device()
    ahead.goes_to(series.address)
    ahead.opens()
    ahead.button("+ Bookmark this").click()
    ahead.waits_until(lambda: progress(reader, series) == 0)
    behind.goes_to(f"https://asurascans.com{series.chapter_target('3')}")
    ahead.goes_to(f"https://asurascans.com{series.chapter_target('13')}")
    ahead.reads_until(lambda: progress(reader, series) == 13)
    behind.reads_until(lambda: len(behind.puts) > 0)
    behind.opens()
    expect(behind.find(".page .chapters").first).to_contain_text("Chapter 13")
    expect(behind.find(".here")).to_contain_text("looking back at chapter 3")
    assert progress(reader, series) == 13
    behind.button("Chapter").click()
    behind.page.keyboard.press("Enter")
    behind.waits_until(lambda: progress(reader, series) == 3)


def test_signed_out(device: Install, publish: Publish, reader: Reader) -> None:
    """USR-018: a copy whose credential was replaced keeps what it could not send; the next copy sends it."""
    series = publish()
    phone = device()
    phone.goes_to(series.address)
    credential_of(reader, 1)
    phone.opens()
    phone.button("+ Bookmark this").click()
    expect(phone.find(".sync")).to_have_text("Signed out")
    expect(phone.find(".notice")).to_contain_text("1 change kept here")
    link = phone.find(".notice a").get_attribute("href")
    assert link == f"{reader.appliance.address}/#scripts"
    phone.install(served_script(reader.appliance, credential_of(reader, 1)))
    phone.goes_to(series.address)
    phone.waits_until(lambda: progress(reader, series) == 0)
    phone.opens()
    expect(phone.find(".sync")).to_have_text("All saved")


def test_no_room_left(device: Install, publish: Publish, reader: Reader) -> None:
    """USR-018, USR-019: what can't be stored is not dropped in silence, and arrives once it is asked for again."""
    series = publish()
    phone = device()
    phone.goes_to(series.address)
    phone.opens()
    phone.page.evaluate(
        """() => {
          for (const size of [1 << 20, 1 << 15, 1 << 10, 1 << 5, 1])
            for (let n = 0; ; n++) try { localStorage.setItem(`ads-${size}-${n}`, "x".repeat(size)); } catch { break; }
        }"""
    )
    with reader.appliance.broken():
        phone.button("+ Bookmark this").click()
        expect(phone.find(".notice")).to_contain_text("no room to keep")
    phone.button("Retry", ".notice").click()
    expect(phone.find(".sync")).to_have_text("All saved")
    expect(phone.find(".notice")).to_have_count(0)
    assert progress(reader, series) == 0


def test_from_one_series_to_another_without_loading(device: Install, publish: Publish, reader: Reader) -> None:
    """USR-010, USR-022: on a Site that patches history itself; nothing of the one is saved under the other."""
    first, second = publish("comix"), publish("comix")
    phone = device()
    phone.context.add_init_script(
        "history.pushState = (push => (...given) => push.apply(history, given))(history.pushState)"
    )
    move_between(phone, first, second, reader)


def test_without_the_navigation_api(device: Install, publish: Publish, reader: Reader) -> None:
    """USR-022: in an engine without it the address is looked at."""
    first, second = publish("comix"), publish("comix")
    move_between(
        device(before="Object.defineProperty(window, 'navigation', {value: undefined});"), first, second, reader
    )


def move_between(phone: Device, first: Series, second: Series, reader: Reader) -> None:
    phone.goes_to(f"https://comix.to{first.chapter_target('2')}")
    phone.opens()
    phone.button("+ Bookmark this").click()
    phone.waits_until(lambda: progress(reader, first) == 2)
    phone.page.evaluate(
        """([href, title]) => {
          const link = document.createElement("a");
          Object.assign(link, {href, textContent: "Chapter next"});
          Object.assign(link.dataset, {title, heading: "Chapter 12.5"});
          document.querySelector("h1").after(link);
        }""",
        [second.chapter_target("12.5"), f"{second.title} · Ch.12.5"],
    )
    phone.page.get_by_role("link", name="Chapter next").click()
    for _ in range(4):
        phone.reads()
    expect(phone.find(".page .name").filter(visible=True)).to_have_text(second.title)
    phone.button("+ Bookmark this").click()
    phone.waits_until(lambda: progress(reader, second) == 12.5)
    phone.page.go_back()
    expect(phone.find(".page .name").filter(visible=True)).to_have_text(first.title)
    assert progress(reader, first) == 2
    titles = reader.appliance.ask("SELECT title FROM series WHERE series_id = %s", second.slug.partition("-")[0])
    assert titles == [{"title": second.title}]


def test_novels(device: Install, publish: Publish, reader: Reader) -> None:
    """USR-012, USR-014: the other script, on a Site that loads each page."""
    series = publish("novelfull")
    phone = device(NOVEL)
    phone.goes_to(series.address)
    phone.opens()
    phone.button("+ Bookmark this").click()
    phone.waits_until(lambda: progress(reader, series) == 0)
    phone.goes_to(f"https://novelfull.com{series.chapter_target('12.5')}")
    phone.reads_until(lambda: progress(reader, series) == 12.5)
    assert phone.puts[-1]["kind"] == "novel"


def test_a_hostile_page(device: Install, publish: Publish, reader: Reader) -> None:
    """USR-018, USR-022, COV-026: a title of markup stays words; what the page writes to the storage fetches nothing
    and sends nothing of another Site's."""
    series = publish(title='"><img src=x onerror="hit=1"><b>Bold')
    phone = device()
    asked: list[str] = []
    phone.context.on("request", lambda request: asked.append(request.url))
    phone.goes_to(series.address)
    phone.opens()
    phone.button("+ Bookmark this").click()
    phone.waits_until(lambda: progress(reader, series) == 0)
    assert phone.find(".page .name").filter(visible=True).inner_text() == series.title
    assert phone.find(".panel-root b, .panel-root img[onerror]").count() == 0
    phone.page.evaluate(
        """() => {
          const row = {key: "asura:spy", site: "asura", title: "<b>Spy", cover: "https://evil.example/covers/a",
            series_url: "javascript:hit=1", last_chapter_url: "https://evil.example/", kind: "manga"};
          localStorage["bmgr:manga:cache"] = JSON.stringify([row, {...row, key: "comix:spy", site: "comix"}]);
          const waiting = [{key: "comix:spy", op: "put"}, {key: "x", op: "delete"}, 7];
          localStorage["bmgr:manga:queue"] = JSON.stringify(waiting);
        }"""
    )
    phone.goes_to(series.address)
    phone.opens()
    expect(phone.find(".list .name")).to_have_text([series.title])
    assert phone.page.evaluate("typeof hit") == "undefined"
    assert not [address for address in asked if "evil.example" in address]
    assert not reader.appliance.ask("SELECT 1 FROM bookmarks WHERE reader_id = %s AND site = 'comix'", reader.id)
