"""Make a small WebP of the image on standard input, under hard limits; it goes to standard output.

A script of its own, started with `python -I -S`: decoders read what strangers sent, so they run where a crash, a hang
or an endless appetite ends nothing but this process. Arguments: the folder of Pillow's package, the width in pixels.
Exit status 0 only when all of it was written.
"""

import importlib
import io
import os
import resource
import signal
import sys
from typing import Final

MEMORY_BYTES: Final = 512 * 1024 * 1024
CPU_SECONDS: Final = 10
ALARM_SECONDS: Final = 30
MOST_PIXELS: Final = 40_000_000
"""Of these, four bytes each, memory holds two copies; WebP's decoder takes more, and gets to about 25 million."""

_FORMATS: Final = ("JPEG", "PNG", "WEBP", "AVIF", "GIF")
_LONGEST: Final = 3
"""Times the width: a strip that is longer is made narrower."""
_QUALITIES: Final = (78, 60, 40)
"""The first that comes to no more than _BYTES for a square of the width; the last whatever it comes to."""
_BYTES: Final = 5 / 12
"""24,000 of 240 pixels."""
_SWAPPED: Final = (5, 6, 7, 8)
"""EXIF orientations that are seen lying on their side."""


def main() -> None:
    """Exits non-zero, often with a traceback on standard error, when there is nothing to be had."""
    for limit, value in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (value, value))
    signal.alarm(ALARM_SECONDS)  # also where nobody is left to end this
    os.nice(10)
    sys.path.insert(0, sys.argv[1])
    from PIL import AvifImagePlugin, Image, ImageOps  # found only now

    for late in ("copy", "PIL.MpoImagePlugin", "PIL.TiffImagePlugin", "PIL.WebPImagePlugin"):
        importlib.import_module(late)  # what Pillow would import when it needs it
    Image.preinit()
    AvifImagePlugin.DEFAULT_MAX_THREADS = 1
    source = io.BytesIO(sys.stdin.buffer.read())
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))  # none but the three that are open

    image = Image.open(source, formats=_FORMATS)
    if image.width * image.height > MOST_PIXELS:
        sys.exit("more than 40 million pixels")
    width = int(sys.argv[2])
    box = (width, width * _LONGEST)
    if image.getexif().get(0x0112) in _SWAPPED:
        box = box[::-1]
    # Decoded no larger than needed where the format can, and never made larger; of several frames the first.
    image.thumbnail(box, Image.Resampling.LANCZOS, reducing_gap=2.0)
    upright = ImageOps.exif_transpose(image)
    small = upright.convert("RGBA" if upright.has_transparency_data else "RGB")
    for quality in _QUALITIES:
        made = io.BytesIO()
        small.save(made, "WEBP", quality=quality, icc_profile=b"")
        if made.tell() <= width * width * _BYTES:
            break
    sys.stdout.buffer.write(made.getvalue())


if __name__ == "__main__":
    main()
