"""Bodies of the greatest length, each built to be as dear to read as a kind of body can be."""

from collections.abc import Iterator

from bookmark_appliance.page import MAX_BODY_BYTES

SERIES = {
    "asura": "https://asurascans.com/comics/a-4be1c07a",
    "comix": "https://comix.to/title/abc-x",
    "demonic": "https://demonicscans.org/manga/A",
    "kagane": "https://kagane.to/series/019d0001-1111-7001-8222-333344445501",
    "lightnovelworld": "https://lightnovelworld.net/novel/a/",
    "novelfull": "https://novelfull.com/a.html",
}
CHAPTER = {
    "asura": '<a href="/comics/a/chapter/{}">Chapter</a>',
    "comix": '<a href="/title/abc-x/1-chapter-{}">Chapter</a>',
    "demonic": '<a href="/chaptered.php?manga=1&amp;chapter={}">',
    "kagane": '{{"chapter_no":"{}","title":""}},',
    "lightnovelworld": '<a href="https://lightnovelworld.net/a-chapter-{}/">x</a>',
    "novelfull": '<a href="/a/chapter-{}.html">Chapter</a>',
}
FRAME = {
    "demonic": ('<div id="chapters-list">', "</div>"),
    "kagane": ('{"series_books":[', '{"chapter_no":null}]}'),
    "lightnovelworld": ("<ul>", '</ul><div id="wpd-threads">'),
}


def filled(part: str, before: str = "", after: str = "") -> bytes:
    """`part` as often as it fits into the longest body between `before` and `after`."""
    room = MAX_BODY_BYTES - len((before + after).encode())
    return (before + part * (room // len(part.encode())) + after).encode()


def numbered(part: str, before: str = "", after: str = "", count: int = 100_000) -> bytes:
    """`part` with 0, 1, 2 … in it, `count` times or as often as it fits."""
    body = before.encode()
    parts = (part.format(number).encode() for number in range(count))
    return b"".join([body, *_fitting(parts, MAX_BODY_BYTES - len(body) - len(after)), after.encode()])


def _fitting(parts: Iterator[bytes], room: int) -> Iterator[bytes]:
    for part in parts:
        room -= len(part)
        if room < 0:
            return
        yield part


def bodies(site: str) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of each."""
    before, after = FRAME.get(site, ("", ""))
    yield "own chapter links", numbered(CHAPTER[site], before, after)
    yield "links of as many slugs", numbered('<a href="/b{0}-chapter-{0}/">', before, after)
    yield "links of as many ids", numbered('<a href="/chaptered.php?manga={0}&chapter={0}">', before, after)
    yield "nested elements", filled("<div>")
    yield "one tag of 466,000 attributes", filled(' a1b2c=""', "<a", ">")
    yield "one meta of 466,000 attributes", filled(' a1b2c=""', "<meta", ">")
    yield "attributes without end", filled("<a href=x ")
    yield "opening brackets", filled("<")
    yield "closing brackets", filled(">")
    yield "end tags", filled("</template>")
    yield "references", filled("&amp;")
    yield "references in a cover", filled("&lt;", '<meta property="og:image" content="', '">')
    yield "references in links", filled('<a href="/chapter' + "&lt;" * 200 + '">')
    yield "unclosed quotes", filled('<a href="')
    yield "quotes across tags", filled('<a href="x>')
    yield "quotes in quotes", filled("<a b=\"'")
    yield "brackets in quotes", filled('<b a="<">')
    yield "an unclosed comment", filled("-", "<!--")
    yield "comment openings", filled("<!--")
    yield "comments", filled("<!--<-->")
    yield "bogus comments", filled("<!<")
    yield "script openings", filled("<script>")
    yield "scripts", filled("<script></script>", "_cf_chl_opt /@waf/")
    yield "templates", filled("<template>")
    yield "titles", filled("<title>")
    yield "headings", filled("<h1>")
    yield "metas", filled('<meta property="og:image" content="">')
    yield "one long address", filled("chapter", '<a href="', '">')
    yield "one long chapter address", filled("-chapter-1a", '<a href="/a', '">')
    yield "one long number", filled("1", '<a href="/a/chapter-', '/">')
    yield "digits", filled("1")
    yield "one string", filled("x", '"', '"')
    yield "arrays", filled("[")
    yield "objects", filled('{"a":')
    yield "empty objects", filled("{},", '{"series_books":[', "{}]}")
    yield "numbers", filled("1,", '{"series_id":[', "1]}")
    yield "covers", filled('{"image_id":"x"},', '{"series_covers":[', "{}]}")
    yield "status pairs", filled("<li>Status</li>")
    yield "white space in a status", filled(" ", "<li>Status", "</li>")
    yield "status rows", filled("<b>Status</b><a href=/status/x>")
    yield (
        "islands",
        filled(
            '<astro-island props=\'{"title":[0,"x"],"status":[0,"completed"]}\'>',
            "<h1>x</h1><link rel=canonical href=/comics/a>",
        ),
    )
    yield (
        "one island",
        filled("{},", '<link rel=canonical href=/comics/a><astro-island props=\'[{"status":[0,"completed"]},', "{}]'>"),
    )
    yield "JSON-LD blocks", filled('<script type="application/ld+json">{"creativeWorkStatus":1}</script>')
    yield (
        "a large blob",
        filled("{},", '<script id="initial-data">{"queries":{"[\\"manga\\",\\"detail\\",1]":[', "1]}}</script>"),
    )
    yield (
        "details",
        numbered(r'"[\"manga\",\"detail\",{}]":{{}},', '<script id="initial-data">{"queries":{', '"":{}}}</script>'),
    )
    yield "named elements", filled("<p class='wpd-threads-x chapters-list book'><img>")
    yield "words", filled("wpd-thread chapters-list book /@waf/ initial-data ")
    yield "invalid bytes", b"\xff" * MAX_BODY_BYTES
    yield "wide characters", filled("\U0001f600<div>")
