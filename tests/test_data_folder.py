import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bookmark_appliance.config import Settings, SettingsError, load_settings
from bookmark_appliance.data_folder import held_by_serve, prepare_folders, settle_token_key
from bookmark_appliance.secret import Secret

EXTERNAL = {"DATABASE_URL": "postgresql://u:p@db/books"}


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everybody may enter, up to the root; pytest's own lies under a private one."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(params=[0, 1000], ids=["as root", "as another user"])
def uid(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    uid: int = request.param
    monkeypatch.setattr("os.geteuid", lambda: uid)
    return uid


def settings_in(place: Path, **environ: str) -> Settings:
    return load_settings({"DATA_DIR": str(place / "data"), **environ}, env_file=Path("/dev/null"))


def mode(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode)


def test_the_folders_are_made_for_those_who_need_them(place: Path, uid: int) -> None:
    """CFG-001, OPS-002: 0700, or 0711 where embedded Postgres runs under a user of its own."""
    settings = settings_in(place / "deep")
    umask = os.umask(0o027)
    try:
        (place / "deep").mkdir(mode=0o755)
        (place / "deep").chmod(0o755)
        prepare_folders(settings)
    finally:
        os.umask(umask)
    assert mode(settings.data_dir) == (0o711 if uid == 0 else 0o700)
    assert settings.cover_dir.is_dir()
    prepare_folders(settings)


def test_with_an_external_database_the_data_folder_is_private(place: Path, uid: int) -> None:
    """CFG-001"""
    settings = settings_in(place, **EXTERNAL)
    prepare_folders(settings)
    assert mode(settings.data_dir) == 0o700


def test_an_existing_data_folder_is_opened_for_postgres_and_no_wider(place: Path, uid: int) -> None:
    """CFG-001"""
    settings = settings_in(place)
    settings.data_dir.mkdir(0o700)
    prepare_folders(settings)
    assert mode(settings.data_dir) == (0o701 if uid == 0 else 0o700)


def test_a_closed_parent_is_named_and_left_as_it_is(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CFG-001"""
    home = place / "home"
    home.mkdir(0o700)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    settings = settings_in(home / "inner")
    monkeypatch.setattr("os.access", lambda path, _: Path(path) != home)
    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(SettingsError, match=rf"^DATA_DIR: .* this user can't enter {home}$"):
        prepare_folders(settings)
    assert mode(home) == 0o700


@pytest.mark.parametrize("key", ["DATA_DIR", "COVER_DIR"])
def test_a_file_where_a_folder_should_be_is_refused(place: Path, key: str) -> None:
    """OPS-002"""
    (place / "file").write_text("")
    for path in (place / "file", place / "file" / "below"):
        with pytest.raises(SettingsError, match=rf"^{key}: "):
            prepare_folders(settings_in(place, **{key: str(path)}))


def test_a_folder_that_cannot_be_written_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OPS-002"""
    covers = place / "covers"
    monkeypatch.setattr("os.access", lambda path, _: Path(path) != covers)
    with pytest.raises(SettingsError, match=r"^COVER_DIR: "):
        prepare_folders(settings_in(place, COVER_DIR=str(covers)))


def test_a_second_serve_on_one_data_folder_is_refused(place: Path) -> None:
    """CFG-001: INTERFACE.md, exit code 2; the first one's end frees it."""
    settings = settings_in(place, **EXTERNAL)
    settings.data_dir.mkdir()
    with (
        held_by_serve(settings),
        pytest.raises(SettingsError, match=r"^DATA_DIR: another serve"),
        held_by_serve(settings),
    ):
        pass
    with held_by_serve(settings):
        pass


def test_a_generated_key_is_kept_for_good(place: Path) -> None:
    """CFG-001: TOKEN_KEY; once, mode 0600, and the next start finds it."""
    first = settings_in(place)
    first.data_dir.mkdir()
    settled = settle_token_key(first, readers=0)
    assert settled.token_key == first.token_key
    assert mode(first.token_key_file) == 0o600
    assert first.token_key_file.read_text().strip() == first.token_key.reveal()
    assert [path.name for path in first.data_dir.iterdir()] == ["token_key"], "no scratch file is left"
    again = settings_in(place)
    assert settle_token_key(again, readers=3).token_key == first.token_key


def test_of_two_first_starts_one_key_stands(place: Path) -> None:
    """CFG-001: both loaded their settings before either wrote the key."""
    one, other = settings_in(place), settings_in(place)
    one.data_dir.mkdir()
    assert settle_token_key(one, readers=0).token_key == settle_token_key(other, readers=0).token_key


def test_the_loser_of_a_race_for_the_file_takes_the_winners_key(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CFG-001: the other process wrote the file between our look and our link."""
    settings = settings_in(place)
    settings.data_dir.mkdir()
    link = os.link

    def late(source: str, target: Path) -> None:
        target.write_text("of the winner\n")
        link(source, target)

    monkeypatch.setattr("os.link", late)
    assert settle_token_key(settings, readers=0).token_key == Secret("of the winner")


def test_a_database_with_readers_gets_no_new_key(place: Path) -> None:
    """CFG-001: OPERATIONS.md; a refused start leaves nothing behind that would let the next one pass."""
    settings = settings_in(place)
    settings.data_dir.mkdir()
    for _ in range(2):
        with pytest.raises(SettingsError, match=r"^TOKEN_KEY: "):
            settle_token_key(settings, readers=1)
    assert list(settings.data_dir.iterdir()) == []


def test_a_short_key_is_good_only_for_those_who_hold_it(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    """CFG-001: at least 32 characters when new; a shorter one only warns where the database holds Readers."""
    short, long = settings_in(place, TOKEN_KEY="s" * 31), settings_in(place, TOKEN_KEY="s" * 32)
    with pytest.raises(SettingsError, match=r"^TOKEN_KEY: must be at least 32 characters"):
        settle_token_key(short, readers=0)
    assert settle_token_key(short, readers=1) is short
    assert "TOKEN_KEY is shorter than 32" in caplog.text
    caplog.clear()
    assert settle_token_key(long, readers=0) is long
    assert caplog.text == ""
