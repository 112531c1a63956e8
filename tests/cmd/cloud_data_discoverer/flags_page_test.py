"""The page of flags says what the program says."""

import pathlib

from cloud_data_discoverer import main
from lib.process import command_line

HEAD = """# Flags of cloud-data-discoverer

`--discovery-period`, `--listen-address`, `--kubeconfig` and `-v` are the reference's,
with their twins in the environment; a flag beats its twin. The others are ours.

"""


def test_the_page_of_flags_is_up_to_date() -> None:
    """To rewrite it, put what this test prints into the file."""
    page = HEAD + command_line.reference(main.FLAGS)
    print(page)
    assert pathlib.Path("docs/cloud-data-discoverer-flags.md").read_text() == page
