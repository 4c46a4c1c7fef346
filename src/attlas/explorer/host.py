"""A host by which a server is called: a name, or an address."""

import ipaddress

EVERYWHERE = frozenset({"0.0.0.0", "::"})


def spelt(host: str) -> str:
    """The one spelling of a host: a name in small letters, the shortest one of an address.

    An IPv4 address that is written as one of IPv6 (::ffff:127.0.0.1) is that IPv4 address.
    """
    address = _address(host)
    return host.lower() if address is None else str(address)


def is_address(host: str, version: int | None = None) -> bool:
    """Whether it is an IP address (of this version), in whatever spelling of today's."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return version in (None, address.version)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
