"""What the judges of rendered manifests find."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class JudgeFinding:
    """Broken rule. place: release and object; passwords are in neither field."""

    rule: str
    place: str
    text: str

    def __str__(self) -> str:
        """Return the finding as one line."""
        return f"{self.rule}: {self.place}: {self.text}"
