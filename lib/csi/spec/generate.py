"""Makes *_pb2.py and *_pb2.pyi from csi.proto and pluginregistration.proto.

To be run from the repository's root, by hand, after a proto or the pin of
grpcio-tools has changed: `python -m lib.csi.spec.generate`. A test compares.
"""

import importlib.resources
import pathlib
import sys

import grpc_tools
from grpc_tools import protoc

PROTO = "lib/csi/spec/csi.proto"
"""Below the repository's root: the messages are imported as lib.csi.spec.csi_pb2."""
REGISTRATION = "lib/csi/spec/pluginregistration.proto"
"""Source: k8s.io/kubelet v0.36.3 pkg/apis/pluginregistration/v1/api.proto (Apache-2.0).
"""


def generate(root: pathlib.Path, into: pathlib.Path, proto: str = PROTO) -> None:
    """Write both files of a proto below `into`, in the folders they have below `root`.

    Raises:
        RuntimeError: it can't be compiled; the compiler has said why.
    """
    well_known = importlib.resources.files(grpc_tools) / "_proto"
    code = protoc.main(
        [
            "protoc",
            f"-I{root}",
            f"-I{well_known}",
            f"--python_out={into}",
            f"--pyi_out={into}",
            proto,
        ]
    )
    if code != 0:
        raise RuntimeError(f"{proto} can't be compiled (exit code {code})")


if __name__ == "__main__":
    here = pathlib.Path()
    generate(here, here)
    generate(here, here, REGISTRATION)
    sys.exit(0)
