"""Documents that are published for OpenStack.

Source: deckhouse, modules/030-cloud-provider-openstack.
"""

from lib.discovery import provider


def _problems(document: object) -> tuple[str, ...]:
    # Heavy, and not needed for --help.
    from lib.discovery.openstack import schemas

    problems = schemas.problems(schemas.Schema.DISCOVERY_DATA, document)
    return tuple(str(problem) for problem in problems)


OPENSTACK = provider.Provider(
    provisioner="cinder.csi.openstack.org",
    type_parameter="type",
    access_deployment="d8-cloud-provider-openstack/cloud-data-discoverer",
    problems=_problems,
    lasting=("additionalNetworks", "additionalSecurityGroups"),
    inputs={
        "defaultImageName": "instances.imageName",
        "mainNetwork": "instances.mainNetwork",
    },
)
