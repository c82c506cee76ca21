"""The Series page of each Site, in the shape that its readers rely on; invented text throughout."""

import json
from collections.abc import Callable
from html import escape

from tests.simulated_sites.world import Series

JSD = "<script>var s=document.createElement('script');s.src='/cdn-cgi/challenge-platform/scripts/jsd/main.js'</script>"
"""Stands in ordinary pages and is no challenge."""

ASSETS = {
    "/assets/site.css": ("text/css", "#root { margin: 1em }"),
    "/assets/site.js": ("text/javascript", "document.documentElement.dataset.scripts = 'ran';"),
    "/assets/shell.js": (
        "text/javascript",
        """fetch('/api/v2' + location.pathname.replace(/\\/$/, '')).then(answer => answer.json()).then(series => {
  const chapters = series.series_books.map(book => `<li>${book.chapter_no}</li>`).join('');
  document.getElementById('root').innerHTML = `<h1>${series.title}</h1><ul>${chapters}</ul>`;
});""",
    ),
    "/assets/router.js": (
        "text/javascript",
        """addEventListener('click', (event) => {
  const link = event.target.closest('a[data-title]');
  if (!link) return;
  event.preventDefault();
  history.pushState({...link.dataset}, '', link.href);
  setTimeout(show, 60, link.dataset);
}, true);
addEventListener('popstate', ({state}) => state && setTimeout(show, 60, state));
function show({title, heading}) {
  document.title = title;
  document.querySelector('h1').textContent = heading;
  document.querySelector('meta[property="og:title"]')?.setAttribute('content', title);
  scrollTo(0, 0);
}""",
    ),
}
"""What pages that live on scripts load beside themselves: address to content type and body."""

STRICT = (
    ("cross-origin-embedder-policy", "require-corp"),
    ("content-security-policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'"),
)
"""For `World.policies`: what a Site may set that hinders a guest in its page."""


def series_page(series: Series) -> str:
    """The HTML page of `series` as it is now."""
    return _PAGES[series.site](series)


def chapter_page(series: Series, chapter: str) -> str:
    """Where a chapter is read. asura and comix go on from there without loading: the address first, the words later."""
    routed = series.site in ("asura", "comix")
    links = "".join(
        f'<li><a href="{series.chapter_target(each)}"'
        + (f' data-title="{escape(_chapter_title(series, each))}" data-heading="Chapter {each}"' if routed else "")
        + f">Chapter {each}</a></li>"
        for each in series.chapters
    )
    router = "<script src='/assets/router.js'></script>" if routed else ""
    og = f'<meta property="og:title" content="{escape(_chapter_title(series, chapter))}">'
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(_chapter_title(series, chapter))}'
        f"</title>{'' if series.site in ('comix', 'novelfull') else og}"
        f'<meta name="viewport" content="width=device-width,initial-scale=1"></head><body><h1>Chapter {chapter}</h1>'
        f"<a class='truyen-title' href='{series.target}'>{escape(series.title)}</a><ol>{links}</ol>"
        f"<div style='height:6000px'>Panels</div>{router}</body></html>"
    )


def _chapter_title(series: Series, chapter: str) -> str:
    words = {
        "asura": f" Chapter {chapter} - Read Online | Asura Scans",
        "comix": f" · Ch.{chapter}",
        "demonic": f" Chapter {chapter}",
    }
    return series.title + words.get(series.site, f" - Chapter {chapter}")


def kagane_json(series: Series) -> str:
    """What kagane's `/api/v2/series/<uuid>` answers."""
    books = [
        {
            "book_id": f"019d03e9-1111-73e9-8222-{position:012d}",
            "title": "Notice" if number is None else "",
            "chapter_no": number,
            "volume_no": None,
            "sort_no": float(position),
        }
        for position, number in enumerate([None, *series.chapters])
    ]
    image_id = series.cover_address.split("/")[-2]
    return json.dumps(
        {
            "series_id": series.slug,
            "title": series.title,
            "format": "Manhwa",
            "publication_status": "Completed" if series.completed else "Ongoing",
            "upload_status": "Ongoing",
            "series_covers": [{"image_id": "not-an-id"}, {"image_id": image_id}],
            "series_books": books,
            "related": [{"series_id": "elsewhere", "series_books": [{"chapter_no": "900"}]}],
        }
    )


_LOADED = '<link rel="stylesheet" href="/assets/site.css"><script src="/assets/site.js" defer></script>'


def _page(series: Series, head: str, body: str) -> str:
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(series.title)}</title>\n'
        f"{head}\n</head>\n<body>\n{body}\n{JSD}\n</body>\n</html>\n"
    )


def _og(series: Series) -> str:
    return (
        f'<meta property="og:title" content="{escape(series.title)}">\n'
        f'<meta property="og:image" content="{escape(series.cover_address)}">\n'
        f'<link rel="canonical" href="{series.address}">'
    )


def _asura(series: Series) -> str:
    props = {"title": [0, series.title], "status": [0, "completed" if series.completed else "ongoing"]}
    other = {"title": [0, "Warden of Salt"], "status": [0, "completed"]}
    links = "\n".join(
        f'<a href="{series.target}/chapter/{number}"><span>Chapter {number}</span></a>'
        for number in reversed(series.chapters)
    )
    islands = "\n".join(
        f'<astro-island props="{escape(json.dumps(each, separators=(",", ":")))}" ssr></astro-island>'
        for each in (props, other)
    )
    return _page(
        series,
        _og(series),
        f"<h1>{escape(series.title)}</h1>\n{islands}\n<section><h2>Chapters</h2>\n{links}\n</section>\n"
        '<aside><a href="/comics/warden-of-salt-4be1c07a/chapter/999">Chapter 999</a></aside>',
    )


def _demonic(series: Series) -> str:
    links = "\n".join(
        f'<li><a class="chplinks" href="/chaptered.php?manga={series.number}{("&", "&amp;")[i % 2]}chapter={number}">'
        f" Chapter {number} <span>2026-08-01</span></a></li>"
        for i, number in enumerate(reversed(series.chapters))
    )
    status = "Completed" if series.completed else "Ongoing"
    return _page(
        series,
        _og(series),
        f"<h1>{escape(series.title)}</h1>\n<div id='manga-info-stats'>"
        f"<div class='flex'><li>Status</li>\n<li>{status}</li></div></div>\n<div id='chapters-list'>\n{links}\n</div>\n"
        "<div class='strip'><a href='/chaptered.php?manga=9&chapter=3670'>Chapter 3670</a></div>",
    )


def _comix(series: Series) -> str:
    hid = series.slug.partition("-")[0]
    latest = max(series.chapters, key=float, default=None)
    detail = {
        "id": series.number,
        "hid": hid,
        "title": series.title,
        "status": "finished" if series.completed else "releasing",
        "poster": {"medium": series.cover_address, "large": series.cover_address.replace("@280", "")},
        "latestChapterUrl": latest and f"{series.target}/27{series.number}-chapter-{latest}",
    }
    data = {"page": "manga", "queries": {json.dumps(["manga", "detail", hid], separators=(",", ":")): detail}}
    blob = json.dumps(data).replace("</", "<\\/")
    head = f'{_LOADED}\n<script type="application/json" id="initial-data">{blob}</script>'
    return _page(series, head, f"<div id='app'><img src='{escape(series.cover_address)}' alt=''></div>")


def _kagane(series: Series) -> str:
    return _page(series, _LOADED, "<div id='root'></div><script src='/assets/shell.js'></script>")


def _novelfull(series: Series) -> str:
    def links(numbers: list[str]) -> str:
        return "\n".join(
            f'<li><a href="/{series.slug}/chapter-{number}-a-door.html">Chapter {number}</a></li>' for number in numbers
        )

    status = "Completed" if series.completed else "Ongoing"
    cover = series.cover_address.removeprefix("https://novelfull.com")
    return _page(
        series,
        f'<meta name="image" content="{cover}">\n<link rel="canonical" href="{series.address}">',
        "<nav><ul><li><a href='/status/Completed'>Completed Novel</a></li></ul></nav>\n"
        f"<div class='info'><div><h3>Status:</h3><a href='/status/{status}'>{status}</a></div></div>\n"
        f"<h3 class='title'>{escape(series.title)}</h3>\n"
        f"<div class='l-chapter'><ul class='l-chapters'>\n{links(series.chapters[:-6:-1])}\n</ul></div>\n"
        f"<div id='list-chapter'><ul class='list-chapter'>\n{links(series.chapters[:50])}\n</ul></div>\n"
        "<ul class='pagination'><li class='last'><a href='?page=31' data-page='30'>Last</a></li></ul>",
    )


def _lightnovelworld(series: Series) -> str:
    status = "CompletedActionStatus" if series.completed else "ActiveActionStatus"
    book = {"@type": "Book", "name": series.title, "creativeWorkStatus": f"https://schema.org/{status}"}
    facts = json.dumps({"@context": "https://schema.org", "@graph": [book]})
    links = "\n".join(
        f'<li><a href="https://lightnovelworld.net/{series.slug}-wn-chapter-{number}/">Chapter {number}</a></li>'
        for number in reversed(series.chapters)
    )
    return _page(
        series,
        f'{_og(series)}\n<script type="application/ld+json">{facts}</script>\n'
        "<style>#wpd-threads .wpd-comment{margin:0}</style>",
        f"<a href='#wpd-threads'>2 Comments</a>\n<article><h1 class='entry-title'>{escape(series.title)}</h1>\n"
        f"<div class='chapter-list'><ul>\n{links}\n</ul></div></article>\n"
        "<div id='comments'><div id='wpd-threads' class='wpd-thread-wrapper'><div class='wpd-comment-text'>"
        f"<a href='https://lightnovelworld.net/{series.slug}-wn-chapter-4000/'>skip to 4000</a></div></div></div>",
    )


_PAGES: dict[str, Callable[[Series], str]] = {
    "asura": _asura,
    "comix": _comix,
    "demonic": _demonic,
    "kagane": _kagane,
    "lightnovelworld": _lightnovelworld,
    "novelfull": _novelfull,
}
