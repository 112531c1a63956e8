from dvp_ccm import main
from lib.ccm import flag_table, options


def test_flags_without_a_meaning_in_the_parent_say_why() -> None:
    """The environment names the cluster, and a parent has neither file nor routes."""
    shared = {flag.name: flag for flag in options.FLAGS}
    changed = {
        flag.name: flag.no_effect
        for flag in main.FLAGS
        if flag.name in shared and flag.no_effect != shared[flag.name].no_effect
    }
    print(changed)
    assert sorted(changed) == sorted(
        (
            flag_table.CLOUD_CONFIG.name,
            flag_table.CLUSTER_CIDR.name,
            flag_table.CLUSTER_ID.name,
            flag_table.CLUSTER_NAME.name,
            flag_table.CONFIGURE_ROUTES.name,
            flag_table.ROUTE_PERIOD.name,
        )
    )
    assert all(changed.values())
