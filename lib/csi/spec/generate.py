"""Makes csi_pb2.py and csi_pb2.pyi from csi.proto, beside it.

To be run from the repository's root, by hand, after csi.proto or the pin of
grpcio-tools has changed: `python -m lib.csi.spec.generate`. A test compares.
"""

import importlib.resources
import pathlib
import sys

import grpc_tools
from grpc_tools import protoc

PROTO = "lib/csi/spec/csi.proto"
"""Below the repository's root: the messages are imported as lib.csi.spec.csi_pb2."""


def generate(root: pathlib.Path, into: pathlib.Path) -> None:
    """Write both files below `into`, in the folders they have below `root`.

    Raises:
        RuntimeError: csi.proto can't be compiled; the compiler has said why.
    """
    well_known = importlib.resources.files(grpc_tools) / "_proto"
    code = protoc.main(
        [
            "protoc",
            f"-I{root}",
            f"-I{well_known}",
            f"--python_out={into}",
            f"--pyi_out={into}",
            PROTO,
        ]
    )
    if code != 0:
        raise RuntimeError(f"{PROTO} can't be compiled (exit code {code})")


if __name__ == "__main__":
    here = pathlib.Path()
    generate(here, here)
    sys.exit(0)
