"""A cluster's roots in the lab's cloud: applied, planned again and destroyed.

The provider writes to the lab only: its URL is in each document.
"""

import dataclasses
import json
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from lib.lab import places
from lib.lab.layouts import tofu
from lib.lab.openstack import accounts, layout, tenant
from tests.harness.layouts import inputs

TREE = pathlib.Path("terraform/openstack")
_ACTIONS = frozenset({"create", "update", "delete", "forget"})


@dataclasses.dataclass(frozen=True, slots=True)
class Root:
    """One root of a cluster: a step, and the inputs that only it has."""

    step: str
    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def name(self) -> str:
        """That of its state: "master-node-0"."""
        words = [self.extra.get("nodeGroupName", ""), self.extra.get("nodeIndex", "")]
        return "-".join([self.step, *filter(None, words)])


BASE = Root(inputs.BASE)


def master(index: int, **extra: Any) -> Root:
    """Return the root of a master."""
    return Root(inputs.MASTER, {"nodeIndex": str(index), **extra})


def static(group: str, index: int, **extra: Any) -> Root:
    """Return the root of a node of a group."""
    extra = {"nodeIndex": str(index), "nodeGroupName": group, **extra}
    return Root(inputs.STATIC, extra)


def provider(where: places.Places, account: accounts.Account) -> inputs.Json:
    """Return the provider block of documents for a project of the lab."""
    return {
        "authURL": layout.of(where).url(layout.KEYSTONE, "/v3"),
        "domainName": "Default",
        "username": account.user,
        "password": layout.PASSWORD,
        "region": layout.REGION,
        "tenantName": account.project,
    }


@dataclasses.dataclass(frozen=True, slots=True)
class LayoutCluster:
    """The roots of one cluster. layouts: a copy of the tree; room: of its states."""

    program: tofu.Tofu
    layouts: pathlib.Path
    room: pathlib.Path
    document: inputs.Json
    prefix: str = "prod"
    uuid: str = inputs.UUID

    def folder(self, root: Root) -> pathlib.Path:
        """Return the initialised folder of a root."""
        layout_name = inputs.LAYOUTS[self.document["layout"]]
        folder = self.layouts / "layouts" / layout_name / root.step
        if not (folder / ".terraform").exists():
            self.program.require(folder, "init", "-backend=false")
        return folder

    def state(self, root: Root) -> pathlib.Path:
        """Return the file of a root's state."""
        return self.room / f"{root.name}.tfstate"

    def arguments(self, root: Root) -> tuple[str, ...]:
        """Write a root's inputs; return what each command gets."""
        values = {
            "clusterConfiguration": inputs.cluster(self.prefix),
            "providerClusterConfiguration": self.document,
            "clusterUUID": self.uuid,
            **root.extra,
        }
        file = self.room / f"{root.name}.tfvars.json"
        file.write_text(json.dumps(values))
        return (f"-var-file={file}", f"-state={self.state(root)}")

    def apply(self, root: Root) -> Mapping[str, Any]:
        """Apply a root; return its outputs."""
        words = ("apply", "-auto-approve", *self.arguments(root))
        self.program.require(self.folder(root), *words)
        return self.outputs(root)

    def outputs(self, root: Root) -> Mapping[str, Any]:
        """Return the outputs in a root's state."""
        state = json.loads(self.state(root).read_text())
        return {name: output["value"] for name, output in state["outputs"].items()}

    def plan(self, root: Root) -> Mapping[str, tuple[str, ...]]:
        """Return what the next apply would do: the actions by address."""
        return {
            change["address"]: tuple(change["change"]["actions"])
            for change in self.plan_json(root).get("resource_changes", ())
            if _ACTIONS.intersection(change["change"]["actions"])
        }

    def plan_json(self, root: Root) -> Mapping[str, Any]:
        """Return the plan of the next apply, as `tofu show -json` prints it."""
        file = self.room / f"{root.name}.plan"
        folder = self.folder(root)
        self.program.require(folder, "plan", f"-out={file}", *self.arguments(root))
        shown = self.program.require(folder, "show", "-json", str(file))
        plan: Mapping[str, Any] = json.loads(shown)
        return plan

    def refusal(self, root: Root) -> str:
        """Return the text of a plan that must fail."""
        answer = self.program.run(self.folder(root), "plan", *self.arguments(root))
        assert answer.code == 1, f"the plan did not fail:\n{answer.text}"
        return " ".join(answer.text.replace("│", " ").split())

    def destroy(self, *roots: Root) -> None:
        """Destroy roots, the last one first."""
        for root in reversed(roots):
            words = ("destroy", "-auto-approve", *self.arguments(root))
            self.program.require(self.folder(root), *words)

    def with_environment(self, more: Mapping[str, str]) -> "LayoutCluster":
        """Return the same cluster, for which OpenTofu has more variables."""
        env = {**self.program.env, **more}
        program = dataclasses.replace(self.program, env=env)
        return dataclasses.replace(self, program=program)

    def with_document(self, document: inputs.Json) -> "LayoutCluster":
        """Return the same cluster with another document."""
        return dataclasses.replace(self, document=document)


MakeCluster = Callable[..., tuple[LayoutCluster, tenant.Tenant]]
"""Creates a cluster by layout and changes, see `inputs.document`, in a new project."""
