"""The clouds that `plan`, `doctor` and `lab` know, each by its name.

Another provider is another module beside `provider_dvp`, and an entry of `PROVIDERS`.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

import click

from mooring.commands import (
    provider_dvp,
    provider_entry,
    provider_openstack,
    provider_zvirt,
)

if TYPE_CHECKING:
    from lib.lab.grounds import grounds as lab_grounds

F = TypeVar("F", bound=Callable[..., None])

_ALL = (provider_openstack.PROVIDER, provider_dvp.PROVIDER, provider_zvirt.PROVIDER)
PROVIDERS = {known.name: known for known in _ALL}
DEFAULT = next(iter(PROVIDERS))
HELP = "Cloud provider."


def of(name: str) -> provider_entry.Provider:
    """Return a provider by its name; the default one if that is empty."""
    return PROVIDERS[name or DEFAULT]


def option(command: F) -> F:
    """Add the option `--cloud` to a command."""
    choice = click.Choice(tuple(PROVIDERS))
    return click.option("--cloud", type=choice, default=DEFAULT, help=HELP)(command)


def existing_options(command: F) -> F:
    """Add the option for an existing cloud of each provider to `lab up`.

    `--cloud` is shown once there is a choice.
    """
    for known in reversed([p for p in PROVIDERS.values() if p.existing_flag]):
        flag, text = known.existing_flag, known.existing_help
        command = click.option(flag, default="", help=text)(command)
    choice, is_only = click.Choice(tuple(PROVIDERS)), len(PROVIDERS) == 1
    usual = click.option(
        "--cloud", type=choice, default=DEFAULT, help=HELP, hidden=is_only
    )
    return usual(command)


def chosen(
    cloud: str, values: Mapping[str, str]
) -> "tuple[provider_entry.Provider, lab_grounds.Existing]":
    """Return whose cloud a lab has, and which one.

    cloud: value of `--cloud`. values: of the options for existing clouds, by argument.
    """
    from lib.lab.grounds import grounds

    for known in PROVIDERS.values():
        name = values.get(known.existing_argument, "")
        if name and known.existing is not None:
            return known, known.existing(name)
    return of(cloud), grounds.OWN
