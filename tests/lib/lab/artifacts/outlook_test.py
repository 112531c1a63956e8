"""One total of the remaining time, from the packages of all modules."""

import pytest

from lib.lab.artifacts import go_modules, outlook


@pytest.mark.parametrize(
    ("etcd", "kube", "elapsed_s", "expected_s"),
    [
        (0, 0, 60, None),
        # 5 % of 3031 packages are 152.
        (100, 0, 60, None),
        (200, 0, 100, 100 / 200 * 2831),
        (565, 1000, 600, 600 / 1565 * 1466),
        (565, 2466, 1200, 0.0),
    ],
    ids=[
        "nothing is compiled yet",
        "the first packages tell nothing",
        "during the first module the others count",
        "in the middle of the second one",
        "all is compiled",
    ],
)
def test_the_rest_is_that_of_all_modules(
    etcd: int, kube: int, elapsed_s: float, expected_s: float | None
) -> None:
    now = [0.0]
    ahead = outlook.Outlook(lambda: now[0])
    ahead.expect(["etcd", "kube"])
    ahead.advance("etcd", 0, 565)
    now[0] = elapsed_s
    ahead.advance("etcd", etcd, 565)
    if kube:
        ahead.advance("kube", kube, 2466)
    assert ahead.remaining_s() == expected_s


def test_packages_that_are_cached_do_not_count() -> None:
    now = [0.0]
    ahead = outlook.Outlook(lambda: now[0])
    ahead.expect(["etcd", "kube"])
    ahead.advance("etcd", 0, 10)
    now[0] = 10.0
    ahead.advance("kube", 5, 10)
    assert ahead.remaining_s() == pytest.approx(30.0)


def test_modules_of_the_table_exist() -> None:
    assert outlook.PACKAGES.keys() <= {x.module for x in go_modules.PROGRAMS}
