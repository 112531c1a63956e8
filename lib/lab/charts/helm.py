"""The real helm: it renders charts, and installs them on a control plane.

Rules: nothing of the caller's own helm or cluster counts: what it keeps lies in the
lab's state, and it knows a cluster only by its flags.
"""

import os
import pathlib
import subprocess
from collections.abc import Sequence

from lib.lab import errors, places
from lib.lab.artifacts import programs

GROUP = "helm"
"""Of the program that must be built."""
_TIMEOUT_S = 900


def run(
    where: places.Places,
    words: Sequence[str | os.PathLike[str]],
    kubeconfig: pathlib.Path | None = None,
    program: pathlib.Path | None = None,
) -> str:
    """Run helm to its end; return its standard output.

    words: its command line. kubeconfig: of the cluster it is to work on, if any.
    program: another helm than the lab's.

    Raises:
        LabError: it is not built, failed, or did not end in time; carries its words.
    """
    try:
        answer = subprocess.run(
            [program or programs.path(where, "helm"), *words],
            env=_environment(where, kubeconfig),
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise errors.LabError(
            f"helm {words[0]} did not end within {_TIMEOUT_S} s"
        ) from error
    if answer.returncode != 0:
        printed = (answer.stdout + answer.stderr).strip()
        raise errors.LabError(f"helm {words[0]} failed: {printed}")
    return answer.stdout


def _environment(
    where: places.Places, kubeconfig: pathlib.Path | None
) -> dict[str, str]:
    """Return the caller's environment without what helm would take from it.

    Source: Helm, `helm help`: environment variables.
    """
    kept = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith(("HELM_", "KUBE"))
    }
    room = where.state / "helm"
    return {
        **kept,
        # It ends soon: less garbage collection saves a quarter of its time.
        "GOGC": "400",
        "HELM_CACHE_HOME": str(room / "cache"),
        "HELM_CONFIG_HOME": str(room / "config"),
        "HELM_DATA_HOME": str(room / "data"),
        "KUBECONFIG": str(kubeconfig or os.devnull),
    }
