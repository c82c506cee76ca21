"""Small valid images, one colour each, so that every Cover has bytes of its own."""

import base64
import struct
import zlib

WIDTH, HEIGHT = 120, 180

_GREY_JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDACgcHiMeGSgjISMtKygwPGRBPDc3PHtYXUlkkYCZlo+AjIqgtObDoKrarYqMyP/L2u71////m8H////6"
    "/+b9//j/wAALCAC0AHgBAREA/8QAFwABAQEBAAAAAAAAAAAAAAAAAAIBBf/EABUQAQEAAAAAAAAAAAAAAAAAAAAR/9oACAEBAAA/AOdCEIQhCEIQ"
    "hCEVCEIQhCEIQhCEbCEIQhCEIQhCEVCEIQhCEIQhCEbCEIQhCEIQhCEVCEIQhCEIQhCEVCEIQhCEIQhCEbCEIQhCEIQhCEVCEIQhCEIQhCEbCEIQ"
    "hCEIQhCEVCEIQhCEIQhCEVCEIQhCEIQhCEbCEIQhCEIQhCEVCEIQhCEIQhCEVCEIQhCEIQhCEbCEIQhCEIQhCEVCEIQhCEIQhCEbCEIQhCEIQhCE"
    "VCEIQhCEIQhCEVCEIQhCEIQhCEbCEIQhCEIQhCEVCEIQhCEIQhCEaAAAAD//2Q=="
)


def image(kind: str, name: str) -> bytes:
    """An image of `kind` (`image/jpeg`, `image/webp`, `image/png`) whose bytes depend on `name` alone."""
    return {"image/jpeg": _jpeg, "image/webp": _webp, "image/png": _png}[kind](name)


def _colour(name: str) -> tuple[int, int, int]:
    red, green, blue = zlib.crc32(name.encode()).to_bytes(4, "big")[:3]
    return red, green, blue


def _jpeg(name: str) -> bytes:
    """The grey picture with `name` in a comment segment."""
    comment = name.encode()
    return _GREY_JPEG[:2] + b"\xff\xfe" + struct.pack(">H", len(comment) + 2) + comment + _GREY_JPEG[2:]


def _png(name: str) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + bytes(_colour(name)) * WIDTH) * HEIGHT
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def _webp(name: str) -> bytes:
    """Lossless WebP: every prefix code has one symbol, so that no pixel takes a bit (RFC 9649, section 3)."""
    red, green, blue = _colour(name)
    bits = [(WIDTH - 1, 14), (HEIGHT - 1, 14), (0, 1), (0, 3)]  # size, no alpha, version
    bits += [(0, 1), (0, 1), (0, 1)]  # no transform, no colour cache, no meta prefix codes
    for symbol in (green, red, blue, 255):
        bits += [(1, 1), (0, 1), (1, 1), (symbol, 8)]
    bits += [(1, 1), (0, 1), (0, 1), (0, 1)]  # distances: never used
    number = shift = 0
    for value, width in bits:
        number |= value << shift
        shift += width
    data = b"\x2f" + number.to_bytes((shift + 7) // 8, "little")
    padded = data + b"\0" * (len(data) % 2)
    return b"RIFF" + struct.pack("<I", 12 + len(padded)) + b"WEBPVP8L" + struct.pack("<I", len(data)) + padded
