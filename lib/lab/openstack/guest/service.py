"""Runs one OpenStack project, its API and its back-end services, in one process.

The fake:// transport of oslo.messaging carries messages inside one process only, so
that no message bus is needed. Runs with the lab's own Python, never with Mooring's.

Rules: each project reads its settings when it is imported, so arguments and
environment are set first and imports follow inside the functions.
"""

import argparse
import contextlib
import functools
import gc
import importlib
import inspect
import os
import pathlib
import socket
import sys
import threading
import time
import traceback
import urllib.request
import uuid

THREADS = 16
AFTER_S = 900.0
COLLECT_AFTER = (50_000, 50, 100)
"""New objects, and rounds of the younger generations, until the collector runs.
Python's own: 700, 10, 10."""
FRAMES = 1 << 16
"""References that fit on the stack of a thread's first frame, half a megabyte."""
COLUMNS = 20_000
"""Descriptions of columns that one process keeps, about 1 KB each."""


def main() -> None:
    """Read the arguments, then run the project named for as long as the process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("project", choices=sorted(PROJECTS))
    parser.add_argument("--etc", type=pathlib.Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--compute-host", action="append", default=[])
    parser.add_argument(
        "--after",
        action="append",
        default=[],
        type=int,
        metavar="PORT",
        help="wait for another service that this one asks while it starts",
    )
    chosen = parser.parse_args()
    forget_surroundings()
    keep_room_for_frames()
    remember_columns()
    try:
        application = PROJECTS[chosen.project](chosen)
        collect_rarely()
        serve(application, chosen.port)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        # Threads of the libraries would keep a failed start alive.
        os._exit(1)


def forget_surroundings() -> None:
    """Delete the variables of other clouds and of proxies from the environment."""
    for name in list(os.environ):
        if name.startswith("OS_"):
            del os.environ[name]
    for name in (*urllib.request.getproxies_environment(), "all"):
        for spelling in (f"{name}_proxy", f"{name.upper()}_PROXY"):
            os.environ.pop(spelling, None)


def keep_room_for_frames() -> None:
    """Reserve one megabyte for the frames of the functions of each thread.

    Python 3.11 maps 16 KB at a time and unmaps them with the first frame in them: a
    loop whose calls just cross that border, as some of neutron's do, maps and unmaps
    thousands of times a second. The first frame of a thread needs half of a megabyte
    now, so that what it calls has the other half, and none of its pages is touched.

    Source: CPython 3.11, Python/pystate.c, push_chunk.
    """
    first = threading.Thread._bootstrap_inner
    first.__code__ = first.__code__.replace(co_stacksize=FRAMES)


def remember_columns() -> None:
    """Parse the description of each column of the database once.

    Every answer describes its columns again, and neutron reads hundreds of them for a
    router: PyMySQL would spend a sixth of neutron's time on the same bytes.
    """
    from pymysql import connections

    connections.FieldDescriptorPacket = functools.lru_cache(COLUMNS)(
        connections.FieldDescriptorPacket
    )


def collect_rarely() -> None:
    """Spare the garbage collector what was imported, and most of its rounds.

    A service holds a million objects that never go; each request makes thousands that
    are freed without it.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


def serve(application, port: int) -> None:
    """Answer on the port with threads, keep-alive and chunked bodies."""
    from cheroot import wsgi

    server = wsgi.Server(
        ("127.0.0.1", port),
        application,
        numthreads=THREADS,
        request_queue_size=256,
        timeout=65,
    )
    server.max_request_body_size = 0
    server.prepare()
    server.serve()


def application_of(module: str):
    """Import a project's API; a call, as its place among other imports matters."""
    return importlib.import_module(module).application


def keystone(chosen: argparse.Namespace):
    """Make keystone's API."""
    sys.argv = ["keystone-api", "--config-file", str(chosen.etc / "keystone.conf")]
    os.environ["OS_KEYSTONE_CONFIG_DIR"] = str(chosen.etc)
    return application_of("keystone.wsgi.api")


def glance(chosen: argparse.Namespace):
    """Make glance's API."""
    sys.argv = ["glance-api", "--config-file", str(chosen.etc / "glance-api.conf")]
    os.environ["OS_GLANCE_CONFIG_DIR"] = str(chosen.etc)
    return application_of("glance.wsgi.api")


def placement(chosen: argparse.Namespace):
    """Make placement's API."""
    sys.argv = ["placement-api"]
    os.environ["OS_PLACEMENT_CONFIG_DIR"] = str(chosen.etc)
    return application_of("placement.wsgi.api")


def neutron(chosen: argparse.Namespace):
    """Make neutron's API; there are no agents."""
    settings = str(chosen.etc / "neutron.conf")
    sys.argv = ["neutron-api", "--config-file", settings]
    os.environ["OS_NEUTRON_CONFIG_DIR"] = str(chosen.etc)
    os.environ["OS_NEUTRON_CONFIG_FILES"] = settings
    skip_agents()
    remember_default_groups()
    return application_of("neutron.wsgi.api")


def skip_agents() -> None:
    """Spare each change the search for agents that have to be notified.

    There are none, and it is a third of the time that a floating IP takes.
    """
    from neutron.api.rpc.agentnotifiers import l3_rpc_agent_api
    from neutron.db import l3_dvr_db
    from neutron.plugins.ml2 import ovo_rpc

    def skip(*arguments, **named) -> None:
        pass

    l3_rpc_agent_api.L3AgentNotifyAPI.routers_updated = skip
    l3_dvr_db.L3_NAT_with_dvr_db_mixin._notify_floating_ip_change = skip
    ovo_rpc._ObjectChangeHandler.handle_event = skip


def remember_default_groups() -> None:
    """Read the default security group of each project once.

    Every port and every list of groups asks for its ID, and gets it with all its rules.
    """
    from neutron.db import securitygroups_db

    mixin = securitygroups_db.SecurityGroupDbMixin
    read = mixin._get_default_sg_id
    group_ids = {}

    def remembered(plugin, context, project_id):
        if project_id not in group_ids and (
            group_id := read(plugin, context, project_id)
        ):
            group_ids[project_id] = group_id
        return group_ids.get(project_id)

    mixin._get_default_sg_id = remembered


def wait_for(port: int) -> None:
    """Wait until another service listens."""
    end = time.monotonic() + AFTER_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
        time.sleep(0.1)


def nova(chosen: argparse.Namespace):
    """Make nova's API, with conductor, scheduler and some compute hosts.

    Conductor and scheduler end where keystone or placement does not answer.
    """
    sys.argv = ["nova-api", "--config-file", str(chosen.etc / "nova.conf")]
    os.environ["OS_NOVA_DISABLE_EVENTLET_PATCHING"] = "1"
    os.environ["OS_NOVA_CONFIG_DIR"] = str(chosen.etc)
    # The first file named is the paste file, the others are configuration.
    paste = f"{sys.prefix}/etc/nova/api-paste.ini"
    os.environ["OS_NOVA_CONFIG_FILES"] = f"{paste};nova.conf"
    application = application_of("nova.wsgi.osapi_compute")
    import os_vif
    from nova import context, objects, service
    from nova.objects import host_mapping

    objects.register_all()
    os_vif.initialize()
    objects.Service.enable_min_version_cache()
    keep_node_ids(chosen.compute_host)
    remember_instances()
    keep_disks()
    skip_allocations()
    for port in chosen.after:
        wait_for(port)
    service.Service.create(binary="nova-conductor").start()
    service.Service.create(binary="nova-scheduler").start()
    for host in chosen.compute_host:
        service.Service.create(
            binary="nova-compute", topic="compute", topic_alt="compute-alt", host=host
        ).start()
    host_mapping.discover_hosts(context.get_admin_context())
    return application


def keep_node_ids(hosts: "list[str]") -> None:
    """Keep the id of each fake node the same in every process.

    The fake driver draws new ones, while nova requires that a node keeps its ID.
    """
    from oslo_config import cfg
    from oslo_utils.fixture import uuidsentinel

    ids = {host: str(uuid.uuid5(uuid.NAMESPACE_DNS, host)) for host in hosts}
    for host, node_id in ids.items():
        uuidsentinel._sentinels[f"node_{host}"] = node_id
    state = pathlib.Path(cfg.CONF.state_path)
    state.mkdir(parents=True, exist_ok=True)
    (state / "compute_id").write_text(ids[hosts[0]])


def remember_instances() -> None:
    """Restore the fake driver's instances from the database of its host.

    It keeps them in memory only; after a restart none could be stopped or started.
    """
    from nova.virt import fake

    def recall(driver, context, instances):
        del context
        for instance in instances:
            driver.instances[instance.uuid] = fake.FakeInstance(
                instance.name, instance.power_state, instance.uuid
            )
            for interface in instance.get_network_info():
                driver._interfaces[interface["id"]] = interface
        return instances

    fake.FakeDriver.process_instances_at_startup = recall


def keep_disks() -> None:
    """Have attached volumes appear as files, see `lab_disks`."""
    import lab_disks
    from nova.virt import block_device, fake
    from oslo_config import cfg

    disks = lab_disks.Disks(cfg.CONF.state_path)
    lab_disks.follow_nova(fake.FakeDriver, block_device.DriverVolumeBlockDevice, disks)


def skip_allocations() -> None:
    """Spare each boot a request per instance of its node.

    Only a driver that reshapes resource providers uses those allocations; with 1,000
    fake instances on a node they would be 1,000 requests per boot.
    """
    from nova.scheduler.client import report

    report.SchedulerReportClient.get_allocations_for_provider_tree = (
        lambda client, context, node: {}
    )


def cinder(chosen: argparse.Namespace):
    """Make cinder's API, with scheduler and one volume service per back end."""
    sys.argv = ["cinder-api", "--config-file", str(chosen.etc / "cinder.conf")]
    os.environ["OS_CINDER_DISABLE_EVENTLET_PATCHING"] = "1"
    from cinder import monkey_patch

    monkey_patch.patch()
    # It registers command line options, so it must come before the API reads them.
    from cinder.cmd import volume

    application = application_of("cinder.wsgi.api")
    import os_brick
    from cinder import service
    from cinder.common import constants
    from oslo_config import cfg

    os_brick.setup(cfg.CONF)
    service.Service.create(binary="cinder-scheduler").start()
    for backend in cfg.CONF.enabled_backends:
        cfg.CONF.register_opt(volume.host_opt, group=backend)
        service.Service.create(
            host=f"{cfg.CONF.host}@{backend}",
            service_name=backend,
            binary=constants.VOLUME_BINARY,
            coordination=True,
        ).start()
    return application


def octavia(chosen: argparse.Namespace):
    """Make octavia's API, with its worker."""
    sys.argv = ["octavia-api", "--config-file", str(chosen.etc / "octavia.conf")]
    with without_source():
        application = application_of("octavia.wsgi.api")
    import lab_amphora
    from octavia.controller.queue.v2 import consumer
    from oslo_config import cfg

    lab_amphora.skip_instance_tasks()
    # Cotyledon would supply a process of its own; the body needs none of it.
    worker = consumer.ConsumerService.__new__(consumer.ConsumerService)
    worker.conf = cfg.CONF
    worker.topic = consumer.constants.TOPIC_AMPHORA_V2
    worker.server = cfg.CONF.host
    worker.endpoints = []
    worker.access_policy = consumer.dispatcher.DefaultRPCAccessPolicy
    worker.message_listener = None
    worker.run()
    return application


@contextlib.contextmanager
def without_source():
    """Spare WSME the source code of each type, half the time of octavia's start.

    It parses whole files for the order of attributes; without source the order is
    alphabetical.
    """

    def unavailable(of):
        raise OSError("no source code")

    original = inspect.getsourcelines
    inspect.getsourcelines = unavailable
    try:
        yield
    finally:
        inspect.getsourcelines = original


PROJECTS = {
    "cinder": cinder,
    "glance": glance,
    "keystone": keystone,
    "neutron": neutron,
    "nova": nova,
    "octavia": octavia,
    "placement": placement,
}

if __name__ == "__main__":
    main()
