"""Charts of the control plane: what openstack-helm 2026.1.0 has under the same names.

Source: values.yaml and templates of openstack-helm 2026.1.0.
"""

from lib.lab.osdpl import chart_parts, contract
from lib.lab.osdpl.contract import Chart, Job, Needs, Workload, WorkloadKind


def _infrastructure() -> tuple[Chart, ...]:
    """Return database, message bus, cache and key-value store."""
    accounts = ("admin", "sst", "audit", "exporter")
    _, database = chart_parts.backend("oslo_db", *accounts)
    users = tuple(f"endpoints.oslo_db.auth.{name}.username" for name in accounts)
    volume = ("volume.class_name", "volume.size")
    bus = "endpoints.oslo_messaging.auth"
    return (
        Chart(
            name="mariadb",
            app_version="11.4.8",
            images=(
                "mariadb",
                "prometheus_create_mysql_user",
                "prometheus_mysql_exporter",
                "prometheus_mysql_exporter_helm_tests",
                "dep_check",
                "image_repo_sync",
                "mariadb_backup",
                "ks_user",
                "scripted_test",
                "mariadb_controller",
            ),
            labels=dict.fromkeys(
                ("server", "prometheus_mysql_exporter", "job", "test", "controller"),
                contract.CONTROL_PLANE,
            ),
            flags={"pod_test": True},
            required=(*users, *volume),
            public=database,
            workloads=(
                Workload(
                    kind=WorkloadKind.STATEFUL_SET,
                    name="mariadb-server",
                    component="server",
                    label="server",
                    replicas="server",
                    images=("mariadb",),
                    service="mariadb",
                    port=3306,
                    claim="mysql-data",
                    budget="mariadb",
                ),
                Workload(
                    kind=WorkloadKind.DEPLOYMENT,
                    name="mariadb-controller",
                    component="controller",
                    label="controller",
                    replicas="controller",
                    images=("mariadb_controller",),
                    flag="deployment_controller",
                ),
            ),
        ),
        Chart(
            name="rabbitmq",
            app_version="v3.12.0",
            images=(
                "rabbitmq_init",
                "rabbitmq",
                "dep_check",
                "scripted_test",
                "image_repo_sync",
            ),
            labels=dict.fromkeys(("server", "test", "jobs"), contract.CONTROL_PLANE),
            flags={"pod_test": True},
            endpoints=("oslo_messaging",),
            required=(f"{bus}.user.username", *volume),
            public={
                f"{bus}.user.password": "password",
                f"{bus}.guest.password": "password",
                f"{bus}.erlang_cookie": "openstack-cookie",
            },
            workloads=(
                Workload(
                    kind=WorkloadKind.STATEFUL_SET,
                    name="{{ .Release.Name }}-rabbitmq",
                    component="server",
                    label="server",
                    replicas="server",
                    images=("rabbitmq_init", "rabbitmq"),
                    service="rabbitmq",
                    port=5672,
                    cluster_ip="None",
                    claim="rabbitmq-data",
                ),
            ),
            jobs=(
                Job(
                    name="{{ .Release.Name }}-cluster-wait",
                    image="rabbitmq_init",
                    weight=5,
                    needs=Needs(services=("oslo_messaging",)),
                    flag="job_cluster_wait",
                ),
            ),
        ),
        Chart(
            name="memcached",
            app_version="v1.6.32",
            images=("dep_check", "memcached", "image_repo_sync"),
            labels={"server": contract.CONTROL_PLANE},
            workloads=(
                Workload(
                    kind=WorkloadKind.STATEFUL_SET,
                    name="{{ .Release.Name }}-memcached",
                    component="server",
                    label="server",
                    replicas="server",
                    images=("memcached",),
                    service="memcached",
                    port=11211,
                    cluster_ip="network.memcached.service.clusterIP",
                ),
            ),
        ),
        Chart(
            name="etcd",
            app_version="v3.4.3",
            images=("etcd", "dep_check", "image_repo_sync", "etcd_db_compact"),
            labels=dict.fromkeys(("server", "job"), contract.CONTROL_PLANE),
            required=("volume.enabled", *volume),
            workloads=(
                Workload(
                    kind=WorkloadKind.STATEFUL_SET,
                    name="{{ .Release.Name }}-etcd",
                    component="server",
                    label="server",
                    replicas="etcd",
                    images=("etcd",),
                    service="etcd",
                    port=2379,
                    claim="etcd-data",
                ),
            ),
        ),
    )


def _keystone() -> Chart:
    required, public = chart_parts.service_values("keystone", (), cache_key=False)
    setup = ("keystone-credential-setup", "keystone-fernet-setup")
    api = Needs(services=("oslo_cache", "oslo_db"), jobs=("keystone-db-sync", *setup))
    return Chart(
        name="keystone",
        app_version="v29.0.0",
        images=(
            "bootstrap",
            "test",
            *chart_parts.DATABASE_IMAGES,
            "keystone_db_sync",
            "ks_user",
            "rabbit_init",
            "keystone_fernet_setup",
            "keystone_fernet_rotate",
            "keystone_credential_setup",
            "keystone_credential_rotate",
            "keystone_credential_cleanup",
            "keystone_api",
            "keystone_domain_manage",
            "dep_check",
            "image_repo_sync",
        ),
        labels=dict.fromkeys(("api", "job", "test"), contract.CONTROL_PLANE),
        flags={"pod_rally_test": True},
        endpoints=("identity", "oslo_cache", "oslo_db", "oslo_messaging"),
        required=(
            *required,
            "endpoints.identity.auth.admin.default_domain_id",
            *chart_parts.public_name("identity"),
        ),
        public=public,
        workloads=(
            Workload(
                kind=WorkloadKind.DEPLOYMENT,
                name="keystone-api",
                component="api",
                label="api",
                replicas="api",
                images=("keystone_api",),
                needs=api,
                service="keystone-api",
                port=5000,
                budget="api",
            ),
        ),
        jobs=(
            Job(name=setup[0], image="keystone_credential_setup", weight=-5),
            Job(name=setup[1], image="keystone_fernet_setup", weight=-5),
            *chart_parts.database_jobs("keystone", "keystone_db_sync", *setup),
            chart_parts.bus_job("keystone"),
            Job(
                name="keystone-domain-manage",
                image="keystone_domain_manage",
                weight=0,
                needs=chart_parts.IDENTITY,
                flag="job_domain_manage",
            ),
            Job(
                name="keystone-bootstrap",
                image="bootstrap",
                weight=5,
                needs=chart_parts.IDENTITY,
                flag="job_bootstrap",
            ),
            Job(
                name="keystone-fernet-rotate",
                image="keystone_fernet_rotate",
                weight=None,
                needs=Needs(jobs=("keystone-fernet-setup",)),
                flag="cron_fernet_rotate",
                schedule="0 */12 * * *",
            ),
            Job(
                name="keystone-credential-rotate",
                image="keystone_credential_rotate",
                weight=None,
                needs=Needs(jobs=("keystone-credential-setup",)),
                flag="cron_credential_rotate",
                schedule="0 0 1 * *",
            ),
        ),
    )


def _glance() -> Chart:
    required, public = chart_parts.service_values("glance", ("glance",))
    jobs = ("db-sync", "rabbit-init", "ks-user", "ks-endpoints")
    return Chart(
        name="glance",
        app_version="v32.0.0",
        images=(
            "test",
            "glance_storage_init",
            "glance_metadefs_load",
            *chart_parts.DATABASE_IMAGES,
            "glance_db_sync",
            *chart_parts.ACCOUNT_IMAGES,
            "rabbit_init",
            "glance_api",
            "bootstrap",
            "dep_check",
            "image_repo_sync",
        ),
        labels=dict.fromkeys(("api", "job", "test"), contract.CONTROL_PLANE),
        flags={"pod_rally_test": True},
        endpoints=("identity", "image", "oslo_cache", "oslo_db", "oslo_messaging"),
        required=(*required, "storage", *chart_parts.public_name("image")),
        public=public,
        workloads=(
            Workload(
                kind=WorkloadKind.DEPLOYMENT,
                name="glance-api",
                component="api",
                label="api",
                replicas="api",
                images=("glance_api",),
                needs=Needs(
                    services=("oslo_db", "identity", "oslo_messaging"),
                    jobs=tuple(f"glance-{job}" for job in jobs),
                ),
                service="glance-api",
                port=9292,
                budget="api",
            ),
        ),
        jobs=(
            *chart_parts.database_jobs("glance", "glance_db_sync"),
            *chart_parts.account_jobs("glance"),
            chart_parts.bus_job("glance"),
            Job(
                name="glance-metadefs-load",
                image="glance_metadefs_load",
                weight=0,
                needs=Needs(jobs=("glance-db-sync",)),
                flag="job_metadefs_load",
            ),
            Job(
                name="glance-bootstrap",
                image="bootstrap",
                weight=5,
                needs=Needs(services=("identity", "image")),
                flag="job_bootstrap",
            ),
        ),
    )


def _placement() -> Chart:
    required, public = chart_parts.service_values(
        "placement", ("placement",), bus=False
    )
    jobs = ("db-sync", "ks-service", "ks-user", "ks-endpoints")
    return Chart(
        name="placement",
        app_version="v15.0.0",
        images=(
            "placement",
            *chart_parts.ACCOUNT_IMAGES,
            *chart_parts.DATABASE_IMAGES,
            "placement_db_sync",
            "dep_check",
            "image_repo_sync",
        ),
        labels=dict.fromkeys(("api", "job"), contract.CONTROL_PLANE),
        endpoints=("identity", "oslo_cache", "oslo_db"),
        required=(*required, *chart_parts.public_name("placement")),
        public=public,
        workloads=(
            Workload(
                kind=WorkloadKind.DEPLOYMENT,
                name="placement-api",
                component="api",
                label="api",
                replicas="api",
                images=("placement",),
                needs=Needs(jobs=tuple(f"placement-{job}" for job in jobs)),
                service="placement-api",
                port=8778,
                budget="api",
            ),
        ),
        jobs=(
            *chart_parts.database_jobs("placement", "placement_db_sync"),
            *chart_parts.account_jobs("placement", (-2, 1, -1)),
        ),
    )


def _horizon() -> Chart:
    required, public = chart_parts.service_values(
        "horizon", (), bus=False, cache_key=False
    )
    key = "conf.horizon.local_settings.config.horizon_secret_key"
    return Chart(
        name="horizon",
        app_version="v25.7.1",
        images=(
            *chart_parts.DATABASE_IMAGES,
            "horizon_db_sync",
            "horizon",
            "test",
            "dep_check",
            "image_repo_sync",
        ),
        labels=dict.fromkeys(("dashboard", "job", "test"), contract.CONTROL_PLANE),
        flags={"pod_helm_test": True},
        endpoints=("identity", "oslo_cache", "oslo_db"),
        required=(*required, *chart_parts.public_name("dashboard", "web")),
        public=public | {key: "9aee62c0-5253-4a86-b189-e0fb71fa503c"},
        workloads=(
            Workload(
                kind=WorkloadKind.DEPLOYMENT,
                name="horizon",
                component="server",
                label="dashboard",
                replicas="server",
                images=("horizon",),
                needs=Needs(
                    services=("oslo_cache", "oslo_db", "identity"),
                    jobs=("horizon-db-sync",),
                ),
                service="horizon-int",
                budget="horizon",
            ),
        ),
        jobs=chart_parts.database_jobs("horizon", "horizon_db_sync"),
    )


CHARTS = (*_infrastructure(), _keystone(), _glance(), _placement(), _horizon())
