"""The project and region in which this process has observed objects by ID.

In another project every ID is correctly "not found". Absence is therefore accepted only
in the project and region in which an ID was last observed
(docs/decisions/0006-absence-scope.md). One memory serves the Nodes' servers,
the load balancers and the volumes of one cloud.
"""

import dataclasses
from collections.abc import Callable, Mapping

from lib.cloud import errors


@dataclasses.dataclass(frozen=True, slots=True)
class ScopeWords:
    """How a cloud calls the two parts of a scope, in errors."""

    project: str = "project"
    region: str = "region"


PROJECT_AND_REGION = ScopeWords()


@dataclasses.dataclass(frozen=True, slots=True)
class Scope:
    """One project in one region; the project by ID, which is unambiguous."""

    project_id: str
    region: str
    words: ScopeWords = PROJECT_AND_REGION

    def __str__(self) -> str:
        project = f"{self.words.project} {self.project_id!r}"
        return f"{project}, {self.words.region} {self.region!r}"


@dataclasses.dataclass(slots=True)
class HomeMemory:
    """State that outlives a reopened cloud; nothing depends on it otherwise.

    home: where an ID was last observed; None: not yet. witnesses: IDs of the servers
    that the last list contained. created: IDs of what this process has created while
    there was no home, with where: they are wherever the credentials lead, and show
    nothing. Each value is replaced as a whole.
    """

    home: Scope | None = None
    witnesses: tuple[str, ...] = ()
    created: Mapping[str, Scope] = dataclasses.field(default_factory=dict)


class Guard:
    """Accepts absence only in the project and region where IDs were observed.

    Safe for many threads.
    """

    def __init__(
        self,
        project_id: Callable[[], str],
        region: str,
        memory: HomeMemory | None = None,
        words: ScopeWords = PROJECT_AND_REGION,
    ) -> None:
        """project_id: returns the project of the current token; may authenticate."""
        self._project_id = project_id
        self._region = region
        self._words = words
        self.memory = memory or HomeMemory()

    def here(self) -> Scope:
        """Return the project and region that the credentials lead to.

        Raises:
            CloudError: authentication failed.
        """
        return Scope(self._project_id(), self._region, self._words)

    def observed(self) -> None:
        """Record that an ID was observed in the present project and region.

        Raises:
            CloudError: authentication failed.
        """
        self.memory.home = self.here()

    def created(self, id_: str) -> None:
        """Note what this process has created: its ID is no witness.

        Raises:
            CloudError: authentication failed.
        """
        if self.memory.home is None:
            self.memory.created = {**self.memory.created, id_: self.here()}

    def is_created_here(self, id_: str) -> bool:
        """Report whether this process has created it here: its absence is known.

        Raises:
            CloudError: authentication failed.
        """
        where = self.memory.created.get(id_)
        return where is not None and where == self.here()

    def check(
        self, operation: str, has_witness: Callable[[], bool] | None = None
    ) -> None:
        """Check that absence in the present project and region has a meaning.

        has_witness: asked before the first ID was observed: reads whether an object of
        the cluster is here. None: absence counts without one, and costs nothing.

        Raises:
            Unavailable: IDs were last observed elsewhere, or none was yet.
            CloudError: authentication failed, or the witnesses can't be read.
        """
        if self.memory.home is None and has_witness is not None:
            if not has_witness():
                raise errors.Unavailable(
                    f"nothing of this cluster was observed in {self.here()} yet; what"
                    " is missing there may exist elsewhere",
                    operation=operation,
                )
            self.observed()
        if self.memory.home is not None:
            check(self.memory.home, self.here(), operation)

    def check_reload(self) -> None:
        """Check that new credentials lead to the project and region in use.

        Raises:
            Unavailable: they lead elsewhere.
            CloudError: authentication failed.
        """
        known = self.memory.home
        if known is not None and (here := self.here()) != known:
            raise errors.Unavailable(
                f"the configuration leads to {here}, but the objects of this cluster"
                f" were observed in {known}; restart the process to move it there",
                operation="reload the cloud configuration",
            )


def check(known: Scope | None, here: Scope, operation: str) -> None:
    """Check that absence here has a meaning.

    Raises:
        Unavailable: the objects were last observed elsewhere.
    """
    if known is None or known == here:
        return
    raise errors.Unavailable(
        f"nothing of this cluster was found in {here}; its objects were observed in"
        f" {known}",
        operation=operation,
    )
