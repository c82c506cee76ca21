"""Host names of a connection URL, resolved with Trio: psycopg would ask asyncio's loop."""

import ipaddress

import psycopg
import trio
from psycopg.abc import ConnDict


async def with_addresses(params: ConnDict) -> ConnDict:
    """The parameters with every host name resolved to `hostaddr`, so that psycopg has nothing left to resolve.

    One host may have several addresses, one of several may not resolve: the first stand in the list one after
    another, the second is left out unless it is the only one, which raises psycopg.OperationalError.
    """
    hosts = [host for host in str(params.get("host") or "").split(",") if host]
    if params.get("hostaddr") or not any(map(_is_name, hosts)):
        return params
    ports = str(params.get("port") or "5432").split(",")
    resolved: list[tuple[str, str, str]] = []
    failure: OSError | None = None
    for index, host in enumerate(hosts):
        port = ports[index if len(ports) > 1 else 0] or "5432"
        if not _is_name(host):
            resolved.append((host, "" if host.startswith(("/", "@")) else host, port))
            continue
        try:
            answers = await trio.socket.getaddrinfo(host, port, type=trio.socket.SOCK_STREAM)
        except OSError as error:
            failure = error
            continue
        resolved += [(host, str(address[0]), port) for *_, address in answers]
    if not resolved:
        raise psycopg.OperationalError(f"the database's host name does not resolve: {failure}")
    names, addresses, used_ports = (",".join(column) for column in zip(*resolved, strict=True))
    return {**params, "host": names, "hostaddr": addresses, "port": used_ports}


def _is_name(host: str) -> bool:
    if host.startswith(("/", "@")):
        return False
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return True
    return False
