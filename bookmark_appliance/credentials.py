"""A Reader's credential: derived, never stored (TOK-001 to TOK-003)."""

import hashlib
import hmac

from bookmark_appliance.secret import Secret


def derive_credential(token_key: Secret, discord_id: str, epoch: int) -> Secret:
    """The 64 lower-case hex digits of this Reader at this epoch. The same key, id and epoch always give the same."""
    message = discord_id.encode() + b"\0" + str(epoch).encode()
    return Secret(hmac.new(token_key.reveal().encode(), message, hashlib.sha256).hexdigest())


def credential_hash(credential: Secret | str) -> bytes:
    """What `readers.token_sha256` holds: 32 bytes, the SHA-256 of the credential's hex text."""
    text = credential.reveal() if isinstance(credential, Secret) else credential
    return hashlib.sha256(text.encode()).digest()
