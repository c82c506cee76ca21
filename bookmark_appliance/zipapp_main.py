"""The first step of the one file: is this the Python, and the machine, that it was built for?

build.py lays this module into the archive as `__main__.py`. It runs before anything is unpacked or imported,
on whatever Python is there: standard library only, and syntax that even Python 2.7 reads, so that every operator gets
one clear line instead of a failure deep inside an import (docs/TRAPS.md 24).
"""

import json
import os
import sys
import zipimport

BUILD_INFO = "site-packages/bookmark_appliance/build_info.json"
USAGE_EXIT = 2


def this_machine():  # type: () -> dict[str, str]
    """What compiled code depends on, in words; `glibc` is empty where the C library is another one."""
    try:
        glibc = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()[1]
    except (AttributeError, IndexError, OSError, ValueError):
        glibc = ""
    system = os.uname() if hasattr(os, "uname") else (sys.platform, "", "", "", "")
    return {
        # A free-threaded Python (3.13t) loads none of the ordinary build's modules; a debug build does.
        "python": "%d.%d%s" % (sys.version_info[0], sys.version_info[1], getattr(sys, "abiflags", "").replace("d", "")),
        "implementation": getattr(getattr(sys, "implementation", None), "name", "cpython"),
        "system": system[0],
        "machine": system[4],
        "glibc": glibc,
    }


def mismatch(target, here, file):  # type: (dict[str, str], dict[str, str], str) -> str
    """The one line for an operator whose Python or machine is not the one built for; empty when all is well."""
    alike = all(target[key] == here[key] for key in ("python", "implementation", "system", "machine"))
    if alike and bool(here["glibc"]) == bool(target["glibc"]) and _numbers(here["glibc"]) >= _numbers(target["glibc"]):
        return ""
    return "%s is built for %s or newer; this is %s. Start it with python%s on such a machine, or %s" % (
        os.path.basename(file),
        _in_words(target),
        _in_words(here),
        target["python"],
        "build it here: python3 build.py",
    )


def _in_words(machine):  # type: (dict[str, str]) -> str
    libc = "glibc " + machine["glibc"] if machine["glibc"] else "another C library than glibc"
    return "%(implementation)s %(python)s on %(system)s %(machine)s with " % machine + libc


def _numbers(version):  # type: (str) -> list[int]
    return [int(part) for part in version.split(".")] if version else []


def main():  # type: () -> None
    """Check, then hand over to the modules that may use all of the language."""
    archive = os.path.dirname(os.path.abspath(__file__))
    build_info = json.loads(zipimport.zipimporter(archive).get_data(os.path.join(archive, BUILD_INFO)).decode("utf-8"))
    trouble = mismatch(build_info["target"], this_machine(), archive)
    if trouble:
        sys.stderr.write(trouble + "\n")
        sys.exit(USAGE_EXIT)

    import zipapp_cache  # type: ignore[import-not-found]  # it does not even parse on an old Python

    zipapp_cache.run(archive)


if __name__ == "__main__":
    main()
