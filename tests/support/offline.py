"""Nothing of what runs in the tests speaks to anything but this machine.

An audit hook sees every address that Python code gives a socket, whichever library gave it,
and cannot be taken out again. It refuses what is not on this machine, and remembers it:
whoever is refused in a thread of its own may tell nobody.
"""

from __future__ import annotations

import ipaddress
import sys
from typing import Any

ATTEMPTS: list[str] = []
"""What was tried, in words."""

_TO = {"socket.connect", "socket.sendto", "socket.sendmsg"}
_NAMES = {"socket.getaddrinfo", "socket.gethostbyname"}


def is_here(host: object) -> bool:
    """Is it this machine, by a name or number that needs nobody to be asked?"""
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if host is None or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(str(host).split("%")[0]).is_loopback
    except ValueError:
        return False


def _watch(event: str, args: tuple[Any, ...]) -> None:
    if event in _NAMES:
        host = args[0]
    elif event in _TO and isinstance(args[1], tuple):  # else it is a file, as of a UNIX socket
        host = args[1][0]
    else:
        return
    if not is_here(host):
        ATTEMPTS.append(f"{event} {host!r}")
        raise PermissionError(f"the tests speak to this machine only, not to {host!r}")


def forbid() -> None:
    """Refuse, from now on, whatever is not on this machine."""
    sys.addaudithook(_watch)
