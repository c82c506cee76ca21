"""The tag reader: what is markup, what is text, and what an attribute says."""

import pytest

from bookmark_appliance.lanes.entities import unescape
from bookmark_appliance.lanes.flatten import MAX_BRACKETS, MAX_INTERRUPTIONS, flatten
from bookmark_appliance.lanes.tags import MAX_LINKS, MAX_TAGS, Markup


def links(body: str) -> list[str]:
    return [line.strip("\"'") for line in Markup(body).chapter_links().split("\n") if line]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("a&amp;b&#38;c&#x26;d&AMP;e", "a&b&c&d&e"),
        ("?manga=1&chapter=2", "?manga=1&chapter=2"),
        ("?a=1&copy=2&para=3&region=eu&notit;&copyx", "?a=1&copy=2&para=3&region=eu&notit;&copyx"),
        ("&copy;&copy &eacute&lt;&gt;&nosuch;&", "©© é<>&nosuch;&"),
        ("&amp;lt; &amp;amp; &#38;lt; &amp;#38;", "&lt; &amp; &lt; &#38;"),
        ("&quot;&quot &#39;&apos;", "\"\" ''"),
        ("&#128;&#xD800;&#x110000;&#", "€\ufffd\ufffd&#"),
        ("&#0000000000000000000000065;&#x000000041;", "AA"),
        ("&#" + "9" * 5000 + ";", "&#" + "9" * 5000 + ";"),
        ("&" + "a" * 5000 + ";", "&" + "a" * 5000 + ";"),
        ("x&#10;y&NewLine;z", "x y z"),
        ("&hellip;&CounterClockwiseContourIntegral;", "…∳"),
    ],
)
def test_references_in_attributes_follow_the_rule_for_attributes(written: str, read: str) -> None:
    """SITE-038, SITE-014: a raw `&` in an address survives, whatever name follows it."""
    assert unescape(written) == read


@pytest.mark.parametrize(
    "body",
    [
        "<!-- {} -->",
        "<!-- {} --!>",
        "<!-- > {}",
        "<!-- -- > {} -->",
        "<script>{}</script>",
        "<SCRIPT x='>'>{}</SCRIPT >",
        "<script>{}",
        "<style>{}</style>",
        "<title>{}</title>",
        "<textarea>{}</textarea>",
        "<iframe>{}</iframe>",
        "<template>{}</template>",
        "<template><template></template>{}</template>",
        "<template>{}",
        "<![CDATA[ {} ]]>",
        "<?php {} ?>",
        "</ {} >",
        "<p title='{}'>",
        "<p title = '{}'>",
        "<p title='x {}",
        "<p a='>' b='{}'>",
        "<p a=1 b='<' c='{}'>",
        "</p title='{}'>",
        "<a data-href=/chapter/1 title='{}'>",
    ],
)
def test_what_is_not_markup_holds_no_links(body: str) -> None:
    assert links(body.replace("{}", '<a href="/chapter/900">')) == []
    assert links(body.replace("{}", '<a href="/chapter/900">') + "</script></p>") == []


@pytest.mark.parametrize(
    "body",
    [
        "{}",
        "<!-- x -->{}",
        "<!-->{}-->",
        "<!--->{}-->",
        "<!doctype html>{}",
        "<script></script>{}",
        "<script><!-- </script>{}",
        "<scripts>{}",
        "<noscript>{}</noscript>",
        "<template></template>{}",
        "</template>{}",
        "<p title='<!--'>{}",
        '<p title="it\'s">{}',
        "<p it's>{}<p isn't>",
        "<p a=it's>{}<p isn't>",
        "<p title='a=\"b'>{}",
        "a < b > c <3 {}",
        'x="y {}',
        "<p{}",
        "< p title='{}'>",
        "<div><div></p>{}",
        "<p a=1 a=2 b c='d'e=\"f\"/>{}",
    ],
)
def test_broken_markup_does_not_hide_a_link(body: str) -> None:
    assert links(body.replace("{}", '<a href="/chapter/1">')) == ["/chapter/1"]


@pytest.mark.parametrize(
    ("tag", "address"),
    [
        ("<a href=/chapter/1>", "/chapter/1"),
        ("<A\n\tHREF\n=\n'/chapter/1' >", "/chapter/1"),
        ('<a/href="/chapter/1"/>', "/chapter/1"),
        ("<a b c=d e='f' g=\"h\" href=/chapter/1>", "/chapter/1"),
        ("<a href='/x' href='/chapter/1'>", None),
        ("<a href='/chapter/1' href='/chapter/2'>", "/chapter/1"),
        ("<a xhref='/chapter/1'>", None),
        ("<a x:href='/chapter/1'>", None),
        ("<a href>", None),
        ("<a href=''>", None),
        ("<area href='/chapter/1'>", None),
        ("<a title=\" href='/chapter/9'\" href='/chapter/1'>", "/chapter/1"),
        ("<a href='/x\n/chapter/1\n'>", "/x/chapter/1"),
        ("<a href='/chapter/1&#10;/chapter/2'>", "/chapter/1 /chapter/2"),
        ('<a href="/it\'s/chapter/1">', "/it's/chapter/1"),
        ("<a hrefx='/y' href='/chapter/1'>", "/chapter/1"),
    ],
)
def test_the_address_of_an_anchor_is_its_own_first_href(tag: str, address: str | None) -> None:
    assert links(tag) == ([address] if address else [])


def test_attributes_are_read_as_written() -> None:
    """SITE-038: any order, any quotes, any case, values with brackets whole; of equal names the first."""
    (tag,) = Markup("""<META Content='a > b &amp; "c"' NAME = x name=y z>""").tags("meta")
    assert (tag.name, tag.attribute("content"), tag.attribute("name")) == ("meta", 'a > b & "c"', "x")
    assert tag.attribute("z") == tag.attribute("missing") == ""
    assert tag.attribute("content", limit=5) == ""


def test_tags_are_found_by_a_word_in_their_attributes() -> None:
    body = "word<p>word</p><!-- <p id=word> --><word><b\nclass='x word'><i id=word word word><a href='#word'>"
    assert [tag.name for tag in Markup(body).tags_naming("word")] == ["b", "i", "a"]


def test_raw_elements_keep_their_text() -> None:
    elements = Markup("<title>A &amp; <b></title><script id='a>b'>if (a<b) {}</script><style>x").raw_elements
    assert [(element.name, element.text) for element in elements] == [
        ("title", "A &amp; <b>"),
        ("script", "if (a<b) {}"),
        ("style", "x"),
    ]
    assert elements[1].attribute("id") == "a>b"


def test_a_flat_page_keeps_every_position() -> None:
    body = "<p a='<>'>x<!-- <b> --><script a='>'>1<2</script><template><b></template></p>"
    flat, _ = flatten(body)
    assert flat == "<p a='  '>x            <script a=' '>   </script>                       ></p>"


@pytest.mark.parametrize(
    ("part", "most"),
    [("<", MAX_BRACKETS), ("<!---->", MAX_INTERRUPTIONS), ('<a href="/chapter/1">', MAX_LINKS)],
)
def test_a_page_beyond_all_measure_reads_as_empty(part: str, most: int) -> None:
    """SITE-006: no chapter rather than a wrong or a late one."""
    assert links(part * (most - 1) + '<a href="/chapter/2">')[-1] == "/chapter/2"
    assert links(part * (most + 1) + '<a href="/chapter/2">') == []


def test_no_more_tags_of_a_kind_than_a_page_may_have() -> None:
    markup = Markup("<meta id=x>" * (MAX_TAGS + 1))
    assert len(markup.metas) == len(list(markup.tags_naming("x"))) == MAX_TAGS
