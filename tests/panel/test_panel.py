"""The panel with a state that a test made up: what it shows, what it asks for, and that it keeps what a hand holds."""

import json
import time
from collections.abc import Callable
from typing import Any, Literal

import pytest
from playwright.sync_api import expect

from tests.panel.stage import API, DESK, PHONE, WEB, Stage, at, count_work, findings, many_rows, row, state, work_ms

Setting = Callable[..., Stage]

BRASS = row("Brass Garden", 12, 14)
SALT = row("Salt Road", 3.5, 3.5, site="comix", favorite=True)
MOTH = row("Moth Year", 40, None, site="kagane", finished=True)
TIDE = row("Tidewatch", 2, 5, site="demonic", status="archived")
ROWS = (BRASS, SALT, MOTH, TIDE)
HERE = at(BRASS, 12)


SCHEMES: tuple[Literal["dark", "light"], ...] = ("dark", "light")


def names(stage: Stage) -> list[str]:
    return stage.find(".list .name").all_inner_texts()


def test_lists_and_what_a_row_says(stage: Setting) -> None:
    """USR-022, UI-017: three lists; a new chapter has its heat, a finished Series its label; links lead to Sites."""
    shown = stage()
    shown.open(state(ROWS))
    assert names(shown) == ["Brass Garden", "Salt Road", "Moth Year"]
    assert shown.find(".list .chapters").all_inner_texts() == [
        "Chapter 12\nNew 14",
        "Chapter 3.5\nof 3.5",
        "Chapter 40",
    ]
    assert shown.find(".list .heat .name").all_inner_texts() == ["Brass Garden"]
    assert shown.find(".finished:not(:empty)").all_inner_texts() == ["Finished"]
    assert shown.find(".count").all_inner_texts() == ["3", "1", "1"]
    links = shown.find(".list .go").evaluate_all("all => all.map(one => [one.href, one.target, one.rel])")
    assert links[0] == [BRASS["last_chapter_url"], "", "noopener noreferrer"]
    assert links[1] == [SALT["last_chapter_url"], "_blank", "noopener noreferrer"]
    for tab, expected in (("Favourites", ["Salt Road"]), ("Archived", ["Tidewatch"])):
        shown.find(
            ".tabs button",
        ).filter(has_text=tab).click()
        assert names(shown) == expected
        assert shown.find(".tabs [aria-current]").inner_text().startswith(tab)
    chips = shown.find(".chips a").evaluate_all("all => all.map(one => [one.textContent, one.href])")
    assert chips == [
        ["Library", f"{WEB}/?library=manga"],
        ["asura", "https://asurascans.com/"],
        ["comix", "https://comix.to/"],
        ["demonic", "https://demonicscans.org/"],
        ["kagane", "https://kagane.to/"],
    ]
    assert shown.find(".page").is_hidden()


def test_an_empty_list_says_what_will_be_there(stage: Setting) -> None:
    """USR-022: each in its own words, in the script of either Library."""
    shown = stage(library="novel")
    shown.open(state())
    assert shown.find("h1").inner_text() == "Novels"
    for tab, words in (
        ("All", "Nothing to read"),
        ("Favourites", "No favourites"),
        ("Archived", "Nothing is archived"),
    ):
        shown.find(".tabs button").filter(has_text=tab).click()
        assert words in shown.find(".empty h2").inner_text()


def test_an_address_that_is_not_the_sites_own_is_no_link(stage: Setting) -> None:
    """UI-017: the page can write to the cache that the rows may come from."""
    addresses = [
        *("javascript:alert(1)", "http://asurascans.com/x", "https://asurascans.com.evil.example/x"),
        *("https://asurascans.com@evil.example/x", "https://evil.example/x", "", "https://comix.to/x"),
    ]
    rows = [row(f"Series {n}", last_chapter_url=each, series_url=each) for n, each in enumerate(addresses)]
    rows.append(row("Unknown", site="asura", last_chapter_url="x") | {"site": "elsewhere"})
    shown = stage()
    shown.open(state(rows))
    assert shown.find(".list .go").count() == len(rows)
    assert shown.find(".list .go[href]").count() == 0


def test_covers(stage: Setting) -> None:
    """USR-020, COV-026: the small rendition of ours; a broken one leaves its monogram, as none does."""
    shown = stage()
    covers = (f"{API}/covers/good", f"{API}/covers/broken", "")
    shown.open(state([row(f"Éclair {n}", cover=cover) for n, cover in enumerate(covers)] + [row("«?»")]))
    expect(shown.find(".monogram")).to_have_text(["É", "É", "?"])
    image = shown.find(".list img")
    assert image.evaluate("one => [one.src, one.alt, one.loading]") == [f"{API}/covers/good?w=240", "", "lazy"]
    assert sorted(shown.asked) == [f"{API}/covers/broken?w=240", f"{API}/covers/good?w=240"]


def test_the_control_of_this_page(stage: Setting) -> None:
    """USR-015, USR-022: a Bookmark is offered, then changed; a chapter whose number can't be read is entered."""
    shown = stage()
    fresh = row("Heron Sutra")
    shown.open(state(ROWS, at(fresh, 3)))
    assert shown.find(".page .name").filter(visible=True).inner_text() == "Heron Sutra"
    shown.button("+ Bookmark this").click()
    assert shown.pressed() == [["bookmark"]]
    shown.render(state([fresh, *ROWS], at(fresh, 3)))
    assert shown.focused() == "Favourite"
    shown.render(state(ROWS, at(BRASS, 3)))
    assert "looking back at chapter 3" in shown.find(".here").inner_text()
    shown.render(state(ROWS, at(BRASS)))
    shown.button("Enter it").click()
    shown.page.keyboard.type("12,5")
    shown.page.keyboard.press("Enter")
    assert shown.pressed() == [["override", BRASS["key"], 12.5]]
    shown.render(state(ROWS, at(BRASS, kind="series")))
    assert shown.find(".here").is_hidden()
    shown.render(state(ROWS))
    assert shown.find(".page").is_hidden()


def test_a_chapter_that_is_none_is_refused_where_it_was_typed(stage: Setting) -> None:
    """USR-015: nothing is asked for."""
    shown = stage()
    shown.open(state(ROWS, HERE))
    shown.button("Chapter", ".page").click()
    for typed in ("", "x", "-1", "1e3", "100001", "1.2.3", "١٢"):
        shown.find(".wrong").evaluate("one => { one.hidden = true; }")
        shown.find(".page input").fill(typed)
        shown.button("Save").click()
        assert "a number from 0 to 100000" in shown.find(".wrong").inner_text(), typed
        assert shown.focused() == "input"
    assert shown.pressed() == []


def test_what_is_asked_for(stage: Setting) -> None:
    """UI-009, UI-010: whatever takes a Series out of the list asks first; the way out of it has the focus."""
    shown = stage()
    shown.open(state(ROWS, HERE))
    shown.button("Change Salt Road").click()
    shown.button("Favourite", ".list").click()
    assert shown.pressed() == [["favorite", SALT["key"], False]]
    shown.button("Archive", ".list .actions").click()
    assert (shown.focused(), shown.pressed()) == ("Archive", [])
    shown.page.keyboard.press("Enter")
    assert shown.pressed() == [["status", SALT["key"], "archived"]]
    shown.button("Remove", ".list .actions").click()
    assert shown.focused() == "Cancel"
    shown.page.keyboard.press("Enter")
    assert (shown.focused(), shown.pressed()) == ("Remove", [])
    shown.button("Remove", ".list .actions").click()
    shown.button("Remove", ".list .form").click()
    assert shown.pressed() == [["remove", SALT["key"]]]
    shown.find(".tabs button").filter(has_text="Archived").click()
    shown.button("Change Tidewatch").click()
    shown.button("Restore").click()
    assert shown.pressed() == [["status", TIDE["key"], "reading"]]


def test_one_row_is_open_at_a_time_and_escape_goes_back_step_by_step(stage: Setting) -> None:
    """UI-009, UI-010: from the form to its button, to the row, to the tab."""
    shown = stage()
    shown.open(state(ROWS, HERE))
    shown.button("Change Salt Road").click()
    shown.button("Change Brass Garden").click()
    assert shown.find(".list .drawer").count() == 1
    shown.button("Remove", ".list .actions").click()
    for focus in ("Remove", "Change Brass Garden", "Manga bookmarks, 1 with a new chapter"):
        shown.page.keyboard.press("Escape")
        assert shown.focused() == focus
    assert shown.find("#panel").is_hidden()
    assert shown.find("#fab").get_attribute("aria-expanded") == "false"


def test_rendering_anew_disturbs_nothing(stage: Setting) -> None:
    """USR-022: rows are kept by their key; focus, scroll, an open form and what is typed in it stay."""
    shown = stage()
    rows = many_rows(60)
    shown.open(state(rows, at(rows[0], 1)))
    shown.button("Change Series number 5").click()
    shown.button("Chapter", ".list").click()
    shown.page.keyboard.type("77.5")
    place = "one => [one.scrollTop, one.getRootNode().querySelector('input').getBoundingClientRect().top]"
    shown.find(".list").evaluate("one => { one.scrollTop = 180; }")
    before = shown.find(".list").evaluate(place)
    shown.page.evaluate(
        "kept = [...document.querySelector('[data-bookmark-panel]').shadowRoot.querySelectorAll('.row')]"
    )
    later = [rows[20], *rows[:20], *rows[21:]]
    later[6] = {**rows[5], "favorite": True, "latest_chapter_num": 99}
    shown.render(state(later, at(rows[0], 1), waiting=1, state="waiting", notice="A word"))
    assert shown.find(".list .row").nth(0).locator(".name").text_content() == "Series number 20"
    assert shown.page.evaluate("kept.every(row => row.isConnected)")
    assert shown.focused() == "input"
    assert shown.find(".list input").input_value() == "77.5"
    assert shown.find(".list .favourite .latest").inner_text() == "New 99"
    shown.render(state(rows, at(rows[0], 1)))
    shown.render(state(rows, at(rows[0], 1)))
    assert shown.find(".list").evaluate(place) == pytest.approx(before, abs=1)


def test_when_a_row_goes_the_focus_goes_to_its_neighbour(stage: Setting) -> None:
    """UI-010: and to the lists' own buttons when it was the last."""
    shown = stage()
    shown.open(state(ROWS))
    shown.button("Change Salt Road").focus()
    shown.render(state([BRASS, MOTH]))
    assert shown.focused() == "Change Moth Year"
    shown.render(state([BRASS]))
    assert shown.focused() == "Change Brass Garden"
    shown.render(state())
    assert shown.focused().startswith("All")


def test_the_state_of_sync(stage: Setting) -> None:
    """USR-018: all saved, what waits and for how long, signed out, no room left, and what the logic has to say."""
    shown = stage()
    now = int(time.time() * 1000)
    sync, notice = shown.find(".sync"), shown.find(".notice")
    shown.open(state())
    assert sync.inner_text() == "All saved"
    assert shown.find("#fab.troubled").count() == 0
    shown.render(state(state="waiting", waiting=3, oldestAt=now - 125 * 60_000, online=False))
    assert sync.inner_text() == "Offline · 3 waiting, 2 h"
    shown.render(state(state="waiting", waiting=1, oldestAt=now))
    assert sync.inner_text() == "1 waiting, just now"
    shown.render(state(state="signed-out", waiting=2, oldestAt=now))
    assert sync.inner_text() == "Signed out"
    assert "2 changes kept here" in notice.inner_text()
    assert notice.locator("a").get_attribute("href") == f"{WEB}/#scripts"
    assert shown.find("#fab").get_attribute("aria-label") == "Manga bookmarks, needs a look"
    shown.render(state(state="waiting", waiting=2, unstored=True, notice="<b>Not taken</b>"))
    assert [one.splitlines()[0] for one in notice.all_inner_texts()][1] == "<b>Not taken</b>"
    shown.button("Retry").click()
    assert shown.pressed() == [["retry"]]
    assert shown.find("#fab.troubled").count() == 1
    shown.render(state(state="waiting", waiting=1, givenUp=True, notice="Not taken"))
    assert shown.find("#fab.troubled").count() == 1
    shown.button("Retry").click()
    assert shown.pressed() == [["retry"]]


def test_by_keyboard(stage: Setting) -> None:
    """USR-022: Enter on the tab opens, Tab goes on into the panel and out of it, Escape closes from anywhere in it."""
    shown = stage("<!doctype html><title>A page</title><button>The page's own</button>")
    shown.render(state(ROWS, HERE))
    press = shown.page.keyboard.press
    press("Tab")
    press("Tab")
    assert shown.focused().startswith("Manga bookmarks")
    press("Enter")
    assert shown.find("#panel").is_visible()
    press("Tab")
    assert shown.focused() == "Close"
    press("Shift+Tab")
    press("Shift+Tab")
    press("Shift+Tab")
    assert shown.page.evaluate("document.activeElement.textContent") == "The page's own"
    press("Escape")
    assert shown.find("#panel").is_visible()
    shown.button("Close").focus()
    press("Enter")
    assert shown.find("#panel").is_hidden()
    assert shown.focused().startswith("Manga bookmarks")


def test_keys_and_taps_go_to_the_one_they_are_meant_for(stage: Setting) -> None:
    """USR-022: a page that turns its leaves by key or by tap hears nothing of the panel's, and all of its own."""
    shown = stage(
        """<!doctype html><title>A page</title><main>Text</main><script>
        heard = [];
        const types = "keydown keyup keypress click pointerdown mousedown touchstart wheel input";
        for (const type of types.split(" "))
          document.addEventListener(type, (event) => heard.push(type));
        </script>"""
    )
    shown.open(state(ROWS, HERE))
    shown.button("Chapter", ".page").click()
    shown.page.keyboard.type("15")
    shown.find(".list").hover()
    shown.page.mouse.wheel(0, 50)
    shown.button("Cancel").click()
    assert shown.page.evaluate("heard") == []
    shown.page.locator("main").click()
    shown.page.keyboard.press("ArrowRight")
    assert shown.page.evaluate("heard") == ["pointerdown", "mousedown", "click", "keydown", "keyup"]


def test_1500_rows_stay_smooth(stage: Setting) -> None:
    """USR-022: what opens, what is rendered again and what is scrolled to costs no more than a few frames."""
    shown = stage(**PHONE)
    shown.render(state(many_rows(1500)))
    cost = "(() => { const began = performance.now(); %s; list.scrollHeight; return performance.now() - began; })()"
    shown.world.run("list = document.querySelector('[data-bookmark-panel]').shadowRoot.querySelector('.list')")
    shown.world.run(f"rows = {json.dumps(many_rows(1500))}")
    render = "panel.render({page: null, rows: structuredClone(rows), sync: {state: 'saved'}, online: true})"
    first = shown.world.run(cost % "panel.open()")
    opening = min(shown.world.run(cost % "panel.close(); panel.open()") for _ in range(5))
    again = min(shown.world.run(cost % render) for _ in range(5))
    count_work(shown.world.cdp)
    before = work_ms(shown.world.cdp)
    frames = shown.world.run(
        """(async () => {
          let frames = 0;
          for (; list.querySelectorAll(".row").length < 1500; frames += 1) {
            list.scrollTop = list.scrollHeight;
            await new Promise(requestAnimationFrame);
          }
          return frames;
        })()"""
    )
    scrolling = (work_ms(shown.world.cdp) - before) / frames
    whole = min(shown.world.run(cost % render) for _ in range(5))
    times = {"first": first, "open": opening, "again": again, "a scrolled frame": scrolling, "all again": whole}
    print(", ".join(f"{what} {ms:.0f} ms" for what, ms in times.items()))
    assert opening < 150
    assert again < 60
    assert scrolling < 60
    assert whole < 150


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_axe_finds_nothing(stage: Setting, size: dict[str, Any]) -> None:
    """UI-015, USR-022: in both schemes, on a phone and on a desk, in every state."""
    shown = stage(**size)
    shown.open(state(ROWS, at(BRASS)))
    shown.button("Change Salt Road").click()
    for form in ("Chapter", "Archive", "Remove", ""):
        if form:
            shown.button(form, ".list .actions").click()
        else:
            shown.render(state((), at(SALT), state="signed-out", waiting=2, unstored=True, notice="A word"))
        for scheme in SCHEMES:
            shown.page.emulate_media(color_scheme=scheme)
            assert findings(shown.page) == [], (form, scheme)


def test_a_thumb_finds_everything_on_a_small_phone(stage: Setting) -> None:
    """USR-022: at 360 px each control is 44 px high and as wide as a thumb or its word, and nothing spills."""
    shown = stage(**PHONE)
    shown.open(state(ROWS, at(BRASS)))
    shown.button("Change Salt Road").tap()
    for form in ("Chapter", "Archive", "Remove"):
        shown.button(form, ".list .actions").tap()
        small = shown.find("#panel :is(button, a, input)").evaluate_all(
            """all => all.filter(one => one.checkVisibility())
              .map(one => [one.textContent, one.getBoundingClientRect()])
              .filter(([, {width, height, left, right}]) => height < 44 || width < 32 || left < 40 || right > 366)
              .map(([words, {width, height, right}]) => [words, width, height, right])"""
        )
        assert small == []
    assert shown.find("#panel").evaluate("one => one.scrollWidth <= one.clientWidth")
    shown.page.touchscreen.tap(20, 300)
    assert shown.find("#panel").is_hidden()


def test_motion_stops_where_the_system_asks(stage: Setting) -> None:
    """UI-015: nothing moves."""
    shown = stage(reduced_motion="reduce")
    shown.open(state(ROWS))
    assert shown.page.evaluate("document.getAnimations().length") == 0
    assert shown.find("#panel, #fab").evaluate_all(
        "all => all.map(one => getComputedStyle(one).transitionDuration)"
    ) == ["0s", "0s"]
