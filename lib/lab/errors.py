"""The one error the lab raises."""

import pathlib


class LabError(Exception):
    """Something the lab needs is missing or did not start.

    The message is one clear sentence for the user: what is wrong, and what helps.
    log: of the program that has failed; None when there is none.
    """

    def __init__(self, message: str, log: pathlib.Path | None = None) -> None:
        super().__init__(message)
        self.log = log
