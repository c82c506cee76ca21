"""Discord, as the sign-in asks it: who someone is, and whether they are of the guild (SES-014, SES-019 to SES-024)."""

from dataclasses import dataclass

from bookmark_appliance.secret import Secret
from bookmark_appliance.settings import Settings


@dataclass(frozen=True, slots=True)
class DiscordSettings:
    """The Discord application, and the guild whose members may sign in. `api_base` has no trailing slash."""

    client_id: str
    client_secret: Secret
    guild_id: str
    redirect_uri: str
    required_role: str | None
    api_base: str


def discord_settings(settings: Settings) -> DiscordSettings | None:
    """None in local mode."""
    if (
        settings.discord_client_id is None
        or settings.discord_client_secret is None
        or settings.discord_guild_id is None
        or settings.discord_redirect_uri is None
    ):
        return None
    return DiscordSettings(
        client_id=settings.discord_client_id,
        client_secret=settings.discord_client_secret,
        guild_id=settings.discord_guild_id,
        redirect_uri=settings.discord_redirect_uri,
        required_role=settings.discord_required_role,
        api_base=settings.discord_api_base,
    )
