"""The fake Neutron and the real one keep the contract of routes: one suite for both."""

import contextlib
import os
from collections.abc import Iterator

import pytest

from lib.cloud.openstack.config import reader
from lib.cloud.openstack.http import client, session
from lib.lab import places
from lib.lab.openstack import accounts, cloud
from tests.contract import routes
from tests.contract.neutron import Neutron
from tests.harness.openstack import testing
from tests.harness.routing import real


class TestNeutron(routes.Contract):
    @pytest.fixture(scope="class")
    @classmethod
    def ground(
        cls, where: places.Places, project: testing.MakeProject
    ) -> Iterator[routes.Ground]:
        account, _ = project("routes-contract")
        config = reader.read(accounts.cloud_conf(where, account), os.environ)
        opened = session.open_session(config.credentials, 60.0)
        at = client.Where(config.credentials.region, config.credentials.endpoint_type)

        def connect() -> client.Client:
            return client.Client(opened, at, lambda operation, outcome, seconds: None)

        with contextlib.closing(cloud.connect(where, account)) as connection:
            inside = real.Network(connection)
            try:
                yield Neutron(connect, inside, inside.router_id)
            finally:
                inside.clear()
