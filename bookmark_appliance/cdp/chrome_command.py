"""How Chrome is started: which program, with which flags, in which environment. Pure but for the look at PATH.

Its flags keep it what a person's Chrome is, as far as a Site can see: measured with Chromium 156 (2026-11-30), the
client hints name no Headless of themselves, the agent does unless it is given, and `navigator.webdriver` is true on
port 0 unless that feature is off.
"""

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

NAMES = ("google-chrome-stable", "google-chrome", "chromium", "chromium-browser")

_SWITCHES = (
    "--headless=new",
    "--remote-debugging-address=127.0.0.1",
    "--remote-debugging-port=0",
    "--disable-blink-features=AutomationControlled",
    "--no-first-run",
    "--no-default-browser-check",
    # Nobody is there to unlock a keyring, and cookies must be readable after a restart.
    "--password-store=basic",
    # What it would fetch for itself, and never for us.
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--disable-breakpad",
    "--mute-audio",
)


@dataclass(frozen=True, slots=True)
class ChromeOptions:
    """What one Chrome is to be: absolute paths, an IANA zone, hosts to (ip, port), a file of PEM trust anchors."""

    program: Path
    profile: Path
    zone: str
    connect_to: Mapping[str, tuple[str, int]]
    ca_file: Path | None


def find_chrome(names: Sequence[str] = NAMES) -> Path | None:
    """The first of these programs, by name or path, that can be run here; None when there is none."""
    return next((Path(found).absolute() for name in names if (found := shutil.which(name))), None)


def command(options: ChromeOptions, version: str, *, root: bool) -> list[str]:
    """The program and its arguments; `version` is what `chrome --version` printed. Raises ValueError over that."""
    switches = [*_SWITCHES, f"--user-data-dir={options.profile}", f"--user-agent={user_agent(version)}"]
    if options.connect_to:
        rules = (f"MAP {host} {_endpoint(*target)}" for host, target in options.connect_to.items())
        switches.append(f"--host-resolver-rules={','.join(rules)}")
    if root:
        switches.append("--no-sandbox")  # Chrome refuses to start as root with one
    return [str(options.program), *switches, "about:blank"]


def user_agent(version: str) -> str:
    """The agent of a Chrome with a window, from what `chrome --version` printed. Raises ValueError.

    Chrome itself says the major version alone; the client hints carry the whole one.
    """
    found = re.search(r"\b([0-9]+)\.[0-9]+\.[0-9]+\.[0-9]+\b", version)
    if found is None:
        raise ValueError(f"its version can't be read from {version.strip()!r:.100}")
    system = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)"
    return f"{system} Chrome/{found[1]}.0.0.0 Safari/537.36"


def environment(options: ChromeOptions) -> dict[str, str]:
    """All that Chrome gets: nothing of ours, and a home that is the profile's."""
    return {"PATH": os.defpath, "HOME": str(options.profile), "LANG": "en_US.UTF-8", "TZ": options.zone}


def _endpoint(ip: str, port: int) -> str:
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"
