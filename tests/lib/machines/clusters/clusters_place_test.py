"""Clusters that wait for what they refer to in the cloud, or have no finalizer."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from lib.cloud import errors
from lib.cloud.machines import Reason
from lib.cloud.steps import Problem

Make = Callable[..., Any]
ABSENT = Problem(Reason.PREREQUISITE, "spec.id: there is no cluster of that ID")
DOWN = errors.Unavailable("the engine is down", operation="read cluster")


class Places:
    """Implements `MachineClusters`: answers as a test wants."""

    def __init__(self, *answers: Problem | Exception | None) -> None:
        """answers: the last one stays."""
        self.answers = list(answers)
        self.checked: list[Mapping[str, object]] = []

    def check(self, spec: Mapping[str, object]) -> Problem | None:
        self.checked.append(spec)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def provisioned(clusters: Any) -> Any:
    return clusters.get().get("status", {}).get("initialization")


def test_a_cluster_whose_place_exists_is_provisioned_after_one_check(
    clusters: Any, make_cluster_process: Make
) -> None:
    clusters.places = Places(None)
    process = make_cluster_process(clusters)
    process.settle()
    assert clusters.condition() == ("True", "Provisioned", "")
    process.settle()
    make_cluster_process(clusters).settle()
    assert len(clusters.places.checked) == 1


def test_a_cluster_waits_until_its_place_exists(
    clusters: Any, make_cluster_process: Make
) -> None:
    clusters.places = Places(ABSENT)
    process = make_cluster_process(clusters)
    process.settle()
    assert clusters.condition() == ("False", "PrerequisiteNotReady", ABSENT.message)
    assert provisioned(clusters) is None
    assert process.events() == ["Warning PrerequisiteNotReady"]
    clusters.places.answers = [None]
    process.settle(quiet_s=70.0)
    assert clusters.condition() == ("True", "Provisioned", "")
    assert process.events() == ["Warning PrerequisiteNotReady"]


def test_a_cloud_that_does_not_answer_is_no_failure(
    clusters: Any, make_cluster_process: Make
) -> None:
    clusters.places = Places(DOWN, DOWN, None)
    process = make_cluster_process(clusters)
    process.settle(quiet_s=1.0)
    status, reason, message = clusters.condition()
    assert (status, reason) == ("Unknown", "ClusterNotVerified")
    assert "the engine is down" in message
    assert not {"failureReason", "failureMessage"} & set(clusters.get()["status"])
    process.settle()
    assert clusters.condition() == ("True", "Provisioned", "")


@pytest.mark.parametrize("answer", [ABSENT, DOWN], ids=["absent", "engine down"])
def test_provisioned_stays_whatever_happens_to_the_place(
    clusters: Any, make_cluster_process: Make, answer: Problem | Exception
) -> None:
    """Also where only a program of the older contract has recorded it."""
    clusters.places = Places(answer)
    clusters.ground.put(clusters.kinds.cluster, "infra", status={"ready": True})
    make_cluster_process(clusters).settle()
    assert provisioned(clusters)["provisioned"] is True
    assert clusters.places.checked == []


def test_a_failure_that_the_reference_recorded_is_removed(
    clusters: Any, make_cluster_process: Make
) -> None:
    """It records one when the engine is down for a moment."""
    clusters.places = Places(None)
    status = {"failureReason": "ClusterMisconfigured", "failureMessage": "x"}
    clusters.ground.put(clusters.kinds.cluster, "infra", status=status)
    make_cluster_process(clusters).settle()
    assert not {"failureReason", "failureMessage"} & set(clusters.get()["status"])
    assert provisioned(clusters)["provisioned"] is True


def test_a_kind_without_finalizer_gets_none_and_is_deleted_at_once(
    clusters: Any, make_cluster_process: Make
) -> None:
    clusters.kinds = dataclasses.replace(clusters.kinds, finalizer="")
    process = make_cluster_process(clusters)
    process.settle()
    assert "finalizers" not in clusters.get()["metadata"]
    assert clusters.condition() == ("True", "Provisioned", "")
    clusters.delete()
    process.settle()
    assert clusters.get() is None


def test_a_finalizer_of_others_keeps_no_work_for_a_kind_without_one(
    clusters: Any, make_cluster_process: Make
) -> None:
    clusters.kinds = dataclasses.replace(clusters.kinds, finalizer="")
    clusters.create("infra", finalizers=["example.com/other"])
    process = make_cluster_process(clusters)
    process.settle()
    clusters.delete()
    process.settle()
    assert clusters.get()["metadata"]["finalizers"] == ["example.com/other"]
    assert clusters.condition() == ("True", "Provisioned", "")
