"""What will differ after a migration."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class ChangedItem:
    """What will differ: the subject, before and after."""

    subject: str
    before: str
    after: str
