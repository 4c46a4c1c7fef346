"""A host by which a server is called: a name, or an address."""

import ipaddress

EVERYWHERE = frozenset({"0.0.0.0", "::"})


def spelt(host: str) -> str:
    """The one spelling of a host: a name in small letters, the shortest one of an address.

    An IPv4 address that is written as one of IPv6 (::ffff:127.0.0.1) is that IPv4 address.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host.lower()
    return str(getattr(address, "ipv4_mapped", None) or address)


def is_address(host: str) -> bool:
    """Whether it is an IP address, in whatever spelling of today's."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
