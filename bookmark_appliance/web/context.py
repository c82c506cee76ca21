"""What the web application is given: plain data, the database, the clock, and whom to tell."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

from bookmark_appliance.clock import Clock
from bookmark_appliance.covers.cover_keeper import CoverKeeper
from bookmark_appliance.database import Database
from bookmark_appliance.discord import DiscordSettings
from bookmark_appliance.secret import Secret
from bookmark_appliance.store.bookmarks import NewSeries


@dataclass(frozen=True, slots=True)
class WebContext:
    """`public_base_url` and `web_base_url` are origins, without a trailing slash. `discord` is None in local mode: the
    way in is then a sign-in link. `sites` gives the host of each Site that we know by its name, `userscripts`
    the operator's own file for a script by the name that it is served under, where there is one.

    `series_created` is called after the commit of the PUT that made a Series, once for each (SER-004). It must neither
    block nor raise: what it announces has happened.
    """

    database: Database
    clock: Clock
    public_base_url: str
    web_base_url: str
    owner_discord_id: str
    token_key: Secret
    discord: DiscordSettings | None
    allowed_origins: Set[str]
    trusted_proxies: Sequence[IPv4Network | IPv6Network]
    sites: Mapping[str, str]
    userscripts: Mapping[str, Path]
    covers: CoverKeeper
    series_created: Callable[[NewSeries], None]
