"""Checks of the provider IDs of all Nodes: pure."""

from collections.abc import Mapping, Sequence

from lib.cloud import checkup, provider_id
from lib.doctor import judge
from lib.doctor.model import CheckResult, CheckState, NodeIdentity, Read, ReadFailure

SHOWN = 20
"""Nodes with the same problem that get a line each; further Nodes are counted."""

_MALFORMED = (
    "an ID is immutable: delete the Node and have its kubelet register again with"
    " a valid --provider-id, or without"
)
_OTHER_REGION = "skipped here; check that a daemon of that region runs"
_OTHER_CLOUD = "skipped here; check that a daemon of that cloud runs"
_NEVER = "start its kubelet with --cloud-provider=external, and register the Node again"

Parsed = provider_id.ProviderId


def findings(
    read: Read[tuple[NodeIdentity, ...]] | ReadFailure,
    cloud: str,
    region: str | None,
    remedies: checkup.Remedies,
) -> tuple[CheckResult, ...]:
    """Check the provider IDs of all Nodes.

    cloud: provider of the daemon. region: of the configuration; None: it cannot be
    read, and only the form of IDs is checked. remedies: of the provider.
    """
    if isinstance(read, ReadFailure):
        failed = CheckResult(
            judge.PROVIDER_IDS,
            CheckState.FAILED,
            read.text,
            "see the check of rights above",
        )
        return (failed,)
    parsed = {node.name: _parsed(node) for node in read.value if node.provider_id}
    of_cloud = {
        name: provider_id
        for name, provider_id in parsed.items()
        if isinstance(provider_id, Parsed) and provider_id.cloud == cloud
    }
    return (
        *_invalid(parsed, cloud),
        *_of_other_region(of_cloud, region),
        *_nameless(read.value),
        _whole(len(read.value), tuple(of_cloud.values()), region, remedies),
    )


def _invalid(
    parsed: Mapping[str, Parsed | provider_id.ProviderIdError], cloud: str
) -> list[CheckResult]:
    """Return the Nodes with malformed IDs, and those of other providers."""
    malformed = [(n, str(e)) for n, e in parsed.items() if not isinstance(e, Parsed)]
    other = [
        (name, f"{parsed_id.cloud}://{parsed_id.id}")
        for name, parsed_id in parsed.items()
        if isinstance(parsed_id, Parsed) and parsed_id.cloud != cloud
    ]
    return [
        *_each(malformed, "Node {}: {}", CheckState.FAILED, _MALFORMED),
        *_each(
            other, "Node {}: {!r} is of another cloud", CheckState.WARNING, _OTHER_CLOUD
        ),
    ]


def _of_other_region(
    of_cloud: Mapping[str, Parsed], region: str | None
) -> list[CheckResult]:
    far = [
        (name, parsed.region, region or "")
        for name, parsed in of_cloud.items()
        if _elsewhere(parsed, region)
    ]
    text = "Node {}: its id is of region {!r}, not of {!r}"
    return _each(far, text, CheckState.WARNING, _OTHER_REGION)


def _nameless(nodes: Sequence[NodeIdentity]) -> list[CheckResult]:
    never = [(n.name,) for n in nodes if not n.provider_id and not n.is_new]
    text = (
        "Node {} has no provider ID, and no controller will set it: it lacks the"
        " uninitialized taint"
    )
    return _each(never, text, CheckState.WARNING, _NEVER)


def _parsed(node: NodeIdentity) -> Parsed | provider_id.ProviderIdError:
    try:
        return provider_id.parse(node.provider_id)
    except provider_id.ProviderIdError as error:
        return error


def _elsewhere(parsed: Parsed, region: str | None) -> bool:
    return region is not None and not parsed.may_be_in(region)


def _each(
    rows: Sequence[tuple[str, ...]],
    text: str,
    state: CheckState,
    remedy: str,
) -> list[CheckResult]:
    """Return a line for each of the first Nodes, and one with the number of the others.

    text: format of a line: the Node's name, and the problem.
    """
    lines = [
        CheckResult(judge.PROVIDER_IDS, state, text.format(*row), remedy)
        for row in sorted(rows)[:SHOWN]
    ]
    if len(rows) > SHOWN:
        more = f"and {len(rows) - SHOWN} more Nodes like the last one"
        lines.append(CheckResult(judge.PROVIDER_IDS, state, more, remedy))
    return lines


def _whole(
    nodes: int,
    of_cloud: tuple[Parsed, ...],
    region: str | None,
    remedies: checkup.Remedies,
) -> CheckResult:
    """Check that all IDs of this provider have one form and one region."""
    bare = sum(not parsed.region for parsed in of_cloud)
    elsewhere = sum(_elsewhere(parsed, region) for parsed in of_cloud)
    if elsewhere and elsewhere == len(of_cloud):
        text = f"none of {len(of_cloud)} ids is of region {region!r}"
        return CheckResult(judge.PROVIDER_IDS, CheckState.FAILED, text, remedies.region)
    if elsewhere and bare:
        text = (
            f"{bare} IDs have no region, {elsewhere} are of another region: a daemon"
            " of that region takes the former for its own, and for absent"
        )
        return CheckResult(
            judge.PROVIDER_IDS, CheckState.FAILED, text, remedies.no_region
        )
    if bare and bare < len(of_cloud):
        text = f"{bare} of {len(of_cloud)} ids name no region, the others do"
        return CheckResult(judge.PROVIDER_IDS, CheckState.WARNING, text, remedies.mixed)
    form = "without" if bare else "with"
    summary = (
        f"; {len(of_cloud)} ids of this cloud, all {form} their region"
        if of_cloud
        else ""
    )
    return CheckResult(
        judge.PROVIDER_IDS, CheckState.OK, f"{nodes} Nodes checked{summary}"
    )
