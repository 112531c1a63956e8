"""The one error the lab raises."""


class LabError(Exception):
    """Something the lab needs is missing or did not start.

    The message is one clear sentence for the user: what is wrong, and what helps.
    """
