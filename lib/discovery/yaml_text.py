"""Writes YAML the way Kubernetes' tools do. Pure.

It is read by `lib.process.yaml_documents`.
"""

from collections.abc import Mapping

import yaml


def dump(*documents: Mapping[str, object]) -> str:
    """Write YAML documents, without anchors."""
    return yaml.dump_all(
        documents, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=2**31
    )


class _Dumper(yaml.SafeDumper):
    """Dumper without anchors: repeated objects are written repeatedly."""

    def ignore_aliases(self, data: object) -> bool:
        del data
        return True
