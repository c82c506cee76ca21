import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from urllib.parse import quote

import pytest
from psycopg.conninfo import conninfo_to_dict

from bookmark_appliance import __version__, cli
from bookmark_appliance.config import SETTINGS, Settings
from bookmark_appliance.database import DatabaseUnavailable
from bookmark_appliance.postgres.files import EmbeddedRefused

TOKEN_KEY = "a token key of more than thirty-two characters"


@pytest.fixture(autouse=True)
def quiet_surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty environment and working folder."""
    for key in list(os.environ):
        if key not in ("PATH", "HOME"):
            monkeypatch.delenv(key)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def external(empty_database_url: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """An empty external database in the environment; call it to set more keys."""

    def configure(**environ: str) -> None:
        for key, value in environ.items():
            monkeypatch.setenv(key, value)

    configure(DATABASE_URL=as_address(empty_database_url), TOKEN_KEY=TOKEN_KEY)
    return configure


def as_address(conninfo: str) -> str:
    parts = conninfo_to_dict(conninfo)
    return f"postgresql://{parts['user']}@/{parts['dbname']}?host={quote(str(parts['host']), safe='')}"


def a_process(*arguments: str, **environ: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "bookmark_appliance", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(cli.__file__).parents[1]), **environ},
    )


def test_version_tells_what_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """CFG-001: INTERFACE.md, `version`."""
    assert cli.run(["version"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told) == ["version", "python", "platform", "postgres", "schema"]
    assert told["version"] == __version__
    assert told["python"].startswith("3.")
    assert told["postgres"].startswith("18.")
    migrations = Path(cli.__file__).parents[1] / "sql" / "migrations"
    assert told["schema"] == len(list(migrations.iterdir()))


@pytest.mark.parametrize("command", ["version", "config"])
def test_quick_commands_load_no_server(command: str) -> None:
    """CFG-001: they answer on a loaded machine too."""
    heavy = {"quart", "hypercorn", "psycopg", "curl_cffi", "httpx", "trio"}
    code = f"import sys; from bookmark_appliance import cli; cli.run([{command!r}]); print({heavy} & set(sys.modules))"
    told = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(cli.__file__).parents[1])},
    )
    assert told.stdout.endswith("\nset()\n")


def test_config_shows_values_and_their_sources(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """CFG-001: each setting, and nothing is written for it."""
    (tmp_path / ".env").write_text("PORT=9000\nSITE_CONNECT_TO=comix.to=1.2.3.4:443\nPROXY_NETWORK=web\n")
    monkeypatch.setenv("LATEST_CHAPTER_POLL_ENABLED", "0")
    assert cli.run(["config", "--data-dir", "elsewhere"]) == 0
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert list(told) == [setting.key for setting in SETTINGS]
    assert told["DATA_DIR"] == {"value": str(tmp_path / "elsewhere"), "source": "--data-dir"}
    assert told["COVER_DIR"] == {"value": str(tmp_path / "elsewhere" / "covers"), "source": "default"}
    assert told["PORT"] == {"value": 9000, "source": str(tmp_path / ".env")}
    assert told["LATEST_CHAPTER_POLL_ENABLED"] == {"value": False, "source": "environment"}
    assert told["SITE_CONNECT_TO"]["value"] == {"comix.to": "1.2.3.4:443"}
    assert told["TRUSTED_PROXIES"]["value"][0] == "127.0.0.0/8"
    assert told["API_TZ"]["value"] == "UTC"
    assert told["DATABASE_URL"] == {"value": None, "source": "default"}
    assert told["TOKEN_KEY"] == {"value": "***", "source": "generated"}
    assert "PROXY_NETWORK" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == [".env"]


def test_config_hides_secrets_unless_asked(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """CFG-008, OPS-001: the password inside DATABASE_URL too."""
    secrets = {
        "TOKEN_KEY": TOKEN_KEY,
        "DATABASE_URL": "postgresql://reader:db-password@db/books",
        "DISCORD_WEBHOOK_URL": "https://discord.com/api/webhooks/1/hook",
        "METRICS_TOKEN": "metrics-bearer",
    }
    for key, value in secrets.items():
        monkeypatch.setenv(key, value)
    assert cli.run(["config"]) == 0
    hidden = capsys.readouterr().out
    assert not any(text in hidden for text in [*secrets.values(), "db-password"])
    assert {key: json.loads(hidden)[key]["value"] for key in secrets} == dict.fromkeys(secrets, "***")
    assert cli.run(["config", "--reveal"]) == 0
    revealed = json.loads(capsys.readouterr().out)
    assert {key: revealed[key]["value"] for key in secrets} == secrets


def test_config_reveals_a_generated_key_only_once_there_is_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """CFG-001: TOKEN_KEY"""
    for expected in (None, "the kept key"):
        assert cli.run(["config", "--reveal"]) == 0
        assert json.loads(capsys.readouterr().out)["TOKEN_KEY"] == {"value": expected, "source": "generated"}
        (tmp_path / "data").mkdir(exist_ok=True)
        (tmp_path / "data" / "token_key").write_text("the kept key\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["unheard-of"],
        ["config", "--unheard-of"],
        ["config", "surplus"],
        ["config", "--data-dir", " "],
        ["config", "--env-file", "missing.env"],
        ["readers", "add"],
        ["readers", "add", "name"],
        ["readers", "credential", "-1"],
    ],
)
def test_wrong_usage_is_exit_2_with_words_on_standard_error(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """CFG-001: INTERFACE.md, exit codes."""
    assert cli.run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err


@pytest.mark.parametrize("command", [["config"], ["serve"], ["migrate"], ["readers", "list"]])
def test_bad_settings_are_exit_2_and_named(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """CFG-001, OPS-001: settings are judged before anything is touched."""
    (tmp_path / "settings").write_text("PORT=x\nLOG_LEVEL=x\n")
    assert cli.run([*command, "--env-file", "settings"]) == 2
    err = capsys.readouterr().err
    assert [line.partition(":")[0] for line in err.splitlines()] == ["PORT", "LOG_LEVEL"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["settings"]


@pytest.mark.parametrize("command", [["migrate"], ["readers", "list"], ["readers", "add", "1"]])
def test_a_database_out_of_reach_is_exit_3_in_one_line(
    command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """OPS-001: neither the address nor its password is shown."""
    monkeypatch.setenv("DATABASE_URL", "postgresql://reader:db-password@127.0.0.1:1/books?connect_timeout=2")
    monkeypatch.setenv("TOKEN_KEY", TOKEN_KEY)
    assert cli.run(command) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert "database" in err
    assert "db-password" not in err
    assert "postgresql://" not in err


def test_readers_are_looked_after(external: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    """TOK-004, TOK-007, TOK-009: list, add, credential, rotate, revoke, as INTERFACE.md has them."""
    external(OWNER_DISCORD_ID="1001")

    def told(*arguments: str) -> str:
        assert cli.run(["readers", *arguments]) == 0
        return capsys.readouterr().out

    owner = json.loads(told("list"))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", owner.pop("created_at"))
    assert owner == {"discord_id": "1001", "owner": True, "epoch": 0, "bookmarks": 0, "sessions": 0}

    added = told("add", "1002")
    assert json.loads(added)["owner"] is False
    assert told("add", "1002") == added
    assert [json.loads(line)["discord_id"] for line in told("list").splitlines()] == ["1001", "1002"]

    first = told("credential", "1002")
    assert re.fullmatch(r"[0-9a-f]{64}\n", first)
    assert told("credential", "1002") == first
    second = told("rotate", "1002")
    assert re.fullmatch(r"[0-9a-f]{64}\n", second)
    assert second != first
    assert told("credential", "1002") == second
    assert told("credential", "1001") not in (first, second)
    assert json.loads(told("list").splitlines()[1])["epoch"] == 1
    assert told("revoke", "1002") == ""


@pytest.mark.parametrize("command", ["credential", "rotate", "revoke"])
def test_an_unknown_reader_is_exit_1(
    command: str, external: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    """TOK-007"""
    assert cli.run(["readers", command, "404"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "404" in err


def test_migrate_brings_a_database_up_to_date(
    external: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    """OPS-001, TOK-008: words on standard error; a second run finds nothing to do."""
    for _ in range(2):
        assert cli.run(["migrate"]) == 0
        out, err = capsys.readouterr()
        assert out == ""
        assert re.search(r"the database is at version \d+\n$", err)
    assert "applied" not in err


def test_a_new_database_gets_no_short_key(external: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    """CFG-001: TOKEN_KEY; once Readers hold it, it is too late to refuse."""
    external(TOKEN_KEY="short")
    assert cli.run(["migrate"]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("TOKEN_KEY: must be at least 32")
    external(TOKEN_KEY=TOKEN_KEY)
    assert cli.run(["migrate"]) == 0
    external(TOKEN_KEY="short")
    assert cli.run(["migrate"]) == 0
    assert "TOKEN_KEY is shorter" in capsys.readouterr().err


def test_a_database_with_readers_is_not_opened_with_a_new_key(
    external: Callable[..., None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """CFG-001: OPERATIONS.md; a key is never regenerated over an existing database."""
    assert cli.run(["migrate"]) == 0
    monkeypatch.delenv("TOKEN_KEY")
    for _ in range(2):
        assert cli.run(["readers", "list"]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert "TOKEN_KEY: missing" in err
    assert not (tmp_path / "data" / "token_key").exists()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that the embedded server's own user may enter."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_a_command_starts_embedded_postgres_for_itself(open_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """CFG-001, OPS-001: with no settings at all; the key is generated once and the data stays."""
    data = open_folder / "data"
    assert cli.run(["readers", "add", "1002", "--data-dir", str(data)]) == 0
    key = (data / "token_key").read_text()
    assert cli.run(["readers", "list", "--data-dir", str(data)]) == 0
    listed = capsys.readouterr().out.splitlines()[1:]
    assert [json.loads(line)["discord_id"] for line in listed] == ["0", "1002"]
    assert (data / "token_key").read_text() == key


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The appliance's `run` replaced: `settings` it was given, and `then` what it does."""
    seen = SimpleNamespace(settings=None, then=lambda: None)

    def run(settings: Settings) -> None:
        seen.settings = settings
        seen.then()

    module = ModuleType("bookmark_appliance.appliance")
    module.run = run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "bookmark_appliance.appliance", module)
    monkeypatch.setattr("bookmark_appliance.appliance", module, raising=False)
    return seen


def test_serve_runs_the_appliance_on_its_settings(served: SimpleNamespace, tmp_path: Path) -> None:
    """CFG-001, OPS-002"""
    assert cli.run(["serve", "--data-dir", "data"]) == 0
    assert served.settings.data_dir == tmp_path / "data"
    assert served.settings.cover_dir.is_dir()


def test_serve_names_ignored_keys_in_one_log_line(
    served: SimpleNamespace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """CFG-010"""
    (tmp_path / ".env").write_text("TRAEFIK_ENTRYPOINT=web\nBROWSER_TZ=Asia/Jakarta\n")
    assert cli.run(["serve"]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert "TRAEFIK_ENTRYPOINT, BROWSER_TZ" in line


def test_a_cover_folder_that_is_none_refuses_the_start(
    served: SimpleNamespace, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """OPS-002, COV-032"""
    (tmp_path / "covers").write_text("")
    for value in ("covers", " "):
        monkeypatch.setenv("COVER_DIR", value)
        assert cli.run(["serve"]) == 2
        assert capsys.readouterr().err.startswith("COVER_DIR: ")
    assert served.settings is None


def test_a_second_serve_is_exit_2(
    served: SimpleNamespace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """CFG-001: INTERFACE.md; with an external database too."""
    monkeypatch.setenv("DATABASE_URL", "postgresql://db/books")
    codes: list[int] = []
    served.then = lambda: codes.append(cli.run(["serve"])) if not codes else None
    assert cli.run(["serve"]) == 0
    assert codes == [2]
    assert "another serve" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyboardInterrupt(), 130),
        (BaseExceptionGroup("nursery", [KeyboardInterrupt()]), 130),
        (DatabaseUnavailable("no database"), 3),
        (ExceptionGroup("nursery", [ExceptionGroup("inner", [DatabaseUnavailable("no database")])]), 3),
        (ExceptionGroup("nursery", [EmbeddedRefused("a folder is in the way")]), 2),
    ],
)
def test_what_ends_a_command_decides_its_exit_code(error: BaseException, code: int, served: SimpleNamespace) -> None:
    """OPS-001: INTERFACE.md, exit codes; a nursery wraps what was raised in it."""

    def fail() -> None:
        raise error

    served.then = fail
    assert cli.run(["serve"]) == code


def test_a_bug_is_loud_and_tells_no_secret(
    served: SimpleNamespace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """OPS-001: it keeps its traceback, whatever else ended with it, and the exit code is not 0."""
    monkeypatch.setenv("DATABASE_URL", "postgresql://reader:db-password@db/books")

    def fail() -> None:
        bug = RuntimeError("a bug about postgresql://reader:db-password@db/books")
        raise ExceptionGroup("nursery", [DatabaseUnavailable("no database"), bug])

    served.then = fail
    assert cli.run(["serve"]) == 1
    err = capsys.readouterr().err
    assert "CRITICAL cli ended by a bug of ours" in err
    assert "RuntimeError: a bug about ***" in err
    assert "db-password" not in err


def test_a_reader_who_has_seen_enough_is_no_trouble() -> None:
    """CFG-001: a broken pipe makes no noise."""
    process = a_process("config")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    with process:
        assert process.stderr.read() == ""
    assert process.returncode == 1


def interrupted(process: subprocess.Popen[str]) -> tuple[str, str]:
    """What the process said until an interrupt ended it. One that comes just before a system call waits for its return,
    so it is sent again, as a person presses the keys again."""
    for _ in range(10):
        process.send_signal(signal.SIGINT)
        try:
            return process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError("interrupts do not end it")


def test_an_interrupted_command_is_exit_130(tmp_path: Path) -> None:
    """CFG-001: INTERFACE.md, exit codes; asked of a command that waits for a body that never comes."""
    body = tmp_path / "body"
    os.mkfifo(body)
    # A shell that runs us in the background has us ignore it, and our children with us.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    process = a_process("probe", "asura", "https://asurascans.com/comics/a", "--file", str(body))
    with process, body.open("wb"):  # opened once the command has opened its end
        out, err = interrupted(process)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
