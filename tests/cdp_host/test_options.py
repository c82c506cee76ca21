"""What the browser host may be started with, and how it starts Chrome: no socket, no Chrome."""

from pathlib import Path
from zoneinfo import available_timezones

import click
import pytest
from click.testing import CliRunner

from bookmark_appliance.cdp.chrome_command import ChromeOptions, command, environment, user_agent
from bookmark_appliance.cdp.host_options import ListenAddress, browser_zone, listen_address, plain_address
from bookmark_appliance.cli import commands
from bookmark_appliance.cli import run as run_command
from bookmark_appliance.config import find_zone
from bookmark_appliance.settings import SettingsError

OPTIONS = ChromeOptions(Path("/opt/chrome"), Path("/data/profile"), "Asia/Jakarta", {}, None)
VERSION = "Google Chrome 156.0.8078.108 \n"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("100.101.102.103:9222", ListenAddress("100.101.102.103", 9222)),
        ("[FD7A:115c::1]:9222", ListenAddress("fd7a:115c::1", 9222)),
        ("LocalHost:0", ListenAddress("127.0.0.1", 0)),
    ],
)
def test_it_listens_on_an_address_and_a_port(text: str, address: ListenAddress) -> None:
    """BRO-020."""
    assert listen_address(text) == address
    assert not address.everywhere


@pytest.mark.parametrize("text", ["0.0.0.0:9222", "[::]:9222", "[0:0::0]:9222", "[::ffff:0.0.0.0]:9222", "[::%eth0]:1"])
def test_everywhere_is_known_in_each_spelling(text: str) -> None:
    """BRO-020: it needs --listen-anywhere."""
    assert listen_address(text).everywhere


@pytest.mark.parametrize(
    "text",
    ["", ":9222", "9222", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "home.example:9222", "*:9222",
     "0:9222", "0x7f.1:9222", "::1:9222", "[::1]", "[home]:9222", "http://127.0.0.1:9222"],
)  # fmt: skip
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^must "):
        listen_address(text)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--listen"),
        (("--listen", "0.0.0.0:0", "--timezone", "Asia/Jakarta"), "--listen-anywhere"),
        (("--listen", "[::]:0", "--timezone", "Asia/Jakarta"), "--listen-anywhere"),
        (("--listen", "chrome.example:9222"), "only localhost"),
        (("--listen", "127.0.0.1:0", "--allow", "my-server"), "CIDRs"),
        (("--listen", "127.0.0.1:0", "--timezone", "Etc/GMT+0"), "--timezone: is UTC"),
        (("--listen", "127.0.0.1:0", "--timezone", "Mars/Olympus"), "--timezone: must be the name of a time zone"),
        (
            ("--listen", "127.0.0.1:0", "--timezone", "Asia/Jakarta", "--chrome", "no-chrome"),
            "--chrome: no program no-chrome",
        ),
        (("--listen", "203.0.113.7:9222", "--timezone", "Asia/Jakarta"), "--listen: no listening on 203.0.113.7:9222"),
    ],
)
def test_a_bad_start_is_refused_in_words(
    arguments: tuple[str, ...], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """BRO-019, BRO-020: no default to listen on, not everywhere, no UTC; exit code 2."""
    assert run_command(["browser", "--data-dir", str(tmp_path / "data"), *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_zone_that_is_never_anything_but_utc_is_refused_whatever_its_name() -> None:
    """BRO-019: and the zone of a place is not, though its clocks may show the same time."""
    names = {"UTC", "UCT", "Zulu", "Universal", "Greenwich", "GMT", "GMT0", "GMT+0", "GMT-0"}
    for name in [*names, *(f"Etc/{name}" for name in names), ":UTC", " Etc/UTC "]:
        with pytest.raises(ValueError, match="is UTC"):
            browser_zone(name)
    for name in ("Europe/London", "Africa/Abidjan", "Atlantic/Reykjavik", "Asia/Jakarta", "Etc/GMT-7"):
        assert browser_zone(name) == name
    places = {name for name in available_timezones() if "/" in name and not name.startswith("Etc/")}
    assert [name for name in places if browser_zone(name) != name] == []


def test_the_zone_is_that_of_the_option_then_of_tz_then_of_the_system(tmp_path: Path) -> None:
    """BRO-019: a blank one counts as none; with none at all the start is refused."""
    file = tmp_path / "timezone"
    file.write_text("Asia/Tokyo\n")
    assert find_zone("Europe/Rome", {"TZ": "Asia/Jakarta"}, file) == ("Europe/Rome", "--timezone")
    assert find_zone(None, {"TZ": "Asia/Jakarta"}, file) == ("Asia/Jakarta", "TZ")
    assert find_zone(None, {"TZ": " "}, file) == ("Asia/Tokyo", str(file))
    with pytest.raises(SettingsError, match="--timezone: missing"):
        find_zone(None, {}, tmp_path / "none")


def test_a_peer_that_came_over_ipv6_is_known_by_its_ipv4_address() -> None:
    assert str(plain_address("::ffff:100.64.0.1")) == "100.64.0.1"


def test_chrome_is_started_as_the_document_has_it() -> None:
    """BRO-019: docs/OPERATIONS.md, "The browser host"."""
    program, *flags = command(OPTIONS, VERSION, root=False)
    assert program == "/opt/chrome"
    assert {"--headless=new", "--user-data-dir=/data/profile", "--no-first-run"} <= set(flags)
    assert {"--remote-debugging-address=127.0.0.1", "--remote-debugging-port=0"} <= set(flags)
    assert not {"--enable-automation", "--no-sandbox", "--ignore-certificate-errors"} & set(flags)
    assert not any(flag.startswith("--host-resolver-rules") for flag in flags)
    assert "--no-sandbox" in command(OPTIONS, VERSION, root=True)
    assert environment(OPTIONS)["TZ"] == "Asia/Jakarta"


def test_site_connect_to_becomes_rules_for_hosts() -> None:
    table = {"comix.to": ("203.0.113.5", 443), "kagane.to": ("2001:db8::7", 8443)}
    options = ChromeOptions(OPTIONS.program, OPTIONS.profile, OPTIONS.zone, table, None)
    rules = "--host-resolver-rules=MAP comix.to 203.0.113.5:443,MAP kagane.to [2001:db8::7]:8443"
    assert rules in command(options, VERSION, root=False)


@pytest.mark.parametrize(
    "version",
    [VERSION, "Chromium 156.0.8078.108 built on Debian GNU/Linux 12 (bookworm)", "Google Chrome 156.0.1.2 beta"],
)
def test_the_agent_is_that_of_a_chrome_with_a_window(version: str) -> None:
    """BRO-019: without the Headless token, with the installed major version."""
    expected = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36"
    assert user_agent(version) == expected


def test_a_version_that_is_none_is_quoted() -> None:
    with pytest.raises(ValueError, match="can't be read from 'sh: not found'"):
        user_agent("sh: not found")


def test_the_help_names_every_option() -> None:
    shown = CliRunner().invoke(commands, ["browser", "--help"]).output
    parser = commands.commands["browser"]
    assert isinstance(parser, click.Command)
    assert all(option.opts[0] in shown for option in parser.params)
