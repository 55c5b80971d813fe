"""A server that listened to more than this machine."""

import ipaddress
from collections.abc import Iterable
from typing import Final

from specbench.analysis import Finding
from specbench.analysis.checks import Check, Evidence


def check(evidence: Evidence) -> Iterable[Finding]:
    """One a variant whose suite binds its server to another address than loopback."""
    for name, arm in evidence.arms.items():
        host = arm.variant.server.host
        if arm.variant.server.url is None and not is_loopback(host):
            yield Finding(
                code="server_exposed",
                severity="warning",
                variant=name,
                message="The server listened to other machines: anybody who reached it could use and disturb it.",
                evidence=f"host: {host}",
                remedy="Leave `host` out (127.0.0.1), or protect the port and set --api-key in the server's `args`.",
            )


def is_loopback(host: str) -> bool:
    """A name other than localhost may be any address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


CHECK: Final[Check] = check
