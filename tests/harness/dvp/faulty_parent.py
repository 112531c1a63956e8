"""A parent behind a proxy, and the ways in which it fails for one project."""

import contextlib
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lib.kube import resources
from lib.lab.dvp import project as projects
from lib.lab.dvp.project import Project
from tests.harness.dvp.dvp_parent import DvpParent
from tests.harness.faults import tcp_proxy

Rule = Mapping[str, Any]


class FaultyParent:
    """Faults of a parent, each for as long as a block runs.

    kubeconfig: of the project's user, through the proxy.
    """

    def __init__(
        self,
        parent: DvpParent,
        project: Project,
        proxy: tcp_proxy.TcpProxy,
        kubeconfig: pathlib.Path,
    ) -> None:
        self.parent = parent
        self.project = project
        self.proxy = proxy
        self.kubeconfig = kubeconfig
        self.objects = parent.objects(project)

    @contextlib.contextmanager
    def silent(self) -> Iterator[None]:
        with self.proxy.silent():
            yield

    @contextlib.contextmanager
    def shut(self) -> Iterator[None]:
        with self.proxy.shut():
            yield

    @contextlib.contextmanager
    def ruled(self, change: Callable[[list[Rule]], list[Rule]]) -> Iterator[None]:
        """Change the rights of the project's user. change: returns the rules."""
        role = self.objects.get(resources.ROLES, projects.USER)
        assert role is not None
        rules = role["rules"]
        self.objects.patch(resources.ROLES, projects.USER, rules=change(rules))
        try:
            yield
        finally:
            self.objects.patch(resources.ROLES, projects.USER, rules=rules)

    @contextlib.contextmanager
    def revoked(self) -> Iterator[None]:
        """Make the token invalid; a new one is written to the file at the end."""
        self.parent.revoke(self.project)
        try:
            yield
        finally:
            self.parent.rotate(self.project)
            server = f"https://127.0.0.1:{self.proxy.port}"
            self.parent.redirect(self.project, server, self.kubeconfig)
