"""What a restored database keeps of ports and paths is changed."""

import pathlib
import re
from collections.abc import Mapping

from lib.lab import places
from lib.lab.openstack import layout, readdress

HERE = pathlib.Path("/")


def ports(base: int) -> Mapping[str, int]:
    return layout.ports(places.Places(HERE, HERE, base))


def endpoint(url: str, sql: str) -> str:
    """Apply the statement's cases as the database does: the first that fits."""
    for like, old, new in re.findall(
        r"WHEN url LIKE '([^']+)%' THEN REPLACE\(url, '([^']+)', '([^']+)'\)", sql
    ):
        if url.startswith(like):
            return url.replace(old, new)
    return url


def test_every_service_moves_even_between_blocks_that_overlap() -> None:
    """A port of the new block may be another program's port of the old one."""
    for base in (20000, 25000, 25800, 20001, 20002):
        old, new = ports(20000), ports(base)
        sql = readdress.statements(old, new, HERE)
        for service in layout.SERVICES:
            for path in ("", "/v3/", "/v3/%(project_id)s"):
                url = f"http://127.0.0.1:{old[service]}{path}"
                moved = f"http://127.0.0.1:{new[service]}{path}"
                assert endpoint(url, sql) == moved


def test_what_is_not_the_lab_s_own_stays() -> None:
    sql = readdress.statements(ports(20000), ports(25000), HERE)

    assert endpoint("http://127.0.0.1:1/v1", sql) == "http://127.0.0.1:1/v1"


def test_a_folder_with_a_quote_stays_one_string() -> None:
    images = pathlib.Path("/home/o'neil/a\\b")

    sql = readdress.statements(ports(1), ports(2), images)

    assert "'file:///home/o''neil/a\\\\b/'" in sql
