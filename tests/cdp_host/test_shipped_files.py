"""chrome/: the files that put the browser host on a machine ask for what the product offers, within its limits."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from bookmark_appliance.cli import commands

CHROME = Path(__file__).parent.parent.parent / "chrome"
COMPOSE = (CHROME / "compose.yaml").read_text()
UNIT = (CHROME / "bookmark-appliance-browser.service").read_text()
DOCKERFILE = (CHROME / "Dockerfile").read_text()


def parsed(arguments: list[str]) -> dict[str, object]:
    """What the command line understands; it raises what a person would be told."""
    command = commands.commands["browser"]
    assert isinstance(command, click.Command)
    return command.make_context("browser", arguments).params


def compose_value(key: str) -> str:
    """The value of a key of the one service."""
    [value] = re.findall(rf"^    {key}: (.+)$", COMPOSE, re.MULTILINE)
    return str(value)


def unit_values(key: str) -> list[str]:
    return re.findall(rf"^{key}=(.*)$", UNIT, re.MULTILINE)


def test_the_compose_file_keeps_the_limits() -> None:
    """BRO-020: the machine's own work goes first."""
    limits = {key: compose_value(key) for key in ("mem_limit", "memswap_limit", "shm_size")}
    assert limits == {"mem_limit": "512m", "memswap_limit": "1g", "shm_size": "128m"}
    assert (compose_value("oom_score_adj"), compose_value("cpu_shares")) == ("800", "512")


def test_the_compose_file_publishes_one_port_on_an_address_that_must_be_given() -> None:
    """BRO-020, BRO-019: and the zone must be given too; both have no default."""
    published = re.findall(r'^      - "(\S*BROWSER_BIND.*)"$', COMPOSE, re.MULTILINE)
    assert [re.sub(r"\$\{BROWSER_BIND:\?[^}]+\}", "BIND", line) for line in published] == ["BIND:9222:9222"]
    assert COMPOSE.count("ports:") == 1
    assert "network" not in re.sub("#.*|private network", "", COMPOSE)
    assert re.search(r'^      TZ: "\$\{BROWSER_TZ:\?[^}]+\}"$', COMPOSE, re.MULTILINE)
    assert re.search(r"^      - profile:/profile$", COMPOSE, re.MULTILINE)


def test_the_container_runs_the_file_as_a_command_of_the_product() -> None:
    """BRO-019: under a user without rights, with nothing between that and the file."""
    given = re.findall(r'"([^"]*)"', compose_value("command"))
    understood = parsed(given)
    assert (understood["profile"], understood["listen_anywhere"]) == (Path("/profile"), True)
    assert 'ENTRYPOINT ["bookmark-appliance", "browser"]' in DOCKERFILE
    assert DOCKERFILE.rindex("USER browser") > DOCKERFILE.rindex("apt-get")
    assert "google-chrome-stable" in DOCKERFILE
    assert not re.search("EXPOSE|google-chrome-stable=", DOCKERFILE)


def test_the_unit_keeps_the_limits() -> None:
    """BRO-020: in systemd's words, where 512 of 1,024 shares are a weight of 50, and swap is counted apart."""
    values = {
        key: unit_values(key) for key in ("MemoryMax", "MemorySwapMax", "OOMScoreAdjust", "CPUWeight", "KillMode")
    }
    assert values == {
        "MemoryMax": ["512M"],
        "MemorySwapMax": ["512M"],
        "OOMScoreAdjust": ["800"],
        "CPUWeight": ["50"],
        "KillMode": ["mixed"],
    }
    assert "size=128M" in unit_values("TemporaryFileSystem")[0]
    assert int(unit_values("TimeoutStopSec")[0]) > 20


def test_the_unit_runs_the_file_as_a_command_of_the_product() -> None:
    """BRO-020: without an address of the operator's it does not start."""
    [start] = unit_values("ExecStart")
    assert "BROWSER_BIND=" in unit_values("Environment")
    program, command, *arguments = shlex.split(start)
    assert (Path(program).name, command) == ("bookmark-appliance", "browser")
    listen = arguments.index("--listen") + 1
    assert arguments[listen] == "${BROWSER_BIND}:9222"
    parsed([*arguments[:listen], "100.64.0.1:9222", *arguments[listen + 1 :]])
    with pytest.raises(click.BadParameter):
        parsed([*arguments[:listen], ":9222", *arguments[listen + 1 :]])


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not here")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    copy = tmp_path / "bookmark-appliance-browser.service"
    copy.write_text(UNIT.replace("/usr/local/bin/bookmark-appliance", sys.executable))
    found = subprocess.run(["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stdout + found.stderr) == (0, "")


def test_the_guide_names_commands_that_exist() -> None:
    guide = (CHROME / "README.md").read_text()
    for line in re.findall(r"bookmark-appliance(?:\.pyz)? browser (--.*)$", guide, re.MULTILINE):
        parsed(shlex.split(line))
    assert len(re.findall(r"bookmark-appliance(?:\.pyz)? browser --", guide)) >= 1
