"""Documents of a cluster on DVP that a test may change."""

import copy
from collections.abc import Callable

import pytest

from tests.lib.discovery.dvp.samples import (
    CONFIGURATION,
    KUBECONFIG,
    Document,
    encoded,
)


@pytest.fixture()
def configuration() -> Document:
    """Return a DVPClusterConfiguration that may be changed."""
    return copy.deepcopy(CONFIGURATION)


@pytest.fixture()
def with_kubeconfig(configuration: Document) -> Callable[..., Document]:
    """Return a maker of configurations with another kubeconfig."""

    def make(**changes: object) -> Document:
        provider = configuration["provider"]
        provider["kubeconfigDataBase64"] = encoded({**KUBECONFIG, **changes})
        return configuration

    return make
