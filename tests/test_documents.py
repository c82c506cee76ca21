"""The documents are held against the code and the tests."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click

from bookmark_appliance.cli import commands
from bookmark_appliance.settings import SETTINGS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
NOT_YET_DUE = DOCS / "behaviours-not-yet-due.txt"
BEHAVIOUR = re.compile(r"\b(?:ADM|API|BRO|CFG|COV|DUE|FAIL|FAULT|LANE|MIG|OPS|SER|SES|SIG|SITE|TOK|UI|USR)-\d{3}\b")


def promised() -> list[str]:
    """The ids that docs/BEHAVIOURS.md defines, in its order."""
    return re.findall(r"^- ([A-Z]+-\d{3}) ", (DOCS / "BEHAVIOURS.md").read_text(), re.MULTILINE)


def named_by_tests() -> dict[str, str]:
    """Each id that a file of tests names, and one file that does."""
    files = [*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "tests").rglob("*.test.mjs")]
    return {behaviour: file.name for file in files for behaviour in BEHAVIOUR.findall(file.read_text())}


def not_yet_due() -> list[str]:
    """The entries of the one list, a line each; `#` begins a remark, `XY-001..XY-009` is a range with both its ends."""
    lines = [line.partition("#")[0].strip() for line in NOT_YET_DUE.read_text().splitlines()]
    return [entry for line in lines if line for entry in expanded(line)]


def expanded(entry: str) -> Iterator[str]:
    """The ids of a range; anything else as it is."""
    first, range_sign, last = entry.partition("..")
    if not range_sign:
        yield entry
        return
    group, start = first.split("-")
    assert last.startswith(group), f"not a range: {entry}"
    yield from (f"{group}-{number:03d}" for number in range(int(start), int(last[-3:]) + 1))


def test_behaviours_are_defined_once() -> None:
    ids = promised()
    assert sorted(ids) == sorted(set(ids))
    assert len(ids) > 400


def test_every_behaviour_is_named_by_a_test_or_listed_as_not_yet_due() -> None:
    missing = set(promised()) - named_by_tests().keys() - set(not_yet_due())
    assert not missing, f"no test names {sorted(missing)}"


def test_the_list_of_behaviours_not_yet_due_is_not_stale() -> None:
    listed = list(not_yet_due())
    assert sorted(listed) == sorted(set(listed))
    named = named_by_tests()
    stale = {behaviour: named[behaviour] for behaviour in listed if behaviour in named}
    assert not stale, f"take out of {NOT_YET_DUE.name}, a test names it: {stale}"


def test_tests_and_the_list_name_only_behaviours_that_exist() -> None:
    known = set(promised())
    unknown = {behaviour: file for behaviour, file in named_by_tests().items() if behaviour not in known}
    assert not unknown
    assert not {entry for entry in not_yet_due() if not entry.startswith("command ")} - known


def table(heading: str) -> list[list[str]]:
    """The cells of the table under a heading of docs/INTERFACE.md, its own head aside."""
    section = (DOCS / "INTERFACE.md").read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows[2:]]


def test_the_settings_are_those_of_the_interface_document() -> None:
    """CFG-001, CFG-002, CFG-004: the keys and, where the document gives one as a literal, the default."""
    documented: dict[str, str] = {}
    for keys, default, *_ in table("Settings"):
        literals = re.findall("`([^`]+)`", default) if re.fullmatch("`[^`]+`( / `[^`]+`)*", default) else []
        names = re.findall("`([A-Z_]+)`", keys)
        documented |= dict(zip(names, literals or [""] * len(names), strict=True))
    assert sorted(documented) == sorted(setting.key for setting in SETTINGS)
    for setting in SETTINGS:
        if setting.default and documented[setting.key]:
            assert setting.default == documented[setting.key], setting.key


def parsed_commands(command: click.Command, words: tuple[str, ...] = ()) -> dict[str, set[str]]:
    """Command -> its options, of the command line."""
    if isinstance(command, click.Group):
        inside = [parsed_commands(each, (*words, name)) for name, each in command.commands.items()]
        return {name: options for each in inside for name, options in each.items()}
    options = {word for parameter in command.params for word in parameter.opts if word.startswith("--")}
    return {" ".join(words): options}


def test_the_commands_are_those_of_the_interface_document() -> None:
    """Each command has exactly the options of the document, or is not yet due."""
    everywhere = {"--env-file", "--data-dir"}
    documented: dict[str, set[str]] = {}
    for cells, *_ in table("Commands"):
        for usage in re.findall("`([^`]+)`", cells):
            words = re.match(r"[a-z][a-z-]*( [a-z][a-z-]*)*", usage)
            assert words
            documented[words[0]] = set(re.findall(r"--[a-z-]+", usage))
    parsed = parsed_commands(commands)
    assert {f"command {name}" for name in documented.keys() - parsed.keys()} == {
        entry for entry in not_yet_due() if entry.startswith("command ")
    }
    for name, options in parsed.items():
        assert options - everywhere == documented[name] - everywhere, name


def test_links_between_documents_lead_somewhere() -> None:
    for document in [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "userscripts").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)", document.read_text()):
            assert "://" in target or (document.parent / target).exists(), f"{document.name} links to {target}"


def test_every_decision_is_in_the_index() -> None:
    index = (DOCS / "decisions" / "README.md").read_text()
    for page in sorted((DOCS / "decisions").glob("[0-9]*.md")):
        assert f"[{page.name[:4]}]({page.name})" in index


def pins(lock: str) -> dict[str, str]:
    """Package -> version, of a lock file."""
    return dict(re.findall(r"^([a-z0-9-]+)==([^ ]+) ", (ROOT / lock).read_text(), re.MULTILINE))


def test_locks_carry_a_hash_for_each_package_and_no_address() -> None:
    for lock in ROOT.glob("requirements*.lock"):
        text = lock.read_text()
        requirements = re.findall(r"^[a-z0-9-]+==.*?(?=^[a-z0-9-]+==|\Z)", text, re.MULTILINE | re.DOTALL)
        assert len(requirements) == len(pins(lock.name)) > 0
        assert all("--hash=sha256:" in requirement for requirement in requirements)
        assert not re.search(r"://|--(?:extra-)?index|--find-links|\bfile:", text)


def test_the_locks_agree_with_each_other_and_with_the_project() -> None:
    product, tools = pins("requirements.lock"), pins("requirements-build.lock")
    tests = pins("requirements-dev.lock")
    assert product.items() <= tests.items()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for requirement in [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]:
        name = re.match(r"[A-Za-z0-9_-]+", requirement)
        assert name
        assert name[0].lower().replace("_", "-") in tests, f"{requirement} is not locked"
    assert [f"hatchling=={tools['hatchling']}"] == project["build-system"]["requires"]


def test_every_package_has_its_reason() -> None:
    reasons = (DOCS / "decisions" / "0002-packages.md").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for requirement in [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]:
        name = re.match(r"[A-Za-z0-9_-]+", requirement)
        assert name
        assert re.search(rf"\b{name[0]}\b", reasons), f"0002-packages.md does not say why {name[0]} is here"
