"""The examples that BEHAVIOURS.md spells out, Site by Site."""

import json

import pytest

from bookmark_appliance.lanes.judgement import judge_page
from bookmark_appliance.lanes.outcome import Judgement, Outcome
from bookmark_appliance.lanes.site import NOTHING_READ, Reading
from bookmark_appliance.lanes.sites import SITES
from bookmark_appliance.page import Page

ASURA = "https://asurascans.com/comics/chronicles-of-the-demon-faction-059befe1"
DEMONIC = "https://demonicscans.org/manga/Catastrophic-Necromancer"
COMIX = "https://comix.to/title/n8we-dungeons-and-crayons"
KAGANE = "https://kagane.to/series/019fe11a-84c3-7fc3-a84b-000000000000"
NOVELFULL = "https://novelfull.com/reverend-insanity.html"
LIGHTNOVELWORLD = "https://lightnovelworld.net/novel/all-jobs-and-classes-i-just-wanted-one-skill-not-them-all/"


def judged(site: str, series_url: str, body: str) -> Judgement:
    return judge_page(SITES[site], series_url, Page(200, {}, body.encode(), series_url), now_ms=0)


def read(site: str, series_url: str, body: str) -> Reading:
    return judged(site, series_url, body).reading


def latest(site: str, series_url: str, body: str) -> tuple[float, str] | None:
    chapter = read(site, series_url, body).latest
    return (chapter.number, chapter.label) if chapter else None


def asura_links(*numbers: int, slug: str = "chronicles-of-the-demon-faction-f886a8af") -> str:
    return "".join(f'<a href="/comics/{slug}/chapter/{number}">First Chapter</a>' for number in numbers)


def test_asura_takes_the_highest_own_link_under_a_new_hash() -> None:
    """SITE-008, SITE-009, SITE-010: neither the first, nor the last, nor another slug's."""
    body = asura_links(1, 179, 181, 180) + asura_links(999, slug="some-other-series-aabbccdd")
    assert latest("asura", ASURA, body) == (181, "Chapter 181")


@pytest.mark.parametrize(
    ("series_url", "body"),
    [
        ("https://asurascans.com/", asura_links(5)),
        ("https://asurascans.com/comics/", asura_links(5)),
        ("https://asurascans.com/novels/chronicles-of-the-demon-faction-059befe1", asura_links(5)),
        (ASURA, '<div id="chapters-list"><a href="/chaptered.php?manga=1&chapter=5">5</a></div>'),
    ],
)
def test_asura_reads_nothing_of_what_is_not_its_own(series_url: str, body: str) -> None:
    """SITE-011."""
    assert judged("asura", series_url, body) == Judgement(
        Outcome.NO_CHAPTER, NOTHING_READ, reason=f"not the page we know, {len(body)} bytes"
    )


def test_asura_cover() -> None:
    """SITE-012."""
    cover = "https://cdn.asurascans.com/asura-images/covers/chronicles-of-the-demon-faction.d4dcb8.webp"
    assert read("asura", ASURA, f'<meta property="og:image" content="{cover}">{asura_links(1)}').cover == cover


@pytest.mark.parametrize(
    ("props", "completed"),
    [
        ('"{&quot;title&quot;:[0,&quot;X&quot;],&quot;status&quot;:[0,&quot;completed&quot;]}"', True),
        ("""'{"title":[0,"X"],"status":[0,"completed"]}'""", True),
        ("""'{"title":[0,"X"],"status":[0,"ongoing"]}'""", False),
        ("""'{"title":[0,"X"],"status":[0,"dropped"]}'""", False),
        ("""'{"title":[0,"X"],"status":[0,"hiatus"]}'""", False),
        ("""'{"title":[0,"X"],"status":[0,"axed"]}'""", False),
        ("""'{"title":[0,"X"]}'""", False),
        ("""'{"title":[0,"Y"],"status":[0,"completed"]}'""", False),
        ("""'{"title":[0,"X"],"a":[0,{"title":[0,"X"],"status":[0,"ongoing"]}],"status":[0,"completed"]}'""", False),
        ("""'{"title":[0,"X"],"status":[0,"completed"]'""", False),
    ],
)
def test_asura_completed(props: str, completed: bool) -> None:
    """SITE-013."""
    body = f"<h1> <b>x</b> </h1><astro-island props={props}></astro-island>{asura_links(1)}"
    assert read("asura", ASURA, body).completed is completed


def demonic_links(*links: str) -> str:
    return '<div id="chapters-list">' + "".join(f'<a href="/chaptered.php?manga=73{link}">x</a>' for link in links)


def test_demonic_takes_the_highest_of_both_ampersands() -> None:
    """SITE-015, SITE-016."""
    body = demonic_links("&chapter=0.5", "&chapter=294", "&amp;chapter=296", "&chapter=295")
    assert latest("demonic", DEMONIC, body) == (296, "Chapter 296")
    assert latest("demonic", DEMONIC, demonic_links("&chapter=0.5")) == (0.5, "Chapter 0.5")
    jsd = '<script src="/cdn-cgi/challenge-platform/scripts/jsd/main.js"></script>'
    assert latest("demonic", DEMONIC, jsd + demonic_links("&chapter=22")) == (22, "Chapter 22")


def test_demonic_cover_with_a_space() -> None:
    """SITE-017."""
    written = "https://readermc.org/images/thumbnails/Catastrophic Necromancer.webp"
    cover = read("demonic", DEMONIC, f'<meta property="og:image" content="{written}">').cover
    assert cover == "https://readermc.org/images/thumbnails/Catastrophic%20Necromancer.webp"


def comix_page(*, status: str | None = "releasing") -> str:
    def entry(own_id: str, chapter: str, poster: str, status: str | None) -> dict[str, object]:
        medium = f"https://static.comix.to/{poster}@280.jpg"
        url = f"/title/{own_id}-x/{chapter}"
        return {"latestChapterUrl": url, "poster": {"medium": medium, "large": "x"}, "status": status}

    queries = {
        '["manga","detail","qqwrm"]': entry("qqwrm", "99999999-chapter-999", "q", "finished"),
        '["manga","detail","n8we"]': entry("n8we", "11139891-chapter-80", "039d/i/1/34/6a6742bf15736", status),
    }
    return f'<script id="initial-data">{json.dumps({"queries": queries})}</script>'


def test_comix_reads_its_own_entry() -> None:
    """SITE-019, SITE-020, SITE-021, SITE-022."""
    reading = read("comix", COMIX, comix_page())
    assert reading.latest is not None
    assert reading.latest.label == "Chapter 80"
    assert reading.cover == "https://static.comix.to/039d/i/1/34/6a6742bf15736@280.jpg"


@pytest.mark.parametrize("status", ["finished", "releasing", "on_hiatus", "discontinued", "not_yet_released", None])
def test_comix_completed(status: str | None) -> None:
    """SITE-023."""
    assert read("comix", COMIX, comix_page(status=status)).completed is (status == "finished")


def test_kagane_reads_the_top_level() -> None:
    """SITE-024, SITE-025, SITE-026."""
    body = {
        "publication_status": "Ongoing",
        "upload_status": "Completed",
        "series_covers": [{"image_id": "nonsense"}, {"image_id": "019fe11a-84c3-7fc3-a84b-88787374b617"}],
        "series_books": [{"chapter_no": number} for number in ("1", "41", "40.5", None, "")],
        "related": {"series_books": [{"chapter_no": "900"}]},
    }
    reading = read("kagane", KAGANE, json.dumps(body))
    assert reading.latest is not None
    assert reading.latest.label == "Chapter 41"
    assert reading.cover == "https://kagane.to/api/v2/image/019fe11a-84c3-7fc3-a84b-88787374b617/compressed"
    assert not reading.completed
    assert read("kagane", KAGANE, json.dumps({"publication_status": "completed"})).completed


def test_novelfull_takes_the_highest_of_its_slug() -> None:
    """SITE-027, SITE-028, SITE-029, SITE-030."""
    links = ["reverend-insanity/chapter-2334-a-tail.html", "reverend-insanity/chapter-2333-b.html"]
    links += [
        "reverend-insanity/chapter-1.html",
        "reverend-insanity/chapter-2.html",
        "release-that-witch/chapter-9999.html",
    ]
    cover = "https://novelfull.com/uploads/webp/novel/reverend-insanity-82661d911a.webp"
    body = f'<meta name="image" content="{cover}">' + "".join(f'<a href="/{link}">x</a>' for link in links)
    assert latest("novelfull", NOVELFULL, body) == (2334, "Chapter 2334")
    assert read("novelfull", NOVELFULL, body).cover == cover
    assert latest("novelfull", "https://novelfull.com/genre/Xianxia", body) is None


@pytest.mark.parametrize(
    ("row", "completed"),
    [
        ('<div><h3>Status:</h3><a href="/status/Completed">Completed</a></div>', True),
        ('<div><h3>Status:</h3><a href="/status/Ongoing">Ongoing</a></div>', False),
        ("<div><h3>Status:</h3></div>", False),
        ('<ul><li><a href="/status/Completed">Completed</a></li></ul>', False),
    ],
)
def test_novelfull_completed(row: str, completed: bool) -> None:
    """SITE-031."""
    assert read("novelfull", NOVELFULL, row).completed is completed


@pytest.mark.parametrize("series_url", [LIGHTNOVELWORLD, "https://lightnovelworld.net/novel/all-jobs/"])
def test_lightnovelworld_joins_two_chapter_slugs(series_url: str) -> None:
    """SITE-032, SITE-033, SITE-034, SITE-036."""
    cover = "https://i1.wp.com/lightnovelworld.net/wp-content/uploads/2025/10/all-jobs.jpg"
    long = "".join(
        f'<a href="https://lightnovelworld.net/long-slug-chapter-{n}/">x</a>' for n in (404, 423, 300, 200, 100)
    )
    short = "".join(f'<a href="https://lightnovelworld.net/short-chapter-{n}/">x</a>' for n in (99, 50, 1))
    comment = '<div id="wpd-threads"><a href="https://lightnovelworld.net/overgeared-chapter-2059/">x</a></div>'
    body = f'<meta property="og:image" content="{cover}">{long}{short}'
    assert latest("lightnovelworld", series_url, body + comment) == (423, "Chapter 423")
    assert read("lightnovelworld", series_url, body + comment).cover == cover
    without = judged("lightnovelworld", series_url, body)
    assert without.reading.latest is None
    assert without.reason == f"not the page we know, {len(body)} bytes", "SITE-035: logged with the body length"
