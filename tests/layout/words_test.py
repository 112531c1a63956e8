"""Packages that every cloud shares contain no word of OpenStack, but for reasons given.

`Source:` paragraphs may name any document. What a reference daemon published under such
a word (a metric, a Secret, a format) is listed with its reason; a line of the list that
is no longer needed fails, too.
"""

import pathlib
import re
from collections.abc import Iterator

WORDS = re.compile(
    r"openstack|cinder|octavia|\bnova\b|neutron|keystone|glance|barbican|amphora"
    r"|flavor|floating|cloud\.conf|tenant|microversion|\[Global\]",
    re.IGNORECASE,
)
WORDS_OF_DVP = re.compile(
    r"\bdvp\b|virtualization\.deckhouse|virtual.?machine|virtual.?disk|vmbda"
    r"|parent.cluster|with.?healthchecks",
    re.IGNORECASE,
)
OF_OPENSTACK = (
    "lib/cloud/openstack/",
    "lib/discovery/openstack/",
    "lib/lab/",
    "lib/layouts/openstack/",
    "lib/migration/",
    "lib/osdpl/",
)
"""Packages that are about OpenStack, or (the lab) run one."""
SOURCE = re.compile(r'Source: .*?(?=\n\s*\n|""")', re.DOTALL)

EXEMPT = {
    "lib/cloud/provider_id.py": "provider IDs of all clouds are written in one file",
    "lib/cloud/fake/instances.py": "its provider IDs, until suites take any provider",
    "lib/cloud/fake/volumes.py": "names the cloud after which phases are modelled",
    "lib/helm/outcome.py": "an example",
    "lib/kube/fake/api.py": "kinds of osdpl-controller",
    "lib/kube/resources.py": "kinds of osdpl-controller",
    "lib/kube/persistent_volumes.py": "a field of Kubernetes' PersistentVolume",
    "lib/process/config.py": "an example in a docstring",
}


OF_DVP = ("lib/cloud/dvp/", "lib/discovery/dvp/", "lib/lab/", "lib/migration/dvp/")
EXEMPT_OF_DVP = {
    "lib/cloud/provider_id.py": "provider IDs of all clouds are written in one file",
    "lib/cloud/zvirt/__init__.py": "virtual machines of another cloud",
    "lib/cloud/zvirt/machines/zvirt_kinds.py": "a condition of both references",
}


def neutral(packages: tuple[str, ...] = OF_OPENSTACK) -> Iterator[pathlib.Path]:
    for path in sorted(pathlib.Path("lib").rglob("*.py")):
        if not path.as_posix().startswith(packages):
            yield path


def words(path: pathlib.Path, pattern: re.Pattern[str] = WORDS) -> list[str]:
    text = SOURCE.sub("", path.read_text())
    return sorted({word_match[0].lower() for word_match in pattern.finditer(text)})


def test_neutral_packages_contain_no_word_of_openstack() -> None:
    paths = list(neutral())
    words_by_path = {path.as_posix(): words(path) for path in paths if words(path)}
    for path, present in words_by_path.items():
        print(f"{path:32} {', '.join(present):32} {EXEMPT.get(path, 'NOT EXEMPT')}")
    assert len(paths) > 150
    assert words_by_path.keys() - EXEMPT.keys() == set()
    assert EXEMPT.keys() - words_by_path.keys() == set()


def test_neutral_packages_contain_no_word_of_dvp() -> None:
    paths = list(neutral(OF_DVP))
    words_by_path = {
        path.as_posix(): present
        for path in paths
        if (present := words(path, WORDS_OF_DVP))
    }
    for path, present in words_by_path.items():
        reason = EXEMPT_OF_DVP.get(path, "NOT EXEMPT")
        print(f"{path:32} {', '.join(present):32} {reason}")
    assert len(paths) > 150
    assert words_by_path.keys() - EXEMPT_OF_DVP.keys() == set()
    assert EXEMPT_OF_DVP.keys() - words_by_path.keys() == set()


def test_a_word_is_noticed_unless_it_is_in_a_source(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "one.py"
    path.write_text('"""One.\n\nSource: Cinder, x\nCinder, y.\n\nA Flavor.\n"""\n')
    assert words(path) == ["flavor"]
    path.write_text('"""One.\n\nSource: Cinder."""\nNAME = "octavia"\n')
    assert words(path) == ["octavia"]
