"""Rules for Cinder, Glance, Manila and the database's backups."""

from collections.abc import Callable, Iterator

from lib.osdpl.rules.rule import (
    Change,
    Rule,
    Tree,
    at,
    below,
    enabled_since,
    is_before,
    problem,
    rejected,
    required,
    required_fields,
)
from lib.process.config import FieldProblem

_CINDER, _GLANCE, _MANILA = "block-storage", "image", "shared-file-system"
_DATABASE = "database"
_DRIVERS = "features.cinder.backup.drivers"
_GLANCE_BACKENDS = "features.glance.backends"
_BACKUP = "features.database.backup"


def _drivers_since(change: Change) -> Iterator[FieldProblem]:
    if below(change.spec, _DRIVERS) and is_before(change, "yoga"):
        yield rejected(_DRIVERS, "not supported before OpenStack yoga")


def _one_driver(change: Change) -> Iterator[FieldProblem]:
    drivers = below(change.spec, _DRIVERS)
    enabled = sorted(name for name, driver in drivers.items() if driver.get("enabled"))
    if len(enabled) > 1:
        yield problem(_DRIVERS, ", ".join(enabled), "one enabled driver")


def _volume_backends(spec: Tree) -> Iterator[tuple[str, Tree]]:
    path = "features.cinder.volume.backends"
    for name, backend in below(spec, path).items():
        yield f"{path}.{name}.values.conf.cinder", below(backend, "values.conf.cinder")


def _sections(spec: Tree) -> Iterator[tuple[str, Tree]]:
    """Yield the sections that the volume backends enable."""
    path = "features.cinder.volume.backends"
    for name, backend in below(spec, path).items():
        enabled = at(backend, "values.conf.cinder.DEFAULT.enabled_backends") or ""
        for section in filter(None, (text.strip() for text in str(enabled).split(","))):
            where = f"{path}.{name}.values.conf.backends.{section}"
            yield where, below(backend, f"values.conf.backends.{section}")


def _shares(spec: Tree) -> Iterator[tuple[str, Tree]]:
    path = "features.manila.share.backends"
    for name, backend in below(spec, path).items():
        yield f"{path}.{name}.values.conf.manila", below(backend, "values.conf.manila")


def _share_sections(spec: Tree) -> Iterator[tuple[str, Tree]]:
    for path, conf in _shares(spec):
        enabled = at(conf, "DEFAULT.enabled_share_backends") or ""
        for section in filter(None, (text.strip() for text in str(enabled).split(","))):
            yield f"{path}.{section}", below(conf, section)


def _validation(change: Change) -> Iterator[FieldProblem]:
    path = "features.glance.signature"
    signature = below(change.spec, path)
    if signature.get("certificate_validation") and not signature.get("enabled"):
        name = f"{path}.certificate_validation"
        yield problem(name, True, f"false, or {path}.enabled")


def _volumes_of_images(change: Change) -> Iterator[tuple[str, Tree]]:
    path = f"{_GLANCE_BACKENDS}.cinder"
    for name, backend in below(change.spec, path).items():
        yield f"{path}.{name}", backend


def _one_volume_type(change: Change) -> Iterator[FieldProblem]:
    for path, backend in _volumes_of_images(change):
        if bool(backend.get("cinder_volume_type")) == bool(backend.get("backend_name")):
            text = "must set exactly one of cinder_volume_type, backend_name"
            yield rejected(path, text)


def _type_and_volume(change: Change) -> Iterator[FieldProblem]:
    for path, backend in _volumes_of_images(change):
        name = backend.get("backend_name")
        if name and [bool(part) for part in name.split(":")] != [True, True]:
            yield problem(f"{path}.backend_name", name, "<type>:<volume>")


def _defaults(spec: Tree) -> list[str]:
    """Return the default backends of Glance."""
    return [
        f"{kind}.{name}"
        for kind, backends in sorted(below(spec, _GLANCE_BACKENDS).items())
        for name, backend in sorted(backends.items())
        if backend.get("default")
    ]


def _a_default(change: Change) -> Iterator[FieldProblem]:
    backends = below(change.spec, _GLANCE_BACKENDS)
    if any(backends.values()) and not _defaults(change.spec):
        yield rejected(_GLANCE_BACKENDS, "must have one backend with default: true")


def _one_default(change: Change) -> Iterator[FieldProblem]:
    defaults = _defaults(change.spec)
    if len(defaults) > 1:
        names = ", ".join(defaults)
        yield problem(_GLANCE_BACKENDS, names, "one backend with default: true")


def _one_file(change: Change) -> Iterator[FieldProblem]:
    path = f"{_GLANCE_BACKENDS}.file"
    names = sorted(below(change.spec, path))
    if len(names) > 1:
        yield problem(path, ", ".join(names), "one backend of this kind")


def _files(spec: Tree) -> Iterator[tuple[str, Tree]]:
    path = f"{_GLANCE_BACKENDS}.file"
    for name, backend in below(spec, path).items():
        yield f"{path}.{name}.pvc", below(backend, "pvc")


def _nfs(change: Change) -> Iterator[FieldProblem]:
    if at(change.spec, f"{_BACKUP}.backend") != "pv_nfs":
        return
    if not below(change.spec, f"{_BACKUP}.pv_nfs"):
        yield required(f"{_BACKUP}.pv_nfs", "an object with server and path")


def _remotes(spec: Tree) -> Iterator[tuple[str, Tree]]:
    path = f"{_BACKUP}.sync_remote"
    if at(spec, f"{path}.enabled"):
        for name, remote in below(spec, f"{path}.remotes").items():
            yield f"{path}.remotes.{name}", remote if isinstance(remote, dict) else {}


def _one_remote(change: Change) -> Iterator[FieldProblem]:
    names = [path for path, _ in _remotes(change.spec)]
    if len(names) > 1:
        path = f"{_BACKUP}.sync_remote.remotes"
        yield rejected(path, f"must have one remote, not {len(names)}")


def _confs(
    is_meant: Callable[[Tree], bool] = lambda conf: True,
) -> Callable[[Tree], Iterator[tuple[str, Tree]]]:
    """Return what yields the configurations of remotes, some of them only."""

    def items(spec: Tree) -> Iterator[tuple[str, Tree]]:
        for path, remote in _remotes(spec):
            conf = below(remote, "conf")
            if conf and is_meant(conf):
                yield f"{path}.conf", conf

    return items


_conf = required_fields("cinder volume backend", _CINDER, _volume_backends)
_section = required_fields("cinder section", _CINDER, _sections)
_share = required_fields("manila backend", _MANILA, _shares)
_share_section = required_fields("manila section", _MANILA, _share_sections)
_pvc = required_fields("glance file backend", _GLANCE, _files)
_remote = required_fields("backup remote", _DATABASE, _remotes)
_any_conf = required_fields("backup remote", _DATABASE, _confs())
_s3 = required_fields(
    "backup remote s3", _DATABASE, _confs(lambda conf: conf.get("type") == "s3")
)
_ceph = required_fields(
    "backup remote Ceph", _DATABASE, _confs(lambda conf: conf.get("provider") == "Ceph")
)

RULES: tuple[Rule, ...] = (
    Rule("cinder: backup drivers since yoga", _CINDER, _drivers_since),
    Rule("cinder: one backup driver", _CINDER, _one_driver),
    _conf("DEFAULT.enabled_backends", "names of sections"),
    _section("volume_backend_name", "a name"),
    _section("volume_driver", "a driver"),
    Rule("glance: validation of signatures", _GLANCE, _validation),
    Rule("glance: type or backend of volumes", _GLANCE, _one_volume_type),
    Rule("glance: type and volume", _GLANCE, _type_and_volume),
    Rule("glance: a default backend", _GLANCE, _a_default),
    Rule("glance: one default backend", _GLANCE, _one_default),
    Rule("glance: one file backend", _GLANCE, _one_file),
    _pvc("storage_class_name", "a StorageClass"),
    _pvc("size", "a size, such as 100Gi"),
    _share("DEFAULT.enabled_share_backends", "names of sections"),
    _share_section("share_backend_name", "a name"),
    _share_section("share_driver", "a driver"),
    Rule("database: NFS of backups", _DATABASE, _nfs),
    Rule("database: one remote of backups", _DATABASE, _one_remote),
    _remote("conf", "an object"),
    _remote("path", "a path"),
    _any_conf("type", "a type of rclone, such as s3"),
    _s3("provider", "a provider"),
    _s3("access_key_id", "a key"),
    _s3("secret_access_key", "a key"),
    _ceph("endpoint", "an address"),
    enabled_since("features.database.cleanup.nova.enabled", "antelope", "compute"),
)
