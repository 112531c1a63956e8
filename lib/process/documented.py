"""Texts of the reference pages, beside the key, annotation or parameter they describe.

`name: Annotated[str, Documented("...")]` documents a field of a dataclass or a
constant of a module. The generator of docs/reference reads these; a key without a text
fails a test.
"""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Documented:
    """Row of a reference page.

    meaning: in one or two sentences. name: as users write it; empty: that of the field,
    with hyphens. kind: type and valid values; empty: that of the field. default: as
    users write it; empty: that of the field. no_effect: why the key is accepted and
    ignored; empty: it has an effect. change: what a change of the value does where the
    introduction of the page does not apply. used_by: components, where they differ from
    those of the page.
    """

    meaning: str
    name: str = ""
    kind: str = ""
    default: str = ""
    no_effect: str = ""
    change: str = ""
    used_by: tuple[str, ...] = ()
