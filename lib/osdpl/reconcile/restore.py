"""Guard of a restore of the database: a backup is restored once, or not at all. Pure.

A restore is a Job of the chart of MariaDB that a value switches on; it replaces all
data. Each further run of helm with that value would restore the backup again.

Source: the reference refuses to act on an OpenStackDeployment whose restore was on
before, or is on when it is created.
"""

from collections.abc import Mapping

from lib.helm import model as helm
from lib.osdpl.api import model
from lib.osdpl.reconcile.snapshot import Snapshot

FIELD = "manifests.job_mariadb_phy_restore"
REFUSAL = (
    f'spec.services.database.mariadb.values.{FIELD}: invalid value "true": must be'
    " false: a backup is restored once, by the change from false to true of a deployed"
    " release; helm would restore it again"
)


def is_on(values: Mapping[str, object]) -> bool:
    """Report whether values of a release restore a backup."""
    manifests = values.get("manifests")
    name = FIELD.rpartition(".")[2]
    return isinstance(manifests, Mapping) and bool(manifests.get(name))


def is_refused(snapshot: Snapshot, release: model.Release, is_changed: bool) -> bool:
    """Report whether a run of helm would restore a backup without permission.

    is_changed: the deployed release differs from the desired one.
    """
    if not is_on(release.values):
        return False
    revision = snapshot.revisions.get(release.name)
    is_deployed = revision is not None and revision.status is helm.Status.DEPLOYED
    return not (is_deployed and is_changed and release.name not in snapshot.restoring)
