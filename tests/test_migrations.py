"""The schema's twenty inherited steps, what we add, and the runner, on every PostgreSQL that is found here."""

import hashlib
import logging
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import trio
from psycopg.conninfo import make_conninfo

from bookmark_appliance.credentials import credential_hash, derive_credential
from bookmark_appliance.database import open_database
from bookmark_appliance.postgres.connecting import NO_TIMEOUTS, DatabaseUnavailable, connect
from bookmark_appliance.postgres.files import PostgresFiles, prepare_files
from bookmark_appliance.postgres.migrations import (
    Migration,
    MigrationFailed,
    MigrationRefused,
    load_migrations,
    migrate,
    pending,
)
from bookmark_appliance.postgres.polling import until
from bookmark_appliance.postgres.process import end_server, launch, read_postmaster
from bookmark_appliance.postgres.trio_connection import TrioConnection
from bookmark_appliance.secret import Secret
from bookmark_appliance.store.bookmarks import find_list_version
from bookmark_appliance.store.readers import seed_owner

KEY = Secret("a token key for tests, 32 characters or more")
OWNER = "100000000000000001"
STEPS = load_migrations()
TAKEN_OVER = 20

SYSTEM_SERVERS = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
"""Servers of the system's own packages. None need be there; the embedded one always is."""


async def seed(connection: TrioConnection) -> None:
    await seed_owner(connection, OWNER, KEY)


async def reach(url: str, version: int) -> None:
    """Bring the database to this version by our own files."""
    assert await migrate(url, seed, STEPS[:version]) == version


async def fetch(url: str, query: str) -> list[tuple[Any, ...]]:
    connection = await connect(url, NO_TIMEOUTS)
    try:
        return await (await connection.execute(query.encode())).fetchall()
    finally:
        await connection.close()


async def run(url: str, statements: str) -> None:
    connection = await connect(url, NO_TIMEOUTS)
    try:
        await connection.execute(statements.encode())
    finally:
        await connection.close()


def rows_of(version: int) -> str:
    """Statements that put rows into every table that a database at this version has.

    `asura:one` is held by a Bookmark at chapter 10, a favourite; `asura:done` by a finished one.
    """
    statements = [f"INSERT INTO schema_migrations (version) SELECT generate_series(1, {version})"]
    if version == 1:
        statements.append(
            """
            INSERT INTO bookmarks (key, site, series_id, title, cover, last_chapter_num, favorite, latest_checked_at,
                                   latest_chapter_num, status, updated_at)
            VALUES ('asura:one', 'asura', 'one', 'One', 'https://c/1', 10, TRUE, 123456, 12, 'reading', 5),
                   ('asura:done', 'asura', 'done', 'Done', '', 3, FALSE, 0, NULL, 'finished', 6)
            """
        )
        return ";".join(statements)
    statements.append(
        """
        INSERT INTO series (site, series_id, title, cover, latest_checked_at, latest_chapter_num)
        VALUES ('asura', 'one', 'One', 'https://c/1', 123456, 12), ('asura', 'done', 'Done', '', 0, NULL)
        """
    )
    if version >= 3:
        digest = credential_hash(derive_credential(KEY, OWNER, 0)).hex()
        statements.append(f"INSERT INTO readers (discord_id, token_sha256) VALUES ('{OWNER}', '\\x{digest}')")
    names, values = "", ""
    if version in (2, 3):
        names, values = "key, ", "'asura:' || series_id, "
    if version >= 4:
        names, values = "reader_id, ", "1, "
    finished = "archived" if version >= 16 else "finished"
    statements.append(
        f"""
        INSERT INTO bookmarks ({names}site, series_id, last_chapter_num, favorite, status, updated_at)
        SELECT {values}site, series_id, CASE series_id WHEN 'one' THEN 10 ELSE 3 END, series_id = 'one',
               CASE series_id WHEN 'one' THEN 'reading' ELSE '{finished}' END,
               CASE series_id WHEN 'one' THEN 5 ELSE 6 END
        FROM series
        """
    )
    later = {
        5: "INSERT INTO sessions (id, reader_id, expires_at) VALUES ('s', 1, '2030-01-01')",
        9: "UPDATE series SET cover_address = 'abcd' WHERE series_id = 'one'",
        10: "UPDATE readers SET sighting_agreements = 4",
        11: "UPDATE series SET latest_sighted_at = 7, latest_raised_by = 1 WHERE series_id = 'one'",
        12: "INSERT INTO poll_lanes (site, paused_until) VALUES ('asura', 9)",
        16: "UPDATE series SET finished_at = 99 WHERE series_id = 'done'",
        18: "INSERT INTO poll_failures VALUES ('asura', 'one', 'refused', 8)",
        20: "INSERT INTO owner_notices VALUES ('stall', 'asura', 3)",
    }
    statements += [statement for since, statement in later.items() if version >= since]
    if version == 7:
        statements.append("INSERT INTO covers (image_id, body, content_type) VALUES ('i', 'x', 'image/png')")
    if version >= 8:
        statements.append("INSERT INTO covers VALUES ('abcd', 'ab/cd/abcd', 'image/png')")
    if version >= 13:
        statements.append(
            f"INSERT INTO poll_passes SELECT 'asura', 1, '', 1, 1, 10000, FALSE{', 0' * (5 + (version >= 17))}"
        )
    return ";".join(statements)


async def leave_as_the_earlier_deployment(url: str, version: int) -> None:
    """Files 1 to `version` were run by another program, which kept a table of versions of its own making."""
    await run(
        url,
        """
        CREATE TABLE schema_migrations (
            version bigint PRIMARY KEY,
            applied_at timestamptz NOT NULL DEFAULT now()
        )
        """,
    )
    for step in STEPS[:version]:
        await run(url, step.statements.decode())
    await run(url, rows_of(version))


SHAPE = """
    SELECT table_name, column_name, data_type, is_nullable, column_default, NULL, NULL
    FROM information_schema.columns
    WHERE table_schema = 'public'
    UNION ALL
    SELECT conrelid::regclass::text, conname, contype::text, NULL, NULL, pg_get_constraintdef(oid), NULL
    FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace AND contype <> 'n'
    UNION ALL
    SELECT tablename, indexname, NULL, NULL, NULL, NULL, indexdef
    FROM pg_indexes
    WHERE schemaname = 'public'
    ORDER BY 1, 2, 3
"""
"""Everything that makes two schemas equal, the order of columns aside."""


@pytest.fixture(scope="session", params=["embedded", *map(str, SYSTEM_SERVERS)])
def server_conninfo(request: pytest.FixtureRequest, postgres_conninfo: str) -> Iterator[str]:
    """A server of each PostgreSQL that is found: the embedded 18, and what the system has installed."""
    if request.param == "embedded":
        yield postgres_conninfo
        return
    folder = Path(tempfile.mkdtemp(prefix="bookmark-system-"))
    folder.chmod(0o711)
    shipped = prepare_files(folder)
    files = PostgresFiles(
        user=shipped.user,
        cluster=folder / "cluster",
        log=folder / "log",
        access_rules=folder / "hba",
        access_names=folder / "ident",
        socket_folder=shipped.socket_folder,
        programs=Path(request.param).parent,
    )
    files.cluster.mkdir(mode=0o700)
    shutil.chown(files.cluster, files.user.uid, files.user.gid)
    files.access_rules.write_text("local all all trust\n")
    files.access_names.write_text("")

    async def start() -> None:
        made = launch(
            files,
            "initdb",
            ["-D", str(files.cluster), "-U", "x", "-E", "UTF8", "--locale=C", "-N"],
            ends_with_us=signal.SIGKILL,
        )
        assert made.wait() == 0, files.log.read_text()
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(files.socket_folder),
            "hba_file": str(files.access_rules),
            "ident_file": str(files.access_names),
            "fsync": "off",
        }
        words = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        child = launch(files, "postgres", ["-D", str(files.cluster), *words], ends_with_us=signal.SIGINT)
        with trio.fail_after(30):
            await until(lambda: (read_postmaster(files.cluster) or (0, ""))[1] == "ready")
        children.append(child)

    children: list[Any] = []
    trio.run(start)
    try:
        yield make_conninfo("", host=str(files.socket_folder), user="x", dbname="postgres")
    finally:
        trio.run(end_server, children[0].pid, files.cluster, children[0])
        shutil.rmtree(folder)


@pytest.fixture
async def url(server_conninfo: str) -> AsyncIterator[str]:
    """An empty database on each server."""
    name = f"test_{uuid4().hex}"
    connection = await connect(server_conninfo, NO_TIMEOUTS)
    await connection.execute(f"CREATE DATABASE {name} TEMPLATE template0".encode())
    yield make_conninfo(server_conninfo, dbname=name)
    await connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
    await connection.close()


@pytest.fixture(scope="session")
def shape_of_a_new_database(postgres_conninfo: str, template_database: str) -> list[tuple[Any, ...]]:
    """The schema that a database gets which was ours from the start."""
    return trio.run(fetch, make_conninfo(postgres_conninfo, dbname=template_database), SHAPE)


@pytest.mark.parametrize("version", range(1, TAKEN_OVER + 1))
async def test_database_of_any_version_is_carried_on_in_place(
    url: str, shape_of_a_new_database: list[tuple[Any, ...]], version: int
) -> None:
    """MIG-001, MIG-003, TOK-004: same rows, same credential, and the schema of a database made anew."""
    await leave_as_the_earlier_deployment(url, version)
    assert await migrate(url, seed) == len(STEPS)

    assert await fetch(
        url,
        """
        SELECT reader_id, series_id, last_chapter_num, favorite, status, updated_at
        FROM bookmarks
        ORDER BY updated_at
        """,
    ) == [(1, "one", 10.0, True, "reading", 5), (1, "done", 3.0, False, "archived", 6)]
    assert await fetch(
        url,
        """
        SELECT series_id, title, cover, latest_checked_at, latest_chapter_num, finished_at > 0,
               latest_sighted_at, latest_raised_by, cover_address
        FROM series
        ORDER BY series_id
        """,
    ) == [
        ("done", "Done", "", 0, None, True, 0, None, ""),
        (
            "one",
            "One",
            "https://c/1",
            123456,
            12.0,
            False,
            7 if version >= 11 else 0,
            1 if version >= 11 else None,
            "abcd" if version >= 9 else "",
        ),
    ]
    counts = {"sessions": 5, "covers": 8, "poll_lanes": 12, "poll_passes": 13, "poll_failures": 18, "owner_notices": 20}
    for table, since in counts.items():
        assert await fetch(url, f"SELECT count(*) FROM {table}") == [(int(version >= since),)], table
    assert await fetch(url, "SELECT discord_id, token_epoch FROM readers") == [(OWNER, 0)]

    async with open_database(url) as database, database.connection() as connection:
        credential = derive_credential(KEY, OWNER, 0)
        assert await find_list_version(connection, credential_hash(credential)) is not None
    assert await fetch(url, SHAPE) == shape_of_a_new_database


async def test_second_start_changes_nothing(url: str) -> None:
    """TOK-008: migrations are no-ops and rows stay untouched."""
    await leave_as_the_earlier_deployment(url, TAKEN_OVER)
    await migrate(url, seed)
    before = [await fetch(url, f"SELECT * FROM {table}") for table in ("schema_migrations", "readers", "bookmarks")]
    assert await migrate(url, seed) == len(STEPS)
    after = [await fetch(url, f"SELECT * FROM {table}") for table in ("schema_migrations", "readers", "bookmarks")]
    assert after == before


async def test_two_starts_at_once_take_turns(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """MIG-001: one migrates, the other says once that it waits for it, and finds nothing to do."""
    caplog.set_level(logging.INFO)
    seeded: list[str] = []
    reached: list[int] = []

    async def start() -> None:
        async def slow_seed(connection: TrioConnection) -> None:
            seeded.append("asked")
            await seed(connection)
            await connection.execute("SELECT pg_sleep(0.05)")

        reached.append(await migrate(url, slow_seed))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(start)
    assert reached == [len(STEPS)] * 3
    assert caplog.text.count("waiting for another process that migrates") == 2
    assert len(seeded) == 4  # the first one twice: on the way and at the end
    assert await fetch(url, "SELECT count(*) FROM readers") == [(1,)]


async def test_series_split_moves_what_is_shared(empty_database_url: str) -> None:
    """MIG-002: title and the check stamp 123456 move; favourite and chapter 10 stay with the Bookmark."""
    await reach(empty_database_url, 1)
    await run(
        empty_database_url,
        """
        INSERT INTO bookmarks (key, site, series_id, title, last_chapter_num, favorite, latest_checked_at, updated_at)
        VALUES ('a', 'asura', 'one', 'One', 10, TRUE, 123456, 1),
               ('b', 'asura', 'one', 'One, renamed', 11, FALSE, 123457, 2)
        """,
    )
    await reach(empty_database_url, 2)
    assert await fetch(empty_database_url, "SELECT title, latest_checked_at FROM series") == [("One, renamed", 123457)]
    assert await fetch(empty_database_url, "SELECT last_chapter_num, favorite FROM bookmarks ORDER BY key") == [
        (10.0, True),
        (11.0, False),
    ]
    with pytest.raises(psycopg.errors.ForeignKeyViolation, match="bookmarks_series_fk"):
        await run(empty_database_url, "DELETE FROM series")


async def test_ownerless_bookmarks_go_to_the_oldest_reader(empty_database_url: str) -> None:
    """MIG-003, SER-001: the owner is seeded on the way; the text key gives way to the composite one."""
    await reach(empty_database_url, 2)
    await run(
        empty_database_url,
        """
        INSERT INTO series (site, series_id) VALUES ('asura', 'one');
        INSERT INTO bookmarks (key, site, series_id, updated_at) VALUES ('asura:one', 'asura', 'one', 1)
        """,
    )
    await reach(empty_database_url, 4)
    assert await fetch(
        empty_database_url, "SELECT discord_id, site, series_id FROM bookmarks JOIN readers ON readers.id = reader_id"
    ) == [(OWNER, "asura", "one")]
    assert await fetch(
        empty_database_url,
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'bookmarks'::regclass AND contype = 'p'",
    ) == [("PRIMARY KEY (reader_id, site, series_id)",)]


async def test_sessions_and_epoch_arrive(empty_database_url: str) -> None:
    """MIG-004: the epoch of a Reader who was there before is 0."""
    await reach(empty_database_url, 6)
    assert await fetch(empty_database_url, "SELECT token_epoch FROM readers") == [(0,)]
    assert await fetch(empty_database_url, "SELECT count(*) FROM sessions") == [(0,)]


async def test_covers_lose_their_bytes(empty_database_url: str) -> None:
    """MIG-005: one stored image before, none after; a Series then has no cover address."""
    await reach(empty_database_url, 7)
    await run(
        empty_database_url,
        """
        INSERT INTO covers (image_id, body, content_type) VALUES ('i', 'x', 'image/png');
        INSERT INTO series (site, series_id) VALUES ('asura', 'one')
        """,
    )
    await reach(empty_database_url, 9)
    assert await fetch(empty_database_url, "SELECT count(*) FROM covers") == [(0,)]
    assert await fetch(empty_database_url, "SELECT cover_address FROM series") == [("",)]


async def test_inherited_columns_have_their_defaults(empty_database_url: str) -> None:
    """MIG-006, MIG-007, MIG-010, SER-002: counters and stamps start at 0, the raiser as null."""
    await reach(empty_database_url, TAKEN_OVER)
    await run(
        empty_database_url,
        """
        INSERT INTO series (site, series_id) VALUES ('asura', 'one');
        INSERT INTO poll_lanes (site) VALUES ('asura');
        INSERT INTO poll_passes (site, ran_at, skip, due, checked, gap_ms, clamped, refused, unreachable, no_chapter,
                                 unfetchable, errors)
        VALUES ('asura', 1, '', 0, 0, 0, FALSE, 0, 0, 0, 0, 0)
        """,
    )
    assert await fetch(empty_database_url, "SELECT sighting_agreements, sighting_disagreements FROM readers") == [
        (0, 0)
    ]
    assert await fetch(
        empty_database_url,
        """
        SELECT title, series_url, cover, cover_address, kind, latest_chapter, latest_chapter_num, latest_checked_at,
               latest_sighted_at, latest_raised_by, force_poll_at, latest_corrected_at, finished_at, site_completed_at
        FROM series
        """,
    ) == [("", "", "", "", "manga", "", None, 0, 0, None, 0, 0, 0, 0)]
    assert await fetch(empty_database_url, "SELECT paused_until, refuse_until FROM poll_lanes") == [(0, 0)]
    assert await fetch(empty_database_url, "SELECT not_found FROM poll_passes") == [(0,)]
    assert await fetch(empty_database_url, "SELECT count(*) FROM poll_failures") == [(0,)]
    assert await fetch(empty_database_url, "SELECT count(*) FROM owner_notices") == [(0,)]
    assert await fetch(
        empty_database_url, "SELECT indexdef FROM pg_indexes WHERE indexname = 'series_latest_checked_at_idx'"
    ) == [("CREATE INDEX series_latest_checked_at_idx ON public.series USING btree (latest_checked_at)",)]


async def test_only_wholly_finished_series_are_stamped_before_the_flip(empty_database_url: str) -> None:
    """MIG-008, MIG-009: all Bookmarks finished stamps; one reading among them, or none at all, does not."""
    await reach(empty_database_url, 15)
    await run(
        empty_database_url,
        """
        INSERT INTO readers (discord_id, token_sha256) VALUES ('2', 'x');
        INSERT INTO series (site, series_id) VALUES ('s', 'all'), ('s', 'mixed'), ('s', 'orphan');
        INSERT INTO bookmarks (reader_id, site, series_id, status, updated_at)
        SELECT id, 's', series_id, CASE WHEN id = 1 AND series_id = 'mixed' THEN 'reading' ELSE 'finished' END, 1
        FROM readers, series
        WHERE series_id <> 'orphan'
        """,
    )
    await reach(empty_database_url, 16)
    assert await fetch(
        empty_database_url,
        """
        SELECT series_id, finished_at BETWEEN extract(epoch FROM now() - interval '1 minute') * 1000
                                          AND extract(epoch FROM now()) * 1000
        FROM series
        WHERE finished_at <> 0
        """,
    ) == [("all", True)]
    assert await fetch(empty_database_url, "SELECT status, count(*) FROM bookmarks GROUP BY 1 ORDER BY 1") == [
        ("archived", 3),
        ("reading", 1),
    ]


def step(version: int, statements: bytes) -> Migration:
    return Migration(version, f"{version:04}_extra.sql", statements, hashlib.sha256(statements).hexdigest())


def with_more(*statements: bytes) -> Sequence[Migration]:
    """The shipped steps and some after them."""
    return [*STEPS, *(step(len(STEPS) + n, text) for n, text in enumerate(statements, start=1))]


async def test_own_steps_record_their_checksum(empty_database_url: str) -> None:
    """MIG-001: the twenty inherited steps have none, what comes after has that of its file."""
    await migrate(empty_database_url, seed)
    recorded = await fetch(empty_database_url, "SELECT version, checksum FROM schema_migrations ORDER BY version")
    assert recorded[:TAKEN_OVER] == [(version, None) for version in range(1, TAKEN_OVER + 1)]
    assert recorded[TAKEN_OVER:] == [(own.version, own.checksum) for own in STEPS[TAKEN_OVER:]]


async def test_edited_file_is_refused(empty_database_url: str) -> None:
    """MIG-001, OPS-001: what was applied must stay as it was."""
    await migrate(empty_database_url, seed, with_more(b"CREATE TABLE extra ()"))
    with pytest.raises(MigrationRefused, match="was edited after it had been applied"):
        await migrate(empty_database_url, seed, with_more(b"CREATE TABLE extra (n int)"))


async def test_newer_database_is_refused(empty_database_url: str) -> None:
    """MIG-001, OPS-001: an older file does not touch what a newer one made."""
    await migrate(empty_database_url, seed, with_more(b"CREATE TABLE extra ()"))
    with pytest.raises(MigrationRefused, match=f"is at version {len(STEPS) + 1}, this code knows {len(STEPS)}"):
        await migrate(empty_database_url, seed)


async def test_gap_in_the_recorded_versions_is_refused(empty_database_url: str) -> None:
    """MIG-001: a version that is missing between two others was never run, or its row was lost."""
    await reach(empty_database_url, 12)
    await run(empty_database_url, "DELETE FROM schema_migrations WHERE version = 7")
    with pytest.raises(MigrationRefused, match="gap"):
        await migrate(empty_database_url, seed)


async def test_failed_step_leaves_the_state_before_it(empty_database_url: str) -> None:
    """MIG-001, OPS-001: statements and version row are one transaction; steps before the failed one stay."""
    steps = with_more(b"CREATE TABLE good ()", b"CREATE TABLE half (); SELECT 1/0")
    with pytest.raises(MigrationFailed, match="division by zero"):
        await migrate(empty_database_url, seed, steps)
    assert await fetch(empty_database_url, "SELECT max(version) FROM schema_migrations") == [(len(STEPS) + 1,)]
    assert await fetch(empty_database_url, "SELECT to_regclass('good') IS NULL, to_regclass('half') IS NULL") == [
        (False, True)
    ]
    assert await migrate(empty_database_url, seed, with_more(b"CREATE TABLE good ()")) == len(STEPS) + 1


async def test_lost_connection_while_migrating_is_unavailable(empty_database_url: str) -> None:
    """OPS-001: a server that goes away is no fault of a step."""
    steps = with_more(b"SELECT pg_terminate_backend(pg_backend_pid())")
    with pytest.raises(DatabaseUnavailable):
        await migrate(empty_database_url, seed, steps)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["0001_first.sql", "0003_third.sql"], "0002"),
        (["0001_first.sql", "0001_again.sql"], "0002"),
        (["0002_second.sql"], "0001"),
        (["0001_first.sql", "2_second.sql"], "2_second.sql"),
        (["0001_First.sql"], "0001_First.sql"),
        (["0001_first.sql", "0002_second.sql.orig"], "orig"),
        (["0001_first.sql", "README"], "README"),
    ],
)
def test_bad_file_names_are_refused(tmp_path: Path, names: list[str], words: str) -> None:
    """MIG-001: a bad name, a missing number and a doubled one each fail the start, naming the file."""
    for name in names:
        (tmp_path / name).write_text("SELECT 1")
    with pytest.raises(MigrationRefused, match=words):
        load_migrations(tmp_path)


def test_every_shipped_file_is_loaded_in_order() -> None:
    """MIG-001: by number, with a name."""
    assert [found.version for found in STEPS] == list(range(1, len(STEPS) + 1))
    assert len(STEPS) > TAKEN_OVER


@pytest.mark.parametrize("change", [lambda checksum: checksum, lambda _: None], ids=["same", "none recorded"])
def test_pending_goes_on_after_the_last_recorded_version(change: Callable[[str], str | None]) -> None:
    """MIG-001: a pure decision over what is recorded."""
    applied = {found.version: change(found.checksum) for found in STEPS[:-1]}
    assert list(pending(STEPS, applied)) == [STEPS[-1]]
    assert list(pending(STEPS, {})) == list(STEPS)
