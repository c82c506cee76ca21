"""What counts as an image: the header's word, and the bytes'."""

import struct

import pytest

from bookmark_appliance.covers.image_type import (
    CoverRefused,
    Image,
    checked_image,
    declared_type,
    image_type,
)
from bookmark_appliance.page import MAX_IMAGE_BYTES
from tests.simulated_sites.images import image

GIF = b"GIF89a\x01\x00\x01\x00\x00\x00\x00;"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


def iso_media(*brands: bytes, version: bytes = bytes(4), size: int | None = None) -> bytes:
    """A file of the kind AVIF is one of: the first brand is the major one."""
    words = [brands[0], version, *brands[1:]]
    length = 8 + 4 * len(words) if size is None else size
    return struct.pack(">I", length) + b"ftyp" + b"".join(words) + b"\0\0\0\x08mdat"


AVIF = iso_media(b"avif", b"avif", b"mif1", b"miaf")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (image("image/jpeg", "x"), "image/jpeg"),
        (b"\xff\xd8\xff\xe1\x00\x10Exif\0\0", "image/jpeg"),
        (image("image/png", "x"), "image/png"),
        (image("image/webp", "x"), "image/webp"),
        (b"RIFF\x1a\x00\x00\x00WEBPVP8 \x0e\x00\x00\x00", "image/webp"),
        (b"RIFF\n\n\n\nWEBPVP8X\x0a\x00\x00\x00", "image/webp"),
        (GIF, "image/gif"),
        (GIF.replace(b"89a", b"87a"), "image/gif"),
        (AVIF, "image/avif"),
        (iso_media(b"avis", b"avis", b"msf1"), "image/avif"),
        (iso_media(b"mif1", b"mif1", b"avif", b"miaf"), "image/avif"),
    ],
)
def test_the_first_bytes_tell_the_type(body: bytes, expected: str) -> None:
    """COV-019, COV-020: five types."""
    assert image_type(body) == expected


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xd8",
        b"\x89PNG\r\n\x1a",
        b"\x89PNG\n\x1a\n" + bytes(20),  # its line end was converted on the way
        b"GIF88a" + bytes(20),
        b"RIFF\x1a\x00\x00\x00WAVEfmt ",
        b"RIFF\x1a\x00\x00\x00WEBP",
        b"RIFF\x1a\x00\x00\x00WEBPEXIF",
        SVG,
        b'<?xml version="1.0"?>' + SVG,
        b"\xef\xbb\xbf" + SVG,
        b"<!DOCTYPE html><html><title>Just a moment...</title></html>",
        b"<!--" + image("image/jpeg", "x"),
        b"\n" + image("image/png", "x"),
        b" " + GIF,
        iso_media(b"heic", b"mif1", b"heic"),
        iso_media(b"isom", b"isom", b"mp42"),
        iso_media(b"mif1", version=b"avif"),
        iso_media(b"heic", b"avif", size=16),  # what follows the first box
        iso_media(b"avif", size=0),
        b"BM" + bytes(60),
        b"II*\0" + bytes(60),
        b"\0\0\x01\0" + bytes(60),
        b"\0\0\0\x0cJXL \r\n\x87\n",
        b"\xff\x0a" + bytes(60),
        b"%PDF-1.7",
        b"PK\x03\x04",
        b"\x1f\x8b\x08" + bytes(60),
        b"#!/bin/sh",
    ],
)
def test_nothing_else_is_an_image(body: bytes) -> None:
    """COV-019, COV-020: SVG never; truncated heads, text, other pictures, archives."""
    assert image_type(body) is None
    with pytest.raises(CoverRefused, match="not the bytes"):
        checked_image("image/jpeg", body)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("image/jpeg", "image/jpeg"),
        ("image/jpg", "image/jpeg"),
        ("image/webp", "image/webp"),
        ("image/png", "image/png"),
        ("image/avif", "image/avif"),
        ("image/gif", "image/gif"),
        (" IMAGE/JPG ; q=1", "image/jpeg"),
        ("image/png;charset=utf-8", "image/png"),
        ("", None),
        ("image/", None),
        ("image/*", None),
        ("image/svg+xml", None),
        ("image/svg+xml, image/png", None),
        ("image/png, text/html", None),
        ("image/x-icon", None),
        ("image/jpegs", None),
        ("text/html", None),
        ("application/octet-stream", None),
        ("binary/octet-stream", None),
    ],
)
def test_the_header_must_name_one_of_them(header: str, expected: str | None) -> None:
    """COV-019, COV-020: image/jpg is image/jpeg."""
    assert declared_type(header) == expected
    if expected is None:
        with pytest.raises(CoverRefused, match="declared"):
            checked_image(header, GIF)


def test_what_is_kept_is_the_type_of_the_bytes() -> None:
    """COV-020: a header may name another accepted type."""
    jpeg = image("image/jpeg", "x")
    assert checked_image("image/webp", jpeg) == Image(jpeg, "image/jpeg")
    assert checked_image("image/jpg", AVIF) == Image(AVIF, "image/avif")


def test_a_file_that_is_an_image_and_something_else_is_the_image() -> None:
    """COV-020: the first bytes decide, and the type that is served with them is never one that runs scripts."""
    polyglots = [
        (b"GIF89a/*" + b"\0" * 20 + b"*/=1;alert(1)//", "image/gif"),
        (image("image/jpeg", "x") + b"<script>alert(1)</script>", "image/jpeg"),
        (image("image/png", "x") + b"PK\x03\x04" + bytes(40), "image/png"),
        (image("image/webp", "x") + b"%PDF-1.7", "image/webp"),
    ]
    for body, expected in polyglots:
        assert checked_image("image/jpeg", body).content_type == expected


def test_ten_mebibytes_is_the_most() -> None:
    """COV-025: whichever way they came."""
    assert len(checked_image("image/gif", GIF.ljust(MAX_IMAGE_BYTES, b"\0")).body) == 10_485_760
    with pytest.raises(CoverRefused, match="more than 10 MiB"):
        checked_image("image/gif", GIF.ljust(MAX_IMAGE_BYTES + 1, b"\0"))
