"""What `mooring render osdpl` and the real helm make of one cloud, by chart set."""

import dataclasses
import functools
import os
import pathlib
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import yaml

from lib.helm import cache, model
from lib.lab import errors as lab_errors
from lib.lab import places
from lib.lab.artifacts import programs
from lib.lab.charts import helm
from lib.osdpl.values import graph, public_secrets
from tests.harness.osdpl import cloud_manifests
from tests.harness.osdpl.cloud_manifests import CloudManifests

RUN = "import sys; from mooring.commands import main; main.main()"
CLOUD = """
apiVersion: lcm.mirantis.com/v1alpha1
kind: OpenStackDeployment
metadata: {name: cloud, namespace: openstack}
spec:
  openstack_version: gazpacho
  preset: core
  size: tiny
  public_domain_name: cloud.example.com
  persistent_volume_storage_class: network
  features: {neutron: {tunnel_interface: ens3}, nova: {live_migration_interface: ens3}}
  nodes:
    rack::a:
      services:
        compute:
          libvirt:
            libvirt_libvirt: {values: {conf: {libvirt: {log_filters: on-rack-a}}}}
          nova:
            nova_compute: {values: {conf: {nova: {DEFAULT: {my_ip: on-rack-a}}}}}
        networking:
          neutron:
            neutron_ovs-agent:
              values:
                conf: {plugins: {openvswitch_agent: {agent: {extensions: on-rack-a}}}}
"""
VERSION = "2026.1"
"""OpenStack's, as images name it."""
CHARTS = {name: chart for pairs in graph.RELEASES.values() for name, chart in pairs}
"""Chart by release."""
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Manifest = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Rendered:
    """Rendered cloud. source: folder of the charts. output: folder of the command."""

    where: places.Places
    source: str
    output: pathlib.Path

    @functools.cached_property
    def manifests(self) -> Mapping[str, list[Manifest]]:
        """Decoded manifests by release."""
        return {
            name: documents((self.output / name / "manifests.yaml").read_text())
            for name in CHARTS
        }

    @functools.cached_property
    def values(self) -> Mapping[str, Manifest]:
        """Values by release."""
        return {
            name: documents((self.output / name / "values.yaml").read_text())[0]
            for name in CHARTS
        }

    @functools.cached_property
    def defaults(self) -> Mapping[str, Manifest]:
        """Default values of the charts, by release."""
        return {
            name: documents(
                (pathlib.Path(self.source) / chart / "values.yaml").read_text()
            )[0]
            for name, chart in CHARTS.items()
        }

    @property
    def images(self) -> dict[str, set[str]]:
        """Images of the charts, by release."""
        return {
            name: set(values["images"]["tags"].values())
            for name, values in self.defaults.items()
        }

    @property
    def cloud(self) -> CloudManifests:
        """All of it, as the judge reads it."""
        return cloud_manifests.of_releases(self.manifests, self.values)

    @functools.cached_property
    def public(self) -> frozenset[str]:
        """Secrets of the charts' default values, and of what these render to.

        A checkout refers to its library chart by a path: helm wants it packed inside,
        as lib/helm does it. The defaults of the lab's charts do not render.
        """
        texts: set[str] = set()
        charts = cache.Charts(self.where.state / "default-charts")
        for name, values in self.defaults.items():
            texts |= public_secrets.of_values(values)
            pin = model.Pin(CHARTS[name], version_of(self.source))
            packed = charts.get(self.source, pin).path
            words = ("template", name, packed, "--namespace", "openstack")
            try:
                rendered = documents(helm.run(self.where, words))
            except lab_errors.LabError:
                continue
            texts |= {value for _, value in public_secrets.secrets(rendered)}
        return frozenset(texts)


def render(
    where: places.Places,
    source: str,
    folder: pathlib.Path,
    features: Manifest | None = None,
    values: Manifest | None = None,
) -> Rendered:
    """Run the command for the cloud of this module, or one with other features.

    values: of all charts.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "cloud.yaml"
    cloud = _cloud(source)
    if features:
        cloud["spec"]["features"] = features
    if values:
        cloud["spec"]["common"]["charts"] = {"values": values}
    file.write_text(yaml.safe_dump(cloud))
    output = folder / "output"
    words = [str(file), "--charts", source, "--output-dir", str(output)]
    program = str(programs.path(where, "helm"))
    path = os.pathsep.join(entry for entry in sys.path if entry)
    ended = subprocess.run(
        [sys.executable, "-c", RUN, "render", "osdpl", *words, "--helm", program],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return Rendered(where, source, output)


def _cloud(source: str) -> Manifest:
    """Return the OpenStackDeployment with the version of a source's charts."""
    (document,) = documents(CLOUD)
    releases = {"releases": {"version": version_of(source)}}
    document["spec"]["common"] = {"openstack": releases, "infra": releases}
    return document


def version_of(source: str) -> str:
    """Return the version of the charts of a folder."""
    text = (pathlib.Path(source) / "keystone" / "Chart.yaml").read_text()
    return str(documents(text)[0]["version"])


def documents(text: str) -> list[Manifest]:
    """Return the documents of manifests."""
    return [document for document in yaml.load_all(text, _LOADER) if document]
