"""Images that cost what real ones cost, and images made to do harm."""

import io
import struct
import zlib

from PIL import Image


def noisy_photo(width: int, height: int, quality: int = 80) -> bytes:
    """A JPEG with detail at every scale: harder on an encoder than a drawn cover is."""

    def plane(octaves: int, roughness: float) -> Image.Image:
        made = Image.effect_noise((max(width >> 8, 2), max(height >> 8, 2)), 150)
        for shift in range(7, 7 - octaves, -1):
            size = (max(width >> shift, 2), max(height >> shift, 2))
            made = Image.blend(made.resize(size), Image.effect_noise(size, 150), roughness)
        return made.resize((width, height))

    photo = Image.merge("YCbCr", (plane(8, 0.15), plane(4, 0.2), plane(4, 0.2)))
    return encoded(photo, "JPEG", quality=quality)


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    """The bytes of a file."""
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def png_of_size(width: int, height: int) -> bytes:
    """A head that promises so many pixels, and none of them."""
    return b"\x89PNG\r\n\x1a\n" + _png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))


def filled_png(width: int, height: int) -> bytes:
    """All of them, in hardly any bytes."""
    packer = zlib.compressobj(9)
    row = b"\0" * (1 + 3 * width)
    data = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    return png_of_size(width, height) + _png_chunk(b"IDAT", data) + _png_chunk(b"IEND", b"")


def gif_of_size(width: int, height: int, frames: int = 1) -> bytes:
    """Frames of one pixel each, on a screen of that size."""
    screen = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
    frame = b"," + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\x02\x02\x44\x01\x00"
    return screen + frame * frames + b";"


def jpeg_of_size(width: int, height: int) -> bytes:
    """A small one whose head says that it is larger."""
    body = encoded(Image.new("RGB", (16, 16)), "JPEG")
    start = body.index(b"\xff\xc0") + 5
    return body[:start] + struct.pack(">HH", height, width) + body[start + 4 :]


def animated_webp(frames: int) -> bytes:
    """So many frames of 16 by 16."""
    still = encoded(Image.new("RGB", (16, 16), "red"), "WEBP", lossless=True)
    frame = bytes(6) + (15).to_bytes(3, "little") * 2 + (40).to_bytes(3, "little") + b"\0" + still[12:]
    body = _riff_chunk(b"VP8X", b"\x02\0\0\0" + (15).to_bytes(3, "little") * 2)
    body += _riff_chunk(b"ANIM", bytes(6)) + _riff_chunk(b"ANMF", frame) * frames
    return _riff_chunk(b"RIFF", b"WEBP" + body)


def _png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _riff_chunk(kind: bytes, data: bytes) -> bytes:
    return kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)
