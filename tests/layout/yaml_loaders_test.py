"""Every file that a user hands to a program is read by one YAML loader.

Each call of another loader is listed, with the reason; the lab reads its own files.
"""

import ast
import pathlib
from collections.abc import Iterator

OTHERS = {
    "lib/process/yaml_documents.py": "the loader itself",
    "lib/helm/yaml_text.py": "charts and manifests, as helm writes them",
    "lib/helm/http_repository.py": "the index of a repository, bounded",
    "lib/helm/directory.py": "Chart.yaml of a chart",
    "lib/kube/kube_config.py": "a kubeconfig, which the Kubernetes client reads too",
    "lib/osdpl/reconcile/planning.py": "manifests that helm rendered",
    "lib/osdpl/values/contract_source.py": "a file of the image of the operator",
    "lib/doctor/rights.py": "rbac.yaml of this repository",
}
LOADERS = {"load", "load_all", "safe_load", "safe_load_all", "full_load", "unsafe_load"}


def calls() -> Iterator[str]:
    for root in ("lib", "cmd"):
        for file in sorted(pathlib.Path(root).rglob("*.py")):
            if file.parts[:2] == ("lib", "lab") or "fake" in file.parts:
                continue
            for node in ast.walk(ast.parse(file.read_text())):
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and node.func.attr in LOADERS
                    and isinstance(node.func.value, ast.Name)
                    and node.func.value.id == "yaml"
                ):
                    yield str(file)


def test_other_loaders_read_no_file_of_a_user() -> None:
    assert set(calls()) <= OTHERS.keys()
