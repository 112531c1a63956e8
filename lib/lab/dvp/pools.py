"""Addresses that the simulator assigns, each once."""

import ipaddress
import itertools
from collections.abc import Collection


class Pool:
    """Addresses of networks, one for each object. For one thread."""

    def __init__(self, *networks: str) -> None:
        self._given: dict[str, str] = {}
        self._rest = itertools.chain.from_iterable(
            ipaddress.ip_network(network).hosts() for network in networks
        )

    def give(self, uid: str, taken: Collection[str]) -> str:
        """Return the address of an object; the same one each time.

        taken: addresses that other objects have already.

        Raises:
            StopIteration: all are given out.
        """
        if uid not in self._given:
            free = (str(each) for each in self._rest if str(each) not in taken)
            self._given[uid] = next(free)
        return self._given[uid]
