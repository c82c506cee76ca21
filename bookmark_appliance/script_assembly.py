"""The two userscripts, put together from the parts in userscripts/ (docs/decisions/0017-userscripts.md).

Standard library only: build.py uses it too.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from bookmark_appliance.resources import resource_folder

MANGA: Final = "manga-bookmark.user.js"
NOVEL: Final = "novel-bookmark.user.js"
SCRIPTS: Final = {MANGA: "manga", NOVEL: "novel"}
"""The name that each script is served under, and the Library it is for."""

_ORDER: Final = (
    "config.js",
    "pages.js",
    "adapters/*.js",
    "api.js",
    "progress.js",
    "store.js",
    "{library}/*.js",
    "queue.js",
    "checks.js",
    "panel.css",
    "panel.js",
    "reading.js",
    "navigation.js",
    "main.js",
)
"""What a part uses while it is loaded stands before it; functions may stand anywhere."""

_ADAPTER: Final = re.compile(
    r'^addAdapter\(\{\n  site: "(\w+)",\n  host: "([\w.-]+)",\n  library: "(\w+)",$', re.MULTILINE
)

_MATCH: Final = re.compile(r"^(.*)__MATCH__\n", re.MULTILINE)

_COMMENT: Final = re.compile(r"^[ ]*(?://.*|/\*\*(?:[^*]|\*(?!/))*\*/)\n", re.MULTILINE)

_END_COMMENT: Final = re.compile(r"(?<=[;{,()}]) // .*$", re.MULTILINE)

_SPACE: Final = re.compile(r" (=>|[!=]==|[-+<>]?=|&&|\|\||\?\?) |(?<=\)) (?={)")

_CSS_COMMENT: Final = re.compile(r"/\*(?:[^*]|\*(?!/))*\*/")

_CSS_SPACE: Final = re.compile(r"\s*([{};,])\s*|(?<=[a-z0-9])(:) ")
"""What a style sheet without strings is the same without."""


@dataclass(frozen=True, slots=True)
class Part:
    """One file: its path below userscripts/parts, and its text as it stands in a script."""

    name: str
    text: str


@cache
def assemble(script: str) -> str:
    """The script of this file name as it stands before a Reader's own copy is made of it.

    Raises KeyError for a name that is not in SCRIPTS.
    """
    library = SCRIPTS[script]
    parts = script_parts(library)
    hosts = [match[2] for part in parts if (match := _ADAPTER.search(part.text))]
    template = (resource_folder("userscripts") / "template.user.js").read_text(encoding="utf-8")
    return (
        _MATCH.sub(lambda line: "".join(f"{line[1]}https://{host}/*\n" for host in hosts), template)
        .replace("__NAME__", f"{library.capitalize()} Bookmark Sync")
        .replace("__FILE__", script)
        .replace("__LIBRARY__", library)
        .replace("__PARTS__", "".join(_compact(part.text) for part in parts))
    )


def script_parts(library: str) -> list[Part]:
    """What the script of this Library is made of, in order: it carries nothing that it does not use."""
    folder = resource_folder("userscripts") / "parts"
    return [part for pattern in _ORDER for part in _parts(folder, pattern.format(library=library), library)]


def _parts(folder: Path, pattern: str, library: str) -> Iterator[Part]:
    paths = sorted(folder.glob(pattern))
    if not paths and "*" not in pattern:
        raise FileNotFoundError(f"{pattern} is not in {folder}")
    for path in paths:
        text = path.read_text(encoding="utf-8")
        adapter = _ADAPTER.search(text)
        if path.suffix == ".css":
            text = _css_constant(path.stem, text)
        if adapter is None or adapter[3] == library:
            yield Part(str(path.relative_to(folder)), text)


def _css_constant(name: str, text: str) -> str:
    """`const PANEL_CSS = …`. Raises ValueError for a text that would end the constant."""
    if "`" in text or "${" in text:
        raise ValueError(f"{name}.css holds what would end its constant")
    dense = _CSS_SPACE.sub(r"\1\2", _CSS_COMMENT.sub("", text)).replace("}", "}\n")
    return f"const {name.upper()}_CSS = String.raw`\n{dense}`;\n"


def _compact(text: str) -> str:
    """`text` without comments, blank lines, indentation and the commonest spaces, a quarter of its length: no text of a
    script holds what looks like a comment or an operator, and none minds the white space."""
    bare = _END_COMMENT.sub("", _COMMENT.sub("", text))
    return _SPACE.sub(r"\1", re.sub(r"^\s+", "", bare, flags=re.MULTILINE))
