"""What pods have written is read from the logs that the kubelet keeps."""

import os
import pathlib

from lib.lab import places
from lib.lab.kube import node_host
from lib.lab.storage import storage_node


def test_the_log_of_a_deleted_pod_is_not_that_of_its_successor(
    tmp_path: pathlib.Path,
) -> None:
    """The logs of an earlier pod stay, also those of an earlier process of the lab."""
    where = places.Places(tmp_path, tmp_path, 20000)
    view = storage_node.NodeView(where)
    folder = node_host.room(where) / "pod-logs" / "default_writer_first" / "c"
    folder.mkdir(parents=True)
    time = "2026-01-01T00:00:00.0Z"
    (folder / "0.log").write_text(f"{time} stdout F one\n{time} stdout F two words\n")

    assert view.log("default", "writer", "first") == ["one", "two words"]
    assert view.log("default", "writer", "second") == []


def test_the_log_is_that_of_the_last_start_of_a_pod(tmp_path: pathlib.Path) -> None:
    where = places.Places(tmp_path, tmp_path, 20000)
    folder = node_host.room(where) / "pod-logs" / "default_writer_first" / "c"
    folder.mkdir(parents=True)
    # By time: as text, "10" sorts before "9".
    for age_s, name in ((0, "10"), (10, "9"), (20, "8")):
        file = folder / f"{name}.log"
        file.write_text(f"2026-01-01T00:00:00.0Z stdout F {name}\n")
        os.utime(file, (1_000_000 - age_s, 1_000_000 - age_s))

    assert storage_node.NodeView(where).log("default", "writer", "first") == ["10"]
