"""Fenced blocks of README and docs, their command lines, and how each is proven.

A block without a language contains commands of a shell, one with `yaml` manifests, one
with `ini` a cloud.conf, one with `text` output or a picture.
"""

import dataclasses
import pathlib
import re
from collections.abc import Iterator, Mapping, Sequence

_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,})(?P<language>\w*)$")
_HEADING = re.compile(r"^#+ (?P<title>.+)$")
LANGUAGES = ("", "yaml", "ini", "text")

FOLLOWED: Sequence[tuple[str, str]] = (
    ("docs/how-to/change-over.md", ""),
    ("docs/how-to/troubleshoot.md", ""),
    ("docs/how-to/upgrade.md", ""),
    ("docs/how-to/rotate-credentials.md", ""),
    ("docs/how-to/share-a-load-balancer.md", ""),
    ("docs/examples/README.md", ""),
    ("docs/tutorials/first-cluster.md", ""),
    ("docs/how-to/roll-back.md", "To an earlier version"),
    ("docs/migrate.md", ""),
    ("docs/migrate-dvp.md", ""),
    ("docs/how-to/install.md", ""),
    ("docs/how-to/restore-a-cluster.md", ""),
    ("docs/how-to/deploy-openstack.md", ""),
)
"""Pages and sections of which `kubectl`, `helm` and `mooring` run on the lab, in order.

tests/lab/services/pages_test.py follows them, restore_test.py beside it the last but
one, tests/lab/osdpl/page_test.py the last; tests/lab/charts/migrate_dvp_page_test.py
that about DVP.
"""

REASONS: Mapping[str, str] = {
    "./pants test ": "it is the run of which this test is a part",
    "./pants package": "its results are what the lab tests start",
    "tofu ": "tests/lab/layouts runs the same commands with files of its own",
    "kubectl -n openstack get ": "tests/lab/osdpl/page_test.py runs it",
    "kubectl apply -f cloud.yaml": "the same test runs it",
    "kubectl get volumeattachments": (
        "tests/lab/dvp/dvp_sidecars_test.py reads the context of what it adopts"
    ),
    'eval "$(mooring lab env)"': "tests/lab/tool evaluates it",
    'kubectl --kubeconfig="$PARENT_KUBECONFIG"': (
        "tests/lab/dvp/dvp_lab_test.py starts a lab of DVP"
    ),
}
"""Beginnings of commands that no test runs, and the reason; at most ten."""

LAB = ("./pants run cmd/mooring -- lab", "mooring lab")
"""Commands that tests/lab/tool and tests/lab/kubelet run; here they are parsed."""


@dataclasses.dataclass(frozen=True, slots=True)
class Block:
    """A fenced block. line: of its fence. section: the heading above it."""

    page: str
    line: int
    section: str
    language: str
    text: str

    def commands(self) -> tuple[str, ...]:
        """Return the command lines of a shell; continued lines are joined."""
        joined = re.sub(r" *\\\n *", " ", self.text)
        lines = (line.strip() for line in joined.splitlines())
        return tuple(line for line in lines if line and not line.startswith("#"))


def blocks(page: pathlib.Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    section, start, opening = "", 0, None
    content: list[str] = []
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if opening is None:
            if heading := _HEADING.match(line):
                section = heading["title"]
            elif opening := _FENCE.match(line):
                start, content = number, []
        elif line.strip() == opening["fence"]:
            yield Block(
                str(page), start, section, opening["language"], "\n".join(content)
            )
            opening = None
        else:
            content.append(line.removeprefix(opening["indent"]))


def documents() -> tuple[pathlib.Path, ...]:
    """Return README and all pages of docs but decision records."""
    pages = pathlib.Path("docs").rglob("*.md")
    kept = (page for page in pages if "decisions" not in page.parts)
    return (pathlib.Path("README.md"), *sorted(kept))


def is_followed(block: Block) -> bool:
    """Report whether the lab test runs the commands of a block."""
    return any(
        block.page == page and section in ("", block.section)
        for page, section in FOLLOWED
    )


def reason(command: str) -> str:
    """Return why no test runs a command; empty: one does."""
    return next((text for key, text in REASONS.items() if command.startswith(key)), "")
