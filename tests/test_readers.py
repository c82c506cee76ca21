"""The store of Readers, on a real database."""

from collections.abc import Awaitable, Callable

import trio

from bookmark_appliance.credentials import credential_hash, derive_credential
from bookmark_appliance.database import Database
from bookmark_appliance.postgres.trio_connection import TrioConnection
from bookmark_appliance.secret import Secret
from bookmark_appliance.store.bookmarks import find_list_version
from bookmark_appliance.store.readers import (
    Reader,
    add_reader,
    end_sessions,
    find_by_discord_id,
    list_readers,
    rotate_credential,
    seed_owner,
)

OTHER_KEY = Secret("another token key, also of 32 characters")

WAITING = """
    SELECT count(*)
    FROM pg_stat_activity
    WHERE datname = current_database()
      AND wait_event_type = 'Lock'
"""


async def let_in(connection: TrioConnection, credential: Secret) -> int | None:
    """The id of the Reader whom this credential lets in."""
    found = await find_list_version(connection, credential_hash(credential))
    return None if found is None else found.reader_id


async def test_owner_is_seeded_once_and_keeps_the_id(
    database: Database, owner_discord_id: str, token_key: Secret
) -> None:
    """TOK-004: exactly one row with the epoch-0 hash, the same id on every start."""
    async with database.transaction() as connection:
        before = await find_by_discord_id(connection, owner_discord_id)
        await seed_owner(connection, owner_discord_id, token_key)
        found = await let_in(connection, derive_credential(token_key, owner_discord_id, 0))
        count = await (await connection.execute("SELECT count(*) FROM readers")).fetchone()
    assert before is not None
    assert found == before.id
    assert count == (1,)


async def test_changed_key_refreshes_the_owner_while_the_epoch_is_zero(
    database: Database, owner_discord_id: str, token_key: Secret
) -> None:
    """TOK-005: the new credential works, the old one does not, and there is no second row."""
    async with database.transaction() as connection:
        await seed_owner(connection, owner_discord_id, OTHER_KEY)
        owner = await find_by_discord_id(connection, owner_discord_id)
        assert owner is not None
        assert await let_in(connection, derive_credential(token_key, owner_discord_id, 0)) is None
        assert await let_in(connection, derive_credential(OTHER_KEY, owner_discord_id, 0)) == owner.id
        assert len(await list_readers(connection, owner_discord_id, 0)) == 1


async def test_start_after_a_rotation_leaves_the_hash_alone(
    database: Database, owner_discord_id: str, token_key: Secret
) -> None:
    """TOK-006, TOK-007: the rotated credential lives through a restart, the rotated-away one stays dead."""
    async with database.transaction() as connection:
        rotated = await rotate_credential(connection, owner_discord_id, token_key)
    assert rotated is not None
    async with database.transaction() as connection:
        await seed_owner(connection, owner_discord_id, token_key)
        owner = await find_by_discord_id(connection, owner_discord_id)
        assert owner is not None
        assert owner.epoch == 1
        assert await let_in(connection, derive_credential(token_key, owner_discord_id, 0)) is None
        assert await let_in(connection, rotated) == owner.id


async def test_changed_key_after_a_rotation_leaves_no_credential_that_works(
    database: Database, owner_discord_id: str, token_key: Secret
) -> None:
    """TOK-011: what the new key derives is not what is stored, and starting does not mend it."""
    async with database.transaction() as connection:
        await rotate_credential(connection, owner_discord_id, token_key)
        await seed_owner(connection, owner_discord_id, OTHER_KEY)
        for epoch in (0, 1):
            derived = derive_credential(OTHER_KEY, owner_discord_id, epoch)
            assert await let_in(connection, derived) is None


async def test_returning_reader_keeps_the_stored_hash(
    database: Database, token_key: Secret, owner_discord_id: str
) -> None:
    """TOK-009: adding a Reader who exists changes nothing, even with another key."""
    async with database.transaction() as connection:
        first = await add_reader(connection, "2001", token_key)
        again = await add_reader(connection, "2001", OTHER_KEY)
        assert again == first
        assert await let_in(connection, derive_credential(token_key, "2001", 0)) == first.id


async def test_rotating_an_unknown_reader_gives_nothing(database: Database, token_key: Secret) -> None:
    """TOK-007: there is no credential for an id without a row."""
    async with database.transaction() as connection:
        assert await rotate_credential(connection, "404", token_key) is None


async def test_rotation_and_a_first_put_take_turns(
    database: Database, owner_discord_id: str, token_key: Secret
) -> None:
    """TOK-007: a PUT holds the Reader's key before it bumps their list's version; neither ends in a deadlock."""
    rotated: list[Secret | None] = []

    async def rotate() -> None:
        async with database.transaction() as connection:
            rotated.append(await rotate_credential(connection, owner_discord_id, token_key))

    async with trio.open_nursery() as nursery, database.transaction() as put, database.connection() as watch:
        await put.execute("INSERT INTO series (site, series_id) VALUES ('asura', 'one')")
        await put.execute("SELECT FROM readers WHERE discord_id = %s FOR KEY SHARE", (owner_discord_id,))
        nursery.start_soon(rotate)
        with trio.fail_after(20):
            while await (await watch.execute(WAITING)).fetchone() == (0,):
                pass
        await put.execute(
            """
            INSERT INTO bookmarks (reader_id, site, series_id, updated_at)
            SELECT id, 'asura', 'one', 1
            FROM readers
            WHERE discord_id = %s
            """,
            (owner_discord_id,),
        )
        assert not rotated
    assert rotated == [derive_credential(token_key, owner_discord_id, 1)]


async def test_list_counts_bookmarks_and_living_sessions(
    database: Database, owner_discord_id: str, make_reader: Callable[[TrioConnection, str], Awaitable[Reader]]
) -> None:
    """INTERFACE.md: the fields of `readers list`, the oldest Reader first; an expired session does not count."""
    async with database.transaction() as connection:
        reader = await make_reader(connection, "2001")
        await connection.execute("INSERT INTO series (site, series_id) VALUES ('asura', 'one'), ('asura', 'two')")
        await connection.execute(
            "INSERT INTO bookmarks (reader_id, site, series_id, updated_at) VALUES (%s, 'asura', 'one', 1)",
            (reader.id,),
        )
        await connection.execute(
            """
            INSERT INTO sessions (id, reader_id, expires_at)
            VALUES ('old', %(reader)s, to_timestamp(10)), ('new', %(reader)s, to_timestamp(20))
            """,
            {"reader": reader.id},
        )
        owner, other = await list_readers(connection, owner_discord_id, now_ms=15_000)
    assert (owner.discord_id, owner.owner, owner.bookmarks, owner.sessions) == (owner_discord_id, True, 0, 0)
    assert (other.discord_id, other.owner, other.epoch, other.bookmarks, other.sessions) == ("2001", False, 0, 1, 1)
    assert other.created_at.utcoffset() is not None


async def test_ending_sessions_spares_other_readers(
    database: Database, make_reader: Callable[[TrioConnection, str], Awaitable[Reader]]
) -> None:
    """SES-007, SES-008: all of one Reader's sessions end; they also go with the Reader's row."""
    async with database.transaction() as connection:
        for name in ("2001", "2002"):
            reader = await make_reader(connection, name)
            await connection.execute(
                "INSERT INTO sessions (id, reader_id, expires_at) VALUES (%s, %s, to_timestamp(9))", (name, reader.id)
            )
        assert await end_sessions(connection, "2001") == 1
        assert await end_sessions(connection, "2001") == 0
        assert await end_sessions(connection, "404") is None
        assert await (await connection.execute("SELECT id FROM sessions")).fetchall() == [("2002",)]
        await connection.execute("DELETE FROM readers WHERE discord_id = '2002'")
        assert await (await connection.execute("SELECT id FROM sessions")).fetchall() == []


async def test_deleting_a_reader_takes_their_bookmarks_and_keeps_the_series(
    database: Database, make_reader: Callable[[TrioConnection, str], Awaitable[Reader]]
) -> None:
    """SER-008, MIG-006: the number that they raised stays, the raiser becomes null."""
    async with database.transaction() as connection:
        reader = await make_reader(connection, "2001")
        await connection.execute(
            "INSERT INTO series (site, series_id, latest_chapter_num, latest_raised_by) VALUES ('asura', 'one', 7, %s)",
            (reader.id,),
        )
        await connection.execute(
            "INSERT INTO bookmarks (reader_id, site, series_id, updated_at) VALUES (%s, 'asura', 'one', 1)",
            (reader.id,),
        )
        await connection.execute("DELETE FROM readers WHERE id = %s", (reader.id,))
        series = await connection.execute("SELECT latest_chapter_num, latest_raised_by FROM series")
        assert await series.fetchall() == [(7.0, None)]
        bookmarks = await connection.execute("SELECT count(*) FROM bookmarks")
        assert await bookmarks.fetchone() == (0,)
