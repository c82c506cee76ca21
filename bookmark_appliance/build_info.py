"""Which build this is: read from the stamp that build.py lays beside this module, or `development` in a checkout."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bookmark_appliance import __version__

DEVELOPMENT = "development"

_STAMP = Path(__file__).with_name("build_info.json")


@dataclass(frozen=True, slots=True)
class BuildInfo:
    """`built_at` is unix milliseconds, 0 in a checkout; `commit` is `development` there, `unknown` without git."""

    version: str
    built_at: int
    commit: str


@cache
def build_info() -> BuildInfo:
    """The stamp of the running code; the same in every process of one build and after every unpacking (USR-004)."""
    if not _STAMP.is_file():
        return BuildInfo(__version__, 0, DEVELOPMENT)
    stamp = json.loads(_STAMP.read_bytes())
    return BuildInfo(stamp["version"], stamp["built_at"], stamp["commit"])
