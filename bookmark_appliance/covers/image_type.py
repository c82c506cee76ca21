"""What counts as an image here, by its header and by its first bytes (COV-019, COV-020, COV-025)."""

import re
from dataclasses import dataclass
from typing import Final

from bookmark_appliance.page import MAX_IMAGE_BYTES

# SVG is a document that runs scripts, and never an image here.
_FIRST_BYTES: Final = {
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/webp": re.compile(rb"RIFF.{4}WEBPVP8[ LX]", re.DOTALL),
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/gif": re.compile(rb"GIF8[79]a"),
}

_LONGEST_BRANDS: Final = 256
"""Bytes of the first box that are looked through; written files have some forty."""


class CoverRefused(Exception):
    """What was asked for is not fit to be a Cover, or may not be asked for; one short phrase without an address."""


@dataclass(frozen=True, slots=True)
class Image:
    """Bytes that were looked at; `content_type` is their own, whatever was declared. Made by `checked_image` alone."""

    body: bytes
    content_type: str


def checked_image(header: str, body: bytes) -> Image:
    """The image that came under the Content-Type `header`, as every route hands it on. Raises CoverRefused."""
    if len(body) > MAX_IMAGE_BYTES:
        raise CoverRefused("more than 10 MiB")
    if declared_type(header) is None:
        raise CoverRefused("declared to be no image that we take")
    content_type = image_type(body)
    if content_type is None:
        raise CoverRefused("not the bytes of an image that we take")
    return Image(body, content_type)


def declared_type(header: str) -> str | None:
    """The accepted image type that a Content-Type names, without its parameters; None for any other."""
    named = header.partition(";")[0].strip().lower()
    declared = "image/jpeg" if named == "image/jpg" else named
    return declared if declared in _FIRST_BYTES or declared == "image/avif" else None


def image_type(body: bytes) -> str | None:
    """The accepted image type that `body` begins as; None for anything else.

    What stands further on is not looked at: a file that is an image and something else is served as the image, under
    `nosniff`.
    """
    for kind, first_bytes in _FIRST_BYTES.items():
        if first_bytes.match(body):
            return kind
    return "image/avif" if _is_avif(body) else None


def _is_avif(body: bytes) -> bool:
    """An ISO media file whose first box names AVIF among its brands, the second word being a version."""
    if body[4:8] != b"ftyp":
        return False
    box = body[: min(int.from_bytes(body[:4], "big"), _LONGEST_BRANDS)]
    brands = {box[start : start + 4] for start in (8, *range(16, len(box), 4))}
    return not brands.isdisjoint((b"avif", b"avis"))
