import pytest

from lib.kube import resources


@pytest.mark.parametrize(
    ("resource", "where", "path"),
    [
        (resources.NODES, (None, "n1"), "/api/v1/nodes/n1"),
        (resources.NODES, (None, "n1", "status"), "/api/v1/nodes/n1/status"),
        (resources.EVENTS, (None,), "/api/v1/events"),
        (resources.EVENTS, ("default",), "/api/v1/namespaces/default/events"),
        (
            resources.LEASES,
            ("kube-system", "ccm"),
            "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/ccm",
        ),
        (resources.NAMESPACES, (None, "a"), "/api/v1/namespaces/a"),
        (resources.NAMESPACES, (None, "a", "status"), "/api/v1/namespaces/a/status"),
    ],
)
def test_a_path_says_what_it_points_to(
    resource: resources.Resource, where: tuple[str, ...], path: str
) -> None:
    """A path is as the API server's URIs are, and can be read back."""
    assert resource.path(*where) == path
    namespace, name, subresource, *_ = (*where, None, None)
    assert resources.parse(path) == resources.ResourcePath(
        resource.group,
        resource.version,
        namespace,
        resource.plural,
        name,
        subresource,
    )


def test_names_are_quoted() -> None:
    """A name can't reach out of its place in the path."""
    path = resources.CLUSTER_ROLES.path(None, "system:a/../b")
    assert path.endswith("/clusterroles/system%3Aa%2F..%2Fb")


def test_what_does_not_go_together_is_refused() -> None:
    """An object of a namespaced kind has a namespace, and of another kind has none."""
    with pytest.raises(ValueError, match="needs a namespace"):
        resources.LEASES.path(None, "ccm")
    with pytest.raises(ValueError, match="no namespace"):
        resources.NODES.path("default", "n1")


@pytest.mark.parametrize("path", ["/readyz", "/api", "/apis/apps", "/"])
def test_paths_of_no_resource_have_no_plural(path: str) -> None:
    """Paths outside the resources are recognized, not guessed at."""
    assert resources.parse(path).plural == ""
