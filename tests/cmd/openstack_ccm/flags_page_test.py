"""The page of flags has the texts of the program."""

import pathlib

from lib.ccm import flag_table, options
from lib.process import command_line

HEAD = """# Flags of openstack-ccm

Every flag of the reference is accepted. Those marked **No effect** do nothing here, for
the reason given, and warn once at start. Flags of our own, which the reference does not
know: {extra}.

"""


def test_the_page_of_flags_is_up_to_date() -> None:
    """To rewrite it, put what this test prints into the file."""
    extra = ", ".join(f"`--{flag.name}`" for flag in flag_table.OURS)
    page = HEAD.format(extra=extra) + command_line.reference(options.FLAGS)
    print(page)
    assert pathlib.Path("docs/openstack-ccm-flags.md").read_text() == page
