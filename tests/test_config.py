import dataclasses
import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_type_hints
from zoneinfo import ZoneInfo

import pytest
import trustme

from bookmark_appliance.config import SETTINGS, Settings, SettingsError, load_settings
from bookmark_appliance.lanes.sites import SITES
from bookmark_appliance.secret import Secret

DISCORD = {
    "DISCORD_CLIENT_ID": "client",
    "DISCORD_CLIENT_SECRET": "client-secret",
    "DISCORD_GUILD_ID": "guild",
    "DISCORD_REDIRECT_URI": "https://read.example.org/auth/callback",
}
DEPLOYED = {
    **DISCORD,
    "TOKEN_KEY": "k" * 32,
    "OWNER_DISCORD_ID": "80351110224678912",
    "PUBLIC_BASE_URL": "https://api.example.org",
}


@pytest.fixture(autouse=True)
def empty_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal(environ: Mapping[str, str], **options: Any) -> str:
    with pytest.raises(SettingsError) as caught:
        load_settings(environ, **options)
    return str(caught.value)


def test_no_settings_at_all_are_local_mode(tmp_path: Path) -> None:
    """CFG-002, CFG-003, CFG-004, CFG-006, CFG-007, CFG-008: the defaults of INTERFACE.md."""
    settings = load_settings({})
    assert settings.local_mode
    assert settings.data_dir == tmp_path / "data"
    assert settings.cover_dir == tmp_path / "data" / "covers"
    assert settings.database_url is None
    assert settings.owner_discord_id == "0"
    assert settings.public_base_url == settings.web_base_url == "http://127.0.0.1:8080"
    assert (settings.bind, settings.port) == ("127.0.0.1", 8080)
    assert settings.allowed_origins == tuple(site.origin for site in SITES.values())
    assert len(settings.allowed_origins) == 6
    assert "https://asuracomic.net" not in settings.allowed_origins
    assert settings.discord_required_role is None
    assert settings.discord_api_base == "https://discord.com/api/v10"
    assert settings.discord_webhook_url is None
    assert settings.browser_ws_url is None
    assert settings.latest_chapter_poll_enabled
    assert settings.userscript_path is settings.novel_userscript_path is None
    assert settings.site_connect_to == {}
    assert settings.site_ca_file is None
    assert settings.metrics_token is None
    assert (settings.log_format, settings.log_level, settings.api_tz) == ("text", "info", ZoneInfo("UTC"))
    assert settings.warnings == ()
    assert list(tmp_path.iterdir()) == [], "loading the settings writes nothing"


@pytest.mark.parametrize(
    ("address", "trusted"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("10.1.2.3", True),
        ("172.16.0.1", True),
        ("172.32.0.1", False),
        ("192.168.1.1", True),
        ("fd00::1", True),
        ("8.8.8.8", False),
        ("2001:db8::1", False),
    ],
)
def test_proxies_at_loopback_and_in_private_ranges_are_trusted_by_default(address: str, trusted: bool) -> None:
    """SES-010"""
    ip = ipaddress.ip_address(address)
    assert any(ip in network for network in load_settings({}).trusted_proxies) == trusted


def test_a_deployment_needs_its_required_keys() -> None:
    """CFG-001"""
    settings = load_settings(DEPLOYED)
    assert not settings.local_mode
    assert settings.owner_discord_id == "80351110224678912"
    assert settings.token_key == Secret("k" * 32)
    for key in ("TOKEN_KEY", "OWNER_DISCORD_ID", "PUBLIC_BASE_URL"):
        text = refusal({name: value for name, value in DEPLOYED.items() if name != key})
        assert text.startswith(f"{key}: missing")


@pytest.mark.parametrize("missing", DISCORD)
def test_the_four_discord_keys_are_set_together_or_not_at_all(missing: str) -> None:
    """CFG-001: the error names the one that is missing, be it absent or blank."""
    rest = {key: value for key, value in DEPLOYED.items() if key != missing}
    assert refusal(rest).startswith(f"{missing}: missing")
    assert refusal({**rest, missing: " "}).startswith(f"{missing}: missing")


def test_blank_discord_keys_are_local_mode() -> None:
    """CFG-001: an env file that leaves `KEY=` sets nothing."""
    assert load_settings(dict.fromkeys(DISCORD, "")).local_mode


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_local_mode_listens_on_loopback(address: str) -> None:
    """CFG-001"""
    assert ipaddress.ip_address(load_settings({"BIND": address}).bind).is_loopback


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.168.1.5"])
def test_only_a_deployment_with_sign_in_listens_beyond_loopback(address: str) -> None:
    """CFG-001"""
    assert refusal({"BIND": address}).startswith("BIND: ")
    assert load_settings({**DEPLOYED, "BIND": address}).bind == address


GOOD: list[tuple[str, str, object]] = [
    ("PORT", " 0 ", 0),
    ("PORT", "65535", 65_535),
    ("OWNER_DISCORD_ID", "12345", "12345"),
    ("PUBLIC_BASE_URL", "https://API.example.org//", "https://api.example.org"),
    ("PUBLIC_BASE_URL", "https://api.example.org:443", "https://api.example.org"),
    ("PUBLIC_BASE_URL", "https://api.example.org:8443/", "https://api.example.org:8443"),
    ("PUBLIC_BASE_URL", "http://localhost:8080", "http://localhost:8080"),
    ("PUBLIC_BASE_URL", "http://[::1]:8080", "http://[::1]:8080"),
    ("WEB_BASE_URL", "https://read.example.org/", "https://read.example.org"),
    ("ALLOWED_ORIGINS", " https://a.example, https://B.example/ ,", ("https://a.example", "https://b.example")),
    ("ALLOWED_ORIGINS", "http://a.example:81", ("http://a.example:81",)),
    ("TRUSTED_PROXIES", "10.0.0.1, fd00::/8", (ipaddress.ip_network("10.0.0.1"), ipaddress.ip_network("fd00::/8"))),
    ("TRUSTED_PROXIES", "10.1.2.3/8", (ipaddress.ip_network("10.0.0.0/8"),)),
    ("BROWSER_WS_URL", " ws://100.64.0.7:9222/ ", "ws://100.64.0.7:9222"),
    ("BROWSER_WS_URL", "ws://localhost:9222", "ws://localhost:9222"),
    ("BROWSER_WS_URL", "ws://[fd7a::1]:9222", "ws://[fd7a::1]:9222"),
    ("LATEST_CHAPTER_POLL_ENABLED", "0", False),
    ("LATEST_CHAPTER_POLL_ENABLED", "1", True),
    ("SITE_CONNECT_TO", "comix.to=127.0.0.1:8443", {"comix.to": ("127.0.0.1", 8443)}),
    (
        "SITE_CONNECT_TO",
        "Comix.to=1.2.3.4:443, cdn.example.org=[2001:db8::1]:444",
        {"comix.to": ("1.2.3.4", 443), "cdn.example.org": ("2001:db8::1", 444)},
    ),
    ("DISCORD_API_BASE", "http://127.0.0.1:9000/api/", "http://127.0.0.1:9000/api"),
    ("DISCORD_WEBHOOK_URL", "https://discord.com/api/webhooks/1/x", Secret("https://discord.com/api/webhooks/1/x")),
    ("DISCORD_REQUIRED_ROLE", " 123 ", "123"),
    ("DATABASE_URL", "postgresql://u:p@db/books", Secret("postgresql://u:p@db/books")),
    ("DATABASE_URL", "postgres:///books?host=/run/pg", Secret("postgres:///books?host=/run/pg")),
    ("METRICS_TOKEN", "token", Secret("token")),
    ("TOKEN_KEY", " spaces are part of a key ", Secret(" spaces are part of a key ")),
    ("LOG_FORMAT", "JSON", "json"),
    ("LOG_LEVEL", "Debug", "debug"),
    ("API_TZ", "Asia/Jakarta", ZoneInfo("Asia/Jakarta")),
    ("USERSCRIPT_PATH", "/scripts/own.user.js", Path("/scripts/own.user.js")),
    ("COVER_DIR", "/covers", Path("/covers")),
]


@pytest.mark.parametrize(("key", "text", "value"), GOOD)
def test_a_good_value_is_taken(key: str, text: str, value: object) -> None:
    """CFG-001, CFG-007, CFG-009: each rule of INTERFACE.md's table, kept."""
    settings = load_settings({key: text})
    assert getattr(settings, key.lower()) == value
    assert settings.sources[key] == "environment"


BAD = [
    ("PORT", "http"),
    ("PORT", "65536"),
    ("PORT", "-1"),
    ("PORT", "\uff18\uff10"),
    ("OWNER_DISCORD_ID", "1e9"),
    ("OWNER_DISCORD_ID", "name#1234"),
    ("OWNER_DISCORD_ID", "\u0663"),
    ("PUBLIC_BASE_URL", "api.example.org"),
    ("PUBLIC_BASE_URL", "/api"),
    ("PUBLIC_BASE_URL", "http://api.example.org"),
    ("PUBLIC_BASE_URL", "http://192.168.1.5:8080"),
    ("PUBLIC_BASE_URL", "https://api.example.org/bookmarks"),
    ("PUBLIC_BASE_URL", "https://api.example.org?x=1"),
    ("PUBLIC_BASE_URL", "https://api.example.org/#x"),
    ("PUBLIC_BASE_URL", "https://user:pass@api.example.org"),
    ("PUBLIC_BASE_URL", "https://api.example.org:99999"),
    ("PUBLIC_BASE_URL", "https://"),
    ("PUBLIC_BASE_URL", "https://api example.org"),
    ("PUBLIC_BASE_URL", "https://api.example.org\\@evil.example"),
    ("PUBLIC_BASE_URL", "https://[::1"),
    ("PUBLIC_BASE_URL", "ftp://api.example.org"),
    ("PUBLIC_BASE_URL", "http://localhost.evil.example"),
    ("WEB_BASE_URL", "http://read.example.org"),
    ("WEB_BASE_URL", "https://read.example.org/pages"),
    ("BIND", "example.org"),
    ("BIND", "127.0.0.1:8080"),
    ("BIND", "localhost6"),
    ("ALLOWED_ORIGINS", "*"),
    ("ALLOWED_ORIGINS", "asurascans.com"),
    ("ALLOWED_ORIGINS", "https://asurascans.com/comics"),
    ("TRUSTED_PROXIES", "10.0.0.0/33"),
    ("TRUSTED_PROXIES", "traefik"),
    ("BROWSER_WS_URL", "ws://browser:9222"),
    ("BROWSER_WS_URL", "ws://100.64.0.7"),
    ("BROWSER_WS_URL", "wss://100.64.0.7:9222"),
    ("BROWSER_WS_URL", "http://100.64.0.7:9222"),
    ("BROWSER_WS_URL", "100.64.0.7:9222"),
    ("BROWSER_WS_URL", "ws://100.64.0.7:9222/devtools"),
    ("BROWSER_WS_URL", "ws://localhost.example.org:9222"),
    ("LATEST_CHAPTER_POLL_ENABLED", "2"),
    ("LATEST_CHAPTER_POLL_ENABLED", "maybe"),
    ("SITE_CONNECT_TO", "comix.to"),
    ("SITE_CONNECT_TO", "comix.to=localhost:8443"),
    ("SITE_CONNECT_TO", "comix.to=127.0.0.1"),
    ("SITE_CONNECT_TO", "comix.to=127.0.0.1:0"),
    ("SITE_CONNECT_TO", "comix.to=127.0.0.1:99999"),
    ("SITE_CONNECT_TO", "comix.to=2001:db8::1:443"),
    ("SITE_CONNECT_TO", "https://comix.to=127.0.0.1:443"),
    ("SITE_CA_FILE", "missing.pem"),
    ("SITE_CA_FILE", "."),
    ("DISCORD_API_BASE", "discord.com"),
    ("DISCORD_API_BASE", "http://discord.com/api"),
    ("DISCORD_WEBHOOK_URL", "http://hooks.example.org/s3cret"),
    ("DISCORD_WEBHOOK_URL", "s3cret"),
    ("DATABASE_URL", "mysql://u:s3cret@db/books"),
    ("DATABASE_URL", "host=db password=s3cret"),
    ("DATABASE_URL", "postgresql://u:s3cret%zz@db/books"),
    ("DATABASE_URL", "postgresql://u@db/books?passwort=s3cret"),
    ("LOG_FORMAT", "xml"),
    ("LOG_LEVEL", "loud"),
    ("API_TZ", "Mars/Olympus"),
    ("API_TZ", "../../etc/passwd"),
    ("API_TZ", "Europe"),
    ("METRICS_TOKEN", "s3cret\nline"),
    ("TOKEN_KEY", "s3cret\x00"),
    ("API_TZ", "UTC\udcff"),
    ("DATA_DIR", "a\tb"),
]


@pytest.mark.parametrize(("key", "text"), BAD)
def test_a_bad_value_stops_the_start_with_a_line_that_names_its_key(key: str, text: str) -> None:
    """CFG-001, CFG-009, COV-032: each rule of INTERFACE.md's table, broken; the line never holds a secret."""
    line = refusal({key: text})
    assert line.startswith(f"{key}: ")
    assert "s3cret" not in line
    assert "\n" not in line


def test_every_bad_value_is_named_at_once() -> None:
    """CFG-001"""
    lines = refusal({"PORT": "x", "LOG_LEVEL": "x", "API_TZ": "UTC"}).split("\n")
    assert [line.partition(":")[0] for line in lines] == ["PORT", "LOG_LEVEL"]


def test_a_file_of_certificates_must_hold_certificates(tmp_path: Path) -> None:
    """CFG-001: SITE_CA_FILE"""
    file = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(str(file))
    assert load_settings({"SITE_CA_FILE": "ca.pem"}).site_ca_file == file
    file.write_text("no certificate")
    assert refusal({"SITE_CA_FILE": "ca.pem"}).startswith("SITE_CA_FILE: ")


@pytest.mark.parametrize(
    "layers", [({"COVER_DIR": " "}, ""), ({}, "COVER_DIR=\n"), ({"COVER_DIR": ""}, "COVER_DIR=\n")]
)
def test_a_blank_cover_folder_is_refused(tmp_path: Path, layers: tuple[dict[str, str], str]) -> None:
    """COV-032: elsewhere a blank value counts as none; here it would scatter files over the working folder."""
    environ, file = layers
    (tmp_path / ".env").write_text(file)
    assert refusal(environ).startswith("COVER_DIR: ")


@pytest.mark.parametrize(
    ("redirect", "web"),
    [
        ("https://read.example.org/auth/callback", "https://read.example.org"),
        ("https://READ.example.org:8443/cb/", "https://read.example.org:8443"),
    ],
)
def test_the_pages_live_where_discord_sends_browsers_back_to(redirect: str, web: str) -> None:
    """CFG-011"""
    settings = load_settings({**DEPLOYED, "DISCORD_REDIRECT_URI": redirect})
    assert settings.web_base_url == web
    assert settings.discord_redirect_uri == redirect, "Discord compares it letter by letter"
    assert settings.public_base_url == "https://api.example.org"
    explicit = load_settings({**DEPLOYED, "WEB_BASE_URL": "https://other.example.org"})
    assert explicit.web_base_url == "https://other.example.org"


def test_without_discord_the_pages_live_with_the_api() -> None:
    """CFG-011"""
    assert load_settings({"PUBLIC_BASE_URL": "https://a.example"}).web_base_url == "https://a.example"


@pytest.mark.parametrize(("bind", "origin"), [("127.0.0.1", "http://127.0.0.1:4711"), ("::1", "http://[::1]:4711")])
def test_a_free_port_is_named_once_it_is_known(bind: str, origin: str) -> None:
    """CFG-002: PORT 0"""
    settings = load_settings({"PORT": "0", "BIND": bind}).bound_to(4711)
    assert settings.port == 4711
    assert settings.public_base_url == settings.web_base_url == origin
    deployed = load_settings({**DEPLOYED, "PORT": "0"}).bound_to(4711)
    assert deployed.public_base_url == "https://api.example.org"
    assert deployed.web_base_url == "https://read.example.org"
    mixed = load_settings({"PORT": "0", "WEB_BASE_URL": "https://web.example"}).bound_to(4711)
    assert (mixed.public_base_url, mixed.web_base_url) == ("http://127.0.0.1:4711", "https://web.example")


def test_the_environment_wins_over_the_file_and_a_blank_counts_as_none(tmp_path: Path) -> None:
    """CFG-001"""
    file = tmp_path / "settings"
    file.write_text("PORT=1\nBIND=127.0.0.2\nLOG_LEVEL=\n")
    settings = load_settings({"PORT": "2", "BIND": " ", "API_TZ": ""}, env_file=file)
    assert (settings.port, settings.bind, settings.log_level, settings.api_tz.key) == (2, "127.0.0.2", "info", "UTC")
    assert settings.sources["PORT"] == "environment"
    assert settings.sources["BIND"] == str(file)
    assert settings.sources["LOG_LEVEL"] == settings.sources["API_TZ"] == "default"


def test_a_settings_file_beside_the_data_folder_is_read_by_default(tmp_path: Path) -> None:
    """CFG-001"""
    place = tmp_path / "place"
    place.mkdir()
    (place / ".env").write_text("PORT=1234\n")
    assert load_settings({}).port == 8080
    assert load_settings({"DATA_DIR": "place/data"}).port == 1234
    assert load_settings({"DATA_DIR": "elsewhere/data"}, data_dir=Path("place/data")).port == 1234
    (tmp_path / ".env").write_text("PORT=99\n")
    assert load_settings({}).port == 99
    assert load_settings({}, env_file=place / ".env").port == 1234


def test_the_option_wins_over_every_other_data_folder(tmp_path: Path) -> None:
    """CFG-001"""
    (tmp_path / ".env").write_text("DATA_DIR=of-the-file\n")
    assert load_settings({}).data_dir == tmp_path / "of-the-file"
    assert load_settings({"DATA_DIR": "of-the-environment"}).data_dir == tmp_path / "of-the-environment"
    settings = load_settings({"DATA_DIR": "of-the-environment"}, data_dir=Path("of-the-option"))
    assert settings.data_dir == tmp_path / "of-the-option"
    assert settings.cover_dir == tmp_path / "of-the-option" / "covers"
    assert settings.sources["DATA_DIR"] == "--data-dir"


def test_a_named_settings_file_must_be_readable(tmp_path: Path) -> None:
    """CFG-001"""
    assert "missing.env" in refusal({}, env_file=tmp_path / "missing.env")
    assert str(tmp_path) in refusal({}, env_file=tmp_path)
    (tmp_path / "bad.env").write_bytes(b"PORT=1\nTOKEN_KEY=\xff\n")
    assert "line 2" in refusal({}, env_file=tmp_path / "bad.env")


@pytest.mark.parametrize(
    ("key", "suggestion"),
    [
        ("PROT", "PORT"),
        ("port", "PORT"),
        ("DATABASE_URI", "DATABASE_URL"),
        ("DISCORD_CLIENT_SECRT_FILE", "DISCORD_CLIENT_SECRET_FILE"),
        ("LATEST_CHAPTER_POLL_ENABLE", "LATEST_CHAPTER_POLL_ENABLED"),
        ("PORT_FILE", "PORT"),
    ],
)
def test_a_misspelt_key_in_the_file_stops_the_start(tmp_path: Path, key: str, suggestion: str) -> None:
    """CFG-001: it is named, and so is the one that was meant."""
    (tmp_path / ".env").write_text(f"{key}=1\n")
    assert f"{key} is not a setting; did you mean {suggestion}?" in refusal({})
    load_settings({key: "1"}, env_file=Path("/dev/null"))  # the environment holds other programs' keys too


def test_a_key_like_no_other_is_named_without_a_suggestion(tmp_path: Path) -> None:
    """CFG-001"""
    (tmp_path / ".env").write_text("QQQ=1\nZZZ=2\n")
    lines = refusal({}).split("\n")
    assert lines[0].endswith("QQQ is not a setting")
    assert lines[1].endswith("ZZZ is not a setting")


EARLIER = [
    "POSTGRES_PASSWORD",
    "BOOKMARK_API_HOST",
    "BOOKMARK_WEB_HOST",
    "PROXY_NETWORK",
    "TRAEFIK_NETWORK",
    "TRAEFIK_CERTRESOLVER",
    "BROWSER_TZ",
    "LATEST_CHAPTER_POLL_INTERVAL",
    "LATEST_CHAPTER_POLL_GAP",
]


def test_keys_of_the_earlier_deployment_are_named_in_one_line_and_ignored(tmp_path: Path) -> None:
    """CFG-010"""
    (tmp_path / ".env").write_text(
        "".join(f"{key}=value-of-it\n" for key in EARLIER)
        + "DATABASE_URL=postgresql://u:p@db/books\nPORT='9000' # web\n"
    )
    settings = load_settings({})
    assert settings.port == 9000
    (line,) = settings.warnings
    assert all(key in line for key in EARLIER)
    assert "value-of-it" not in line


@pytest.mark.parametrize("place", ["file", "environment"])
def test_an_earlier_database_is_never_passed_over_for_a_new_one(tmp_path: Path, place: str) -> None:
    """CFG-010"""
    environ = {"POSTGRES_PASSWORD": "s3cret"} if place == "environment" else {}
    (tmp_path / ".env").write_text("POSTGRES_PASSWORD=s3cret\n" if place == "file" else "")
    line = refusal(environ)
    assert line.startswith("DATABASE_URL: ")
    assert "s3cret" not in line
    load_settings({**environ, "DATABASE_URL": "postgresql://u:p@db/books"})
    (tmp_path / ".env").write_text("POSTGRES_PASSWORD=\n")
    load_settings({})


def test_a_dollar_reference_that_came_to_nothing_is_pointed_out(tmp_path: Path) -> None:
    """CFG-010"""
    (tmp_path / ".env").write_text("METRICS_TOKEN=abc$def\n")
    settings = load_settings({})
    assert settings.metrics_token == Secret("abc")
    (line,) = settings.warnings
    assert "$def" in line


FILE_FORMS = {
    "TOKEN_KEY": "k" * 40,
    "DATABASE_URL": "postgresql://u:db-password@db/books",
    "DISCORD_WEBHOOK_URL": "https://discord.com/api/webhooks/1/x",
    "METRICS_TOKEN": "metrics-bearer",
}


@pytest.mark.parametrize(("key", "value"), FILE_FORMS.items())
def test_a_secret_may_come_from_a_file_of_its_own(tmp_path: Path, key: str, value: str) -> None:
    """CFG-001, CFG-008"""
    file = tmp_path / "secret"
    file.write_text(f"{value}\n")
    settings = load_settings({f"{key}_FILE": str(file)})
    assert getattr(settings, key.lower()) == Secret(value)
    assert settings.sources[key] == str(file)
    (tmp_path / ".env").write_text(f"{key}_FILE=secret\n")
    assert getattr(load_settings({key: " "}), key.lower()) == Secret(value)
    line = refusal({key: value})
    assert line.startswith(f"{key}: ")
    assert f"{key}_FILE" in line
    assert value not in line


def test_the_discord_secret_may_come_from_a_file_too(tmp_path: Path) -> None:
    """CFG-001"""
    (tmp_path / "secret").write_text("from the file")
    environ = {key: value for key, value in DEPLOYED.items() if key != "DISCORD_CLIENT_SECRET"}
    settings = load_settings({**environ, "DISCORD_CLIENT_SECRET_FILE": "secret"})
    assert settings.discord_client_secret == Secret("from the file")


@pytest.mark.parametrize("content", [None, b"", b" \n", b"\xff\xfe"], ids=["missing", "empty", "blank", "not UTF-8"])
def test_a_secret_file_without_a_secret_is_named(tmp_path: Path, content: bytes | None) -> None:
    """CFG-001"""
    if content is not None:
        (tmp_path / "secret").write_bytes(content)
    assert refusal({"TOKEN_KEY_FILE": "secret"}).startswith("TOKEN_KEY_FILE: ")


def test_no_secret_shows_in_the_settings() -> None:
    """CFG-008, OPS-001"""
    settings = load_settings({**DEPLOYED, **FILE_FORMS})
    shown = f"{settings} {settings!r}"
    for secret in settings.secret_texts:
        assert secret not in shown
    hidden = {setting.key for setting in SETTINGS if setting.secret}
    assert hidden == {
        "TOKEN_KEY",
        "DATABASE_URL",
        "DISCORD_CLIENT_SECRET",
        "DISCORD_WEBHOOK_URL",
        "METRICS_TOKEN",
    }


@pytest.mark.parametrize(
    ("address", "passwords"),
    [
        ("postgresql://u:pass%21word@db/books", {"pass%21word", "pass!word"}),
        ("postgresql://u:p:a@one,two:5433/books", {"p:a"}),
        ("postgresql://db/books?user=u&password=in%20query&sslpassword=other", {"in%20query", "in query", "other"}),
        ("postgresql://u@db/books", set()),
    ],
)
def test_the_password_inside_the_database_address_is_a_secret_of_its_own(address: str, passwords: set[str]) -> None:
    """OPS-001"""
    settings = load_settings({"DATABASE_URL": address, "TOKEN_KEY": "k" * 32})
    assert set(settings.secret_texts) == {address, "k" * 32, *passwords}


def test_a_new_key_is_made_up_and_a_kept_one_is_used(tmp_path: Path) -> None:
    """CFG-001: TOKEN_KEY in local mode; only `settle_token_key` writes it."""
    first, second = load_settings({}), load_settings({})
    assert len(first.token_key.reveal()) == 64
    assert first.token_key != second.token_key
    assert first.sources["TOKEN_KEY"] == "generated"
    (tmp_path / "data").mkdir()
    first.token_key_file.write_text("kept\n")
    assert load_settings({}).token_key == Secret("kept")
    first.token_key_file.write_text("\n")
    assert refusal({}).startswith("TOKEN_KEY: ")


def test_each_field_holds_what_its_type_says() -> None:
    """CFG-001: the parser of a table line makes the type of its field."""
    hints = get_type_hints(Settings)
    everything = load_settings({**DEPLOYED, **FILE_FORMS, **{key: text for key, text, _ in GOOD if key != "TOKEN_KEY"}})
    for setting in SETTINGS:
        value = getattr(everything, setting.key.lower())
        if "[" not in str(hints[setting.key.lower()]):
            assert isinstance(value, hints[setting.key.lower()]), setting.key
        assert setting.documentation
    assert {setting.key.lower() for setting in SETTINGS} == (
        {field.name for field in dataclasses.fields(Settings)} - {"sources", "warnings"}
    )


def test_settings_cannot_be_changed() -> None:
    """CFG-001"""
    with pytest.raises(dataclasses.FrozenInstanceError):
        load_settings({}).port = 1  # type: ignore[misc]
