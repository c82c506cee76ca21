import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookmark_appliance.settings_file import UnreadableLine, parse_settings_file


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("KEY=plain", "plain"),
        ("KEY=", ""),
        ("KEY=''", ""),
        ('KEY=""', ""),
        ("  KEY = spaced out  ", "spaced out"),
        ("export KEY=exported", "exported"),
        ("export\tKEY=exported", "exported"),
        ("KEY=a=b==", "a=b=="),
        ("KEY=value # a comment", "value"),
        ("KEY=value\t# a comment", "value"),
        ("KEY=value# no comment", "value# no comment"),
        ("KEY=https://host/#fragment", "https://host/#fragment"),
        ("KEY= # a comment", ""),
        ("KEY=#no comment", "#no comment"),
        ("KEY=it's", "it's"),
        ("KEY='single # quoted'", "single # quoted"),
        ("KEY='single' # a comment", "single"),
        ("KEY='single'# a comment", "single"),
        (r"KEY='it\'s'", "it's"),
        (r"KEY='a\nb \\ $OTHER ${OTHER}'", r"a\nb \\ $OTHER ${OTHER}"),
        ("KEY=' kept '", " kept "),
        ('KEY="double # quoted"', "double # quoted"),
        ('KEY="double" # a "comment"', "double"),
        (r'KEY="a\"b\\c\td\$e\q"', 'a"b\\c\td$e\\q'),
        ("KEY=$OTHER", "other"),
        ("KEY=${OTHER}s", "others"),
        ('KEY="<$OTHER>"', "<other>"),
        ("KEY=$FROM_ENVIRONMENT", "environment"),
        ("KEY=pa$$word", "pa$word"),
        ("KEY=100$ or $5", "100$ or $5"),
        ("KEY=${MISSING-default}", "default"),
        ("KEY=${BLANK-default}", ""),
        ("KEY=${BLANK:-default}", "default"),
        ("KEY=${OTHER:-default}", "other"),
        ("KEY=${MISSING:-}", ""),
        ("KEY=ünïcode", "ünïcode"),
        ("KEY=a\u2028b\x85c", "a\u2028b\x85c"),
    ],
)
def test_a_line_is_read_as_compose_reads_it(line: str, value: str) -> None:
    """CFG-010: quotes, inline comments, escapes and references as in a Compose env file."""
    content = f"OTHER=other\nFROM_ENVIRONMENT=file\nBLANK=\n{line}\nAFTER=untouched\n".encode()
    parsed = parse_settings_file(content, {"FROM_ENVIRONMENT": "environment"})
    assert parsed.values["KEY"] == value
    assert parsed.values["AFTER"] == "untouched"
    assert parsed.unset_references == ()


def test_a_reference_that_nothing_sets_is_blank_and_reported() -> None:
    """CFG-010"""
    parsed = parse_settings_file(b"A=pre$NOBODY\nB=${NOBODY}$ELSE", {})
    assert parsed.values == {"A": "pre", "B": ""}
    assert parsed.unset_references == ("NOBODY", "ELSE")


@pytest.mark.parametrize(
    "content",
    [b"A=1\nB=2\n", b"A=1\r\nB=2\r\n", b"\xef\xbb\xbfA=1\nB=2", b"# words\n\n   \n  # more\nA=1\nB=3\nB=2\n"],
    ids=["unix", "windows", "byte order mark", "comments, blank lines and a repeated key"],
)
def test_line_ends_marks_and_comments_do_not_matter(content: bytes) -> None:
    """CFG-010: of a repeated key the last line wins."""
    assert parse_settings_file(content, {}).values == {"A": "1", "B": "2"}


@pytest.mark.parametrize(
    "line",
    [
        b"no assignment",
        b"KEY",
        b"=value",
        b"1KEY=value",
        b"KEY WORD=value",
        b"KEY-WORD=value",
        b'KEY="s3cret',
        b"KEY='s3cret",
        b'KEY="s3cret\\"',
        b'KEY="s3cret" trailing',
        b"KEY=${s3cret",
        b"KEY=${s3cret?message}",
        b"KEY=${A:-${s3cret}}",
        b"KEY=s3cret\xff",
    ],
)
def test_a_line_that_cannot_be_read_is_named_by_number_and_never_shown(line: bytes) -> None:
    """CFG-001: the error names the line; its value may be a secret."""
    with pytest.raises(UnreadableLine, match=r"^line 3\b") as caught:
        parse_settings_file(b"A=1\n\n" + line + b"\nB=2\n", {})
    assert "s3cret" not in str(caught.value)


@given(st.one_of(st.binary(max_size=200), st.text("A=\"'\\$ {}#-:n\nexport\t\r", max_size=60).map(str.encode)))
def test_no_file_breaks_the_reading(content: bytes) -> None:
    """CFG-001: there are values, or an error that names a line."""
    with contextlib.suppress(UnreadableLine):
        parse_settings_file(content, {})


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n'\\"), max_size=60))
def test_a_single_quoted_value_is_literal(value: str) -> None:
    """CFG-010"""
    assert parse_settings_file(f"KEY='{value}' # comment\n".encode(), {}).values == {"KEY": value}
