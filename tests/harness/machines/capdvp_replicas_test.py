import pathlib

from tests.harness.machines import capdvp_replicas


def documented() -> set[tuple[str, str]]:
    """Return resources and verbs of capdvp, as docs/dvp.md lists them."""
    rows = pathlib.Path("docs/dvp.md").read_text().splitlines()
    pairs = set()
    for row in rows:
        cells = [cell.strip() for cell in row.split("|")[1:-1]]
        if cells and cells[0] == "capdvp":
            plurals = cells[1].partition(" (")[0].split(", ")
            pairs |= {(each, verb) for each in plurals for verb in cells[2].split(", ")}
    return pairs


def test_the_rights_in_the_parent_are_those_of_the_page() -> None:
    rules = (
        *capdvp_replicas.PARENT_RULES,
        *capdvp_replicas.PARENT_CLUSTER_RULES,
    )
    granted = {(plural, verb) for _, plural, verb in capdvp_replicas.rights(rules)}
    assert granted == documented()
