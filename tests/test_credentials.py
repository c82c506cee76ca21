"""The pure part of a credential."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from bookmark_appliance.credentials import credential_hash, derive_credential
from bookmark_appliance.secret import Secret

KEY = Secret("k" * 32)


def test_credential_is_the_hmac_of_id_zero_byte_and_epoch() -> None:
    """TOK-001: fixed values, so that scripts installed by an earlier deployment go on working."""
    # printf '42\0000' | openssl dgst -sha256 -hmac kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk
    assert (
        derive_credential(KEY, "42", 0).reveal() == "17ba48c9067d1f7602963b584ca6754116eadbb5c7695ef107c62c4545d6483c"
    )
    assert (
        derive_credential(KEY, "42", 10).reveal() == "863bbe67d02e1d02cae3c5f6cd1193ee8b039ed0543e4aa463bc21264fe59453"
    )


def test_database_form_is_the_hash_of_the_hex_text() -> None:
    """TOK-003: SHA-256 over the 64 characters, not over the 32 bytes behind them; the plaintext has no part in it."""
    digest = credential_hash("00" * 32)
    assert digest.hex() == "60e05bd1b195af2f94112fa7197a5c88289058840ce7c6df9693756bc6250f55"
    assert credential_hash(Secret("00" * 32)) == digest


@settings(max_examples=50)
@given(discord_id=st.text("0123456789", min_size=1, max_size=20), epoch=st.integers(0, 2**62), key=st.text(min_size=1))
def test_credential_is_always_64_hex_digits_and_the_same_again(discord_id: str, epoch: int, key: str) -> None:
    """TOK-001: always 64 lower-case hex digits; deterministic."""
    credential = derive_credential(Secret(key), discord_id, epoch).reveal()
    assert re.fullmatch(r"[0-9a-f]{64}", credential)
    assert derive_credential(Secret(key), discord_id, epoch).reveal() == credential


def test_reader_epoch_and_key_each_change_the_credential() -> None:
    """TOK-002: the zero byte keeps Reader 4 at epoch 21 apart from Reader 42 at epoch 1."""
    credentials = {
        derive_credential(key, discord_id, epoch).reveal()
        for key in (KEY, Secret("other"))
        for discord_id in ("4", "42", "421")
        for epoch in (0, 1, 21)
    }
    assert len(credentials) == 18


def test_credential_does_not_show_itself() -> None:
    """TOK-003: what is derived is a secret until somebody reveals it."""
    assert "***" in f"{derive_credential(KEY, '42', 0)!r}"
