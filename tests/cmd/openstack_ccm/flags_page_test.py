"""The page of flags says what the program says."""

import pathlib

from lib.ccm import options
from lib.process import command_line

HEAD = """# Flags of openstack-ccm

Every flag of the reference is accepted. Those marked **No effect** do nothing here, for
the reason given, and warn once at start.

"""


def test_the_page_of_flags_is_up_to_date() -> None:
    """To rewrite it, put what this test prints into the file."""
    page = HEAD + command_line.reference(options.FLAGS)
    print(page)
    assert pathlib.Path("docs/openstack-ccm-flags.md").read_text() == page
