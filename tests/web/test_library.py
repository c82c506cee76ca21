"""The Reader's library: what it shows, and what its forms do, with htmx and without."""

from collections.abc import AsyncIterator

import pytest

from bookmark_appliance.web.library_view import FIRST_CARDS, MORE_CARDS
from tests.web.conftest import Web
from tests.web.markup import Element, read
from tests.web.reading import HTMX, Desk, card_keys, session, two_desks

COUNTS = ("all", "updated", "favourites", "archived")


@pytest.fixture
async def desks(web: Web) -> AsyncIterator[tuple[Desk, Desk]]:
    """Two Readers' browsers."""
    async with two_desks(web) as opened:
        yield opened


@pytest.fixture
def desk(desks: tuple[Desk, Desk]) -> Desk:
    """The browser of the first Reader."""
    return desks[0]


async def put(web: Web, name: str, **fields: object) -> None:
    """A Bookmark of the first Reader at asura, a second later than the one before."""
    web.clock.now += 1_000
    fields = {"title": f"The {name}", "series_url": f"https://asurascans.com/comics/{name}"} | fields
    await web.reader.put(f"asura:{name}", **fields)


def counts(page: Element) -> tuple[str, ...]:
    """What the four tabs say."""
    return tuple(page.one(f"#count-{tab}").text for tab in COUNTS)


async def test_the_list_and_its_fragment_show_the_same(web: Web, desk: Desk) -> None:
    """UI-001: the newest first; without a session the page is the sign-in page, the fragment 401."""
    await put(web, "one")
    await put(web, "two")
    assert await desk.keys() == ["asura:two", "asura:one"]
    fragment = await desk.see("/ui/list", HTMX)
    assert card_keys(fragment) == ["asura:two", "asura:one"]
    assert not fragment.find("html")
    desk.browser.cookies.clear()
    response = await desk.browser.get("/")
    assert (response.status_code, "Sign in" in response.text, "The one" in response.text) == (200, True, False)
    assert (await desk.browser.ask("GET", "/ui/list", HTMX)).status_code == 401


async def test_tabs_hold_what_they_say(web: Web, desk: Desk) -> None:
    """UI-002, SER-020: archived ones only in Archived; Updated holds what is read and has a New Chapter."""
    await put(web, "plain", last_chapter_num=5, latest_chapter_num=5)
    await put(web, "new", last_chapter_num=5, latest_chapter_num=6)
    await put(web, "unknown", last_chapter_num=5, favorite=True)
    await put(web, "rest", last_chapter_num=5, latest_chapter_num=9, favorite=True, status="archived")
    shown = {tab: await desk.keys(f"/?library=manga&tab={tab}") for tab in (*COUNTS, "finished")}
    assert shown == {
        "all": ["asura:unknown", "asura:new", "asura:plain"],
        "updated": ["asura:new"],
        "favourites": ["asura:unknown"],
        "archived": ["asura:rest"],
        "finished": ["asura:unknown", "asura:new", "asura:plain"],
    }
    page = await desk.see("/?tab=favourites")
    assert counts(page) == ("3", "1", "1", "1")
    (current,) = [tab for tab in page.one(".tabs").find("a") if "aria-current" in tab.attributes]
    assert (current.text, current.attributes["class"]) == ("Favourites 1", "active")
    assert "Finished" not in page.one(".tabs").text
    # Of two tabs pressed at once the slower answer would else be shown under the other's name.
    assert page.one(".tabs").attributes["hx-sync"] == "this:replace"


async def test_a_row_of_an_unknown_bucket_is_in_the_list(web: Web, desk: Desk) -> None:
    """API-031, UI-002: as in the API, it reads as `reading`."""
    await put(web, "one")
    await web.sql("UPDATE bookmarks SET status = 'paused'")
    assert await desk.keys() == ["asura:one"]
    assert await desk.keys("/?tab=archived") == []


async def test_one_library_at_a_time(web: Web, desk: Desk) -> None:
    """UI-003: each with its own counts; who has novels alone sees them first."""
    await put(web, "tale", kind="novel")
    assert await desk.keys("/") == ["asura:tale"]
    await put(web, "comic")
    assert await desk.keys("/") == ["asura:comic"]
    novels = await desk.see("/?library=novel")
    assert (card_keys(novels), counts(novels)) == (["asura:tale"], ("1", "0", "0", "0"))
    (current,) = [link for link in novels.one(".libraries").find("a") if "aria-current" in link.attributes]
    assert current.text == "Novels"


async def test_the_strip_begins_with_what_is_new(web: Web, desk: Desk) -> None:
    """UI-004: then the most recently read, twelve at most, none of them archived, and on All alone."""
    await put(web, "old-new", last_chapter_num=1, latest_chapter_num=2, favorite=True)
    await put(web, "archived", last_chapter_num=1, latest_chapter_num=2, status="archived")
    for number in range(14):
        await put(web, f"read-{number:02}", last_chapter_num=1, favorite=number == 13)
    strip = (await desk.see()).one("#recent")
    names = [card.one(".name").text for card in strip.find(".recent-card")]
    assert names == ["The old-new", *(f"The read-{number:02}" for number in range(13, 2, -1))]
    first, second, third = strip.find(".recent-card")[:3]
    assert first.is_a(".is-new")
    assert second.is_a(".is-favourite")
    assert third.attributes["class"] == "recent-card"
    for tab in COUNTS[1:]:
        other = (await desk.see(f"/?tab={tab}")).one("#recent")
        assert not other.inside
        assert "hidden" in other.attributes


async def test_a_card_leads_to_where_reading_goes_on(web: Web, desk: Desk) -> None:
    """UI-005, UI-006, UI-017: in a new tab that learns nothing of us; no link where there is no such address."""
    await put(web, "one", last_chapter_num=3, last_chapter_url="https://asurascans.com/comics/one/chapter/3")
    await put(web, "bad", series_url="javascript:alert(1)")
    await web.sql("UPDATE series SET cover_address = %s WHERE series_id = 'one'", "ab" * 32)
    bad, one = (await desk.see()).find(".card")
    for link in (one.one(".cover"), one.one(".go")):
        assert link.attributes["href"] == "https://asurascans.com/comics/one/chapter/3"
        assert link.attributes["target"] == "_blank"
        assert link.attributes["rel"] == "noopener noreferrer"
    assert (one.one(".cover").attributes["tabindex"], one.one(".cover").attributes["aria-hidden"]) == ("-1", "true")
    image = one.one("img").attributes
    assert image["src"] == f"https://books.example/covers/{'ab' * 32}?w=240"
    assert (image["alt"], image["loading"], image["width"], image["height"]) == ("", "lazy", "240", "360")
    assert (bad.one(".cover").tag, bad.find(".go"), bad.find("img")) == ("span", [], [])
    assert (bad.one(".monogram").text, bad.one(".monogram").attributes["aria-hidden"]) == ("T", "true")
    assert "javascript:" not in str(await desk.see())


async def test_a_card_says_how_far_it_is(web: Web, desk: Desk) -> None:
    """SER-020, UI-013: New Chapter, nothing new, not known, not begun; Finished is a label and nothing to press."""
    await put(web, "new", last_chapter_num=3, latest_chapter_num=4.5)
    await put(web, "same", last_chapter_num=3, latest_chapter_num=3)
    await put(web, "unknown", last_chapter_num=3)
    await put(web, "begun", latest_chapter_num=3)
    await web.sql("UPDATE series SET finished_at = 1 WHERE series_id = 'same'")
    begun, unknown, same, new = (await desk.see()).find(".card")
    texts = [card.one(".chapters").text for card in (new, same, unknown, begun)]
    assert texts == ["Chapter 3 New chapter 4.5", "Chapter 3 of 3", "Chapter 3", "Not started New chapter 3"]
    assert [card.is_a(".is-new") for card in (new, same, unknown, begun)] == [True, False, False, True]
    assert same.one(".finished").tag == "span"
    assert not new.find(".finished")


async def test_who_has_nothing_is_told_how_to_begin(web: Web, desks: tuple[Desk, Desk]) -> None:
    """UI-008: both scripts, no tabs; an empty list of somebody who has something explains itself."""
    desk, other = desks
    await put(web, "tale", kind="novel")
    page = await other.see()
    assert page.find(".welcome")
    assert not page.find(".tabs")
    assert "open" in page.one("#scripts").attributes
    links = [link.attributes["href"] for link in page.one(".installs").find("a")]
    assert {"/install/manga-bookmark.user.js", "/install/novel-bookmark.user.js"} < set(links)
    page = await desk.see("/?library=manga")
    assert not page.find(".welcome")
    assert page.one("#list").one(".empty").text
    assert "open" not in page.one("#scripts").attributes


async def test_what_takes_a_card_away_is_asked_about(web: Web, desk: Desk) -> None:
    """UI-009: archive and remove have a row each, restore is one press; every button leads to its own panel."""
    await put(web, "one")
    await put(web, "two", status="archived")
    (card,) = (await desk.see()).find(".card")
    for control, panel in ((".box", "confirm-archive"), (".remove", "confirm-remove"), (".pencil", "chapter-form")):
        button = card.one(control)
        assert (button.attributes["role"], button.attributes["aria-expanded"]) == ("button", "false")
        assert button.attributes["href"] == f"#{panel}-asura%3Aone"
        assert card.one(f"#{panel}-asura:one").is_a(".panel")
    assert card.one("#chapter-form-asura:one").attributes["action"] == card.one(".pencil").attributes["data-action"]
    assert card.one("#confirm-archive-asura:one").is_a(".calm")
    assert not card.one("#confirm-remove-asura:one").is_a(".calm")
    (archived,) = (await desk.see("/?tab=archived")).find(".card")
    assert archived.find(".restore")
    assert not archived.find(".box")


async def test_only_the_owner_sees_the_way_to_their_pages(web: Web, desk: Desk) -> None:
    """UI-014."""
    assert not (await desk.see()).find(".owner")
    ((owner_id,),) = await web.sql("SELECT id FROM readers WHERE discord_id = %s", web.context.owner_discord_id)
    desk.browser.cookies["bmgr_session"] = await session(web, owner_id)
    assert (await desk.see()).one(".owner").attributes["href"] == "/admin"


async def test_a_favourite_is_marked_where_it_stands(web: Web, desk: Desk) -> None:
    """UI-012, UI-016, API-016: the card comes back with counts and strip, and nothing has moved."""
    await put(web, "one")
    await put(web, "two")
    before = await web.reader.list()
    response = await desk.act("favorite", "asura:one", {"favorite": "true"})
    assert response.status_code == 200
    answer = read(response.text)
    (card,) = answer.find(".card")
    assert card.one(".favourite").attributes["aria-pressed"] == "true"
    assert card.one(".favourite").attributes["value"] == "false"
    assert counts(answer) == ("2", "0", "1", "0")
    assert all(answer.one(f"#count-{tab}").attributes["hx-swap-oob"] == "true" for tab in COUNTS)
    assert answer.one("#recent").attributes["hx-swap-oob"] == "true"
    assert answer.one("#announce").text == "Marked as a favourite: The one"
    after = await web.reader.list()
    assert [row["updated_at"] for row in after] == [row["updated_at"] for row in before]
    assert after[1]["favorite"] is True


async def test_a_card_that_is_no_favourite_any_more_stays_until_the_list_is_shown_anew(web: Web, desk: Desk) -> None:
    """UI-012: a slip of the finger is undone where it was made."""
    await put(web, "one", favorite=True)
    shelf = "library=manga&tab=favourites"
    answer = read((await desk.act("favorite", "asura:one", {"favorite": "false"}, shelf=shelf)).text)
    assert (card_keys(answer), counts(answer)) == (["asura:one"], ("1", "0", "0", "0"))
    assert await desk.keys(f"/?{shelf}") == []


async def test_a_chapter_is_set_as_a_put_would(web: Web, desk: Desk) -> None:
    """UI-012, API-016, API-035: `updated_at` moves once the number differs; it is no Sighting and no Latest Chapter."""
    await put(web, "one", last_chapter_num=5, last_chapter_url="https://asurascans.com/five", latest_chapter_num=9)
    before = await web.sql("SELECT latest_sighted_at, latest_raised_by, latest_chapter_num, title FROM series")
    web.clock.now += 10_000
    same = await desk.act("chapter", "asura:one", {"chapter": "5"})
    assert same.status_code == 200
    (row,) = await web.reader.list()
    assert row["updated_at"] == web.clock.now - 10_000
    assert row["last_chapter_url"] == "https://asurascans.com/five"
    answer = read((await desk.act("chapter", "asura:one", {"chapter": "7,5"})).text)
    assert answer.one(".card").one(".chapters").text == "Chapter 7.5 New chapter 9"
    (row,) = await web.reader.list()
    assert (row["last_chapter_num"], row["last_chapter"]) == (7.5, "Chapter 7.5")
    assert row["updated_at"] == web.clock.now
    assert row["last_chapter_url"] == ""  # the stored one was of another chapter
    assert await web.sql("SELECT latest_sighted_at, latest_raised_by, latest_chapter_num, title FROM series") == before
    ((agreements, disagreements),) = await web.sql(
        "SELECT sighting_agreements, sighting_disagreements FROM readers WHERE id = %s", web.reader_id
    )
    assert (agreements, disagreements) == (0, 0)


@pytest.mark.parametrize(
    ("act", "form"),
    [
        ("chapter", {"chapter": "soon"}),
        ("chapter", {"chapter": "100001"}),
        ("chapter", {}),
        ("favorite", {"favorite": "yes"}),
        ("status", {"status": "finished"}),
        ("status", {"favorite": "true"}),
    ],
)
async def test_a_value_that_can_not_be_is_refused_in_words(
    web: Web, desk: Desk, act: str, form: dict[str, str]
) -> None:
    """UI-011, UI-012: 400, short and plain, and nothing is written."""
    await put(web, "one", last_chapter_num=5)
    before = await web.reader.list()
    for htmx in (True, False):
        response = await desk.act(act, "asura:one", form, htmx=htmx)
        assert response.status_code == 400
        assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert 0 < len(response.text) <= 120
    assert await web.reader.list() == before


async def test_a_card_that_leaves_takes_nothing_with_it(web: Web, desk: Desk) -> None:
    """UI-009, UI-016: the answer holds no card, and what stands around it; the last one brings the empty list."""
    await put(web, "one")
    await put(web, "two")
    response = await desk.act("status", "asura:one", {"status": "archived"})
    answer = read(response.text)
    assert (answer.find(".card"), counts(answer)) == ([], ("1", "0", "0", "1"))
    assert [card.one(".name").text for card in answer.find(".recent-card")] == ["The two"]
    assert "HX-Retarget" not in response.headers
    response = await desk.act("remove", "asura:two")
    assert (response.headers["HX-Retarget"], response.headers["HX-Reswap"]) == ("#list", "innerHTML")
    answer = read(response.text)
    assert answer.one(".empty").text
    assert (counts(answer), answer.one("#announce").text) == (("0", "0", "0", "1"), "Removed.")
    response = await desk.act("status", "asura:one", {"status": "reading"}, shelf="library=manga&tab=archived")
    assert "HX-Retarget" in response.headers
    assert await desk.keys() == ["asura:one"]
    assert (await web.sql("SELECT count(*) FROM series"))[0] == (2,)


async def test_an_act_that_was_done_already_is_no_error(web: Web, desk: Desk) -> None:
    """UI-009, API-032: two devices remove one card; a mark on what has gone is told so and brings nothing back."""
    await put(web, "one")
    await put(web, "two")
    assert (await desk.act("remove", "asura:one")).status_code == 200
    assert (await desk.act("remove", "asura:one")).status_code == 200
    response = await desk.browser.ask("DELETE", "/ui/bookmarks/asura%3Atwo?library=manga&tab=all", HTMX)
    assert response.status_code == 200
    for act, form in (
        ("favorite", {"favorite": "true"}),
        ("chapter", {"chapter": "3"}),
        ("status", {"status": "reading"}),
    ):
        assert (await desk.act(act, "asura:one", form)).status_code == 404
        assert (await desk.act(act, "nonsense", form)).status_code == 404
    assert await web.reader.list() == []


async def test_plain_forms_lead_back_to_the_same_list(web: Web, desk: Desk) -> None:
    """UI-016: 303, to the card itself where it is still there."""
    await put(web, "one")
    shelf = "library=manga&tab=updated"
    for act, form, fragment in (
        ("favorite", {"favorite": "true"}, "#card-asura%3Aone"),
        ("chapter", {"chapter": "3"}, "#card-asura%3Aone"),
        ("status", {"status": "archived"}, ""),
        ("remove", {}, ""),
    ):
        response = await desk.act(act, "asura:one", form, shelf=shelf, htmx=False)
        assert (response.status_code, response.headers["Location"]) == (303, f"/?{shelf}{fragment}")
    assert await web.reader.list() == []
    hostile = await desk.act("remove", "asura:one", shelf="library=//evil.example&tab=%0d%0aX:1", htmx=False)
    assert hostile.headers["Location"] == "/?library=manga&tab=all"


@pytest.mark.parametrize("act", ["favorite", "chapter", "status", "remove", "DELETE"])
async def test_nobody_changes_what_is_anothers(web: Web, desks: tuple[Desk, Desk], act: str) -> None:
    """UI-012, UI-016: two Readers of one Series, asked from both sides; nor does anybody without a session."""
    form = {"favorite": "true", "chapter": "77", "status": "archived"}
    for client in (web.reader, web.other):
        await client.put("asura:shared", last_chapter_num=1)
        await client.put(f"asura:own-{client.credential[:4]}", last_chapter_num=1)
    lists = [await client.list() for client in (web.reader, web.other)]

    async def go(desk: Desk, key: str) -> int:
        if act == "DELETE":
            return (await desk.browser.ask("DELETE", f"/ui/bookmarks/{key}", HTMX)).status_code
        return (await desk.act(act, key, form)).status_code

    for desk, theirs in zip(desks, (web.other, web.reader), strict=True):
        assert await go(desk, f"asura:own-{theirs.credential[:4]}") == (200 if act in ("remove", "DELETE") else 404)
    assert [await client.list() for client in (web.reader, web.other)] == lists
    for desk, mine, theirs in zip(desks, (web.reader, web.other), (web.other, web.reader), strict=True):
        untouched = await theirs.list()
        assert await go(desk, "asura:shared") == 200
        assert await theirs.list() == untouched
        assert await mine.list() not in lists
        own = f"asura:own-{theirs.credential[:4]}"
        for tab in COUNTS:
            assert own not in await desk.keys(f"/?tab={tab}")
    lists = [await client.list() for client in (web.reader, web.other)]
    desks[0].browser.cookies.clear()
    assert await go(desks[0], "asura:shared") == 401
    assert [await client.list() for client in (web.reader, web.other)] == lists


@pytest.mark.parametrize("act", ["favorite", "chapter", "status", "remove"])
async def test_no_other_site_can_press_a_button(web: Web, desk: Desk, act: str) -> None:
    """UI-016, CFG-011: an origin that is not ours is refused before anything is written."""
    await put(web, "one", last_chapter_num=1)
    before = await web.reader.list()
    desk.browser.headers["Origin"] = "https://asurascans.com"
    form = {"favorite": "true", "chapter": "2", "status": "archived"}
    assert (await desk.act(act, "asura:one", form)).status_code == 403
    assert await web.reader.list() == before
    desk.browser.headers["Origin"] = "https://read.example"
    assert (await desk.act(act, "asura:one", form)).status_code == 200
    assert await web.reader.list() != before


HOSTILE = (
    '"><script>alert(1)</script>',
    "'><img src=x onerror=alert(1)>",
    "</li></ol></main><b>",
    "\u202egnp.exe\u2066",
    "{{ 7 * 7 }}{% raw %}",
    "🗡️📚 &amp; &lt;",
    "x" * 10_000,
)


@pytest.mark.parametrize("title", HOSTILE)
async def test_a_title_is_text_whatever_it_holds(web: Web, desk: Desk, title: str) -> None:
    """UI-005: in the card, the strip, the attributes, and what is said; every tag stays closed."""
    await put(web, "one", last_chapter_num=1, latest_chapter_num=2)
    await web.sql("UPDATE series SET title = %s, latest_chapter = %s", title, title)
    await web.sql("UPDATE bookmarks SET last_chapter = %s", title)
    answers = [
        await desk.see(),
        await desk.see("/ui/list", HTMX),
        read((await desk.act("favorite", "asura:one", {"favorite": "true"})).text),
    ]
    for answer in answers:
        (card,) = answer.find(".card")
        assert card.attributes["data-title"] == title
        assert card.one("h2").text == " ".join(title.split())
        assert card.one("h2").find("bdi")
        assert card.one(".actions").attributes["aria-label"] == title
        assert answer.one("#recent").one("bdi").text == " ".join(title.split())
        assert not [script for script in answer.find("script") if "src" not in script.attributes]
        assert not [name for each in answer.inside for name in each.attributes if name.startswith("on")]


async def test_a_key_is_text_and_an_address(web: Web, desk: Desk) -> None:
    """UI-016, API-047, API-050: slashes, quotes, percent signs and line ends in a key come back as they were."""
    for name in ('a/b"><script>', "%2F%252f", "a b\n?#&", "é/../favorite", "chapter"):
        await web.sql("DELETE FROM bookmarks")
        await web.sql("INSERT INTO series (site, series_id) VALUES ('asura', %s) ON CONFLICT DO NOTHING", name)
        await web.sql(
            "INSERT INTO bookmarks (reader_id, site, series_id, updated_at) VALUES (%s, 'asura', %s, 1)",
            web.reader_id,
            name,
        )
        (card,) = (await desk.see()).find(".card")
        assert card.attributes["id"] == f"card-asura:{name}"
        response = await desk.browser.ask(
            "POST", card.one(".favourite").attributes["formaction"], HTMX, {"favorite": "true"}
        )
        assert response.status_code == 200, name
        (row,) = await web.reader.list()
        assert (row["key"], row["favorite"]) == (f"asura:{name}", True)


async def test_a_field_stands_in_a_card_only_for_who_has_no_script(web: Web, desk: Desk) -> None:
    """UI-016: browsers look through the fields of a page again and again; of 2,000 a script makes the one it needs."""
    await put(web, "one", last_chapter_num=3)
    page = await desk.see()
    (card,) = page.find(".card")
    assert (
        card.one("noscript").one("input").attributes["value"] == card.one(".pencil").attributes["data-chapter"] == "3"
    )
    assert page.one("template").one(".chapter-form").find("input")
    assert not (await desk.see("/ui/list", HTMX)).find("input")


async def many(web: Web, rows: int) -> None:
    """So many Bookmarks of the first Reader, several of them read in the same millisecond."""
    await web.sql(
        """
        WITH made AS (
            INSERT INTO series (site, series_id, title, latest_chapter_num)
            SELECT 'asura', 's' || number, 'Series ' || number, 7
            FROM generate_series(1, %s) AS number
            RETURNING site, series_id
        )
        INSERT INTO bookmarks (reader_id, site, series_id, last_chapter_num, updated_at)
        SELECT %s, site, series_id, 5, 1000 + length(series_id)
        FROM made
        """,
        rows,
        web.reader_id,
    )


async def test_a_long_list_comes_in_parts_in_the_order_of_the_api(web: Web, desk: Desk) -> None:
    """UI-016, API-017: no card twice and none left out, whatever ties there are; the counts are of all of them."""
    rows = FIRST_CARDS + 2 * MORE_CARDS + 5
    await many(web, rows)
    page = await desk.see("/?tab=updated")
    assert counts(page)[:2] == (str(rows), str(rows))
    shown, parts = card_keys(page), [len(page.find(".card"))]
    while more := page.find(".more"):
        link = more[0].one("a")
        assert link.attributes["href"] == link.attributes["hx-get"].replace("/ui/list", "/")
        page = await desk.see(link.attributes["hx-get"], HTMX)
        assert not page.find(".recent")
        parts.append(len(page.find(".card")))
        shown += card_keys(page)
    assert parts == [FIRST_CARDS, MORE_CARDS, MORE_CARDS, 5]
    assert shown == [row["key"] for row in await web.reader.list()]


async def test_a_place_is_kept_when_its_card_is_read_on_or_goes(web: Web, desk: Desk) -> None:
    """UI-016: the next cards are those behind where it stood; a key alone stands where it is now."""
    await many(web, FIRST_CARDS + 10)
    page = await desk.see()
    last, target = card_keys(page)[-1], page.one(".more").one("a").attributes["hx-get"]
    rest = card_keys(await desk.see(target, HTMX))
    assert len(rest) == 10
    assert card_keys(await desk.see(f"/ui/list?library=manga&tab=all&after={last}", HTMX)) == rest
    await desk.act("chapter", last, {"chapter": "6"})
    assert card_keys(await desk.see(target, HTMX)) == rest
    await desk.act("remove", last)
    assert card_keys(await desk.see(target, HTMX)) == rest
    assert card_keys(await desk.see("/ui/list?library=manga&tab=all&after=asura:none", HTMX)) == []
    assert await desk.keys(target.replace("/ui/list", "/")) == rest


async def test_nothing_in_an_answer_needs_an_exception_from_the_policy(web: Web, desk: Desk) -> None:
    """UI-015, OPS-003: no script or style inside, no handler in an attribute, nothing fetched from elsewhere."""
    await put(web, "one", latest_chapter_num=2)
    await put(web, "two", status="archived")
    for target in ("/", "/?tab=archived", "/?library=novel", "/?rotated", "/login", "/static/offline.html"):
        page = await desk.see(target)
        for element in page.inside:
            assert "style" not in element.attributes
            assert not [name for name in element.attributes if name.startswith(("on", "hx-on"))]
            assert element.tag != "style"
            source = element.attributes.get("src", "/") if element.tag == "script" else "/"
            assert source.startswith("/")
            assert element.text == "" or element.tag != "script"
        identified = [element.attributes["id"] for element in page.inside if "id" in element.attributes]
        assert len(identified) == len(set(identified))


async def test_the_pages_can_be_installed_and_keep_nothing(web: Web, desk: Desk) -> None:
    """UI-016: manifest, icons and service worker need no session; of a library nothing is kept by anybody."""
    page = await desk.browser.get("/")
    assert page.headers["Cache-Control"] == "private, no-store"
    desk.browser.cookies.clear()
    manifest = await desk.browser.get("/manifest.webmanifest")
    assert manifest.headers["Content-Type"].startswith("application/manifest+json")
    for icon in manifest.json()["icons"]:
        assert (await desk.browser.get(icon["src"])).status_code == 200
    worker = await desk.browser.get("/sw.js")
    assert worker.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert (await desk.browser.get("/static/offline.html")).status_code == 200
