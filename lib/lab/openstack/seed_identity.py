"""Seeds users, roles and the catalogue, over keystone's own API.

Rules: what is there by name is left as it is, so that an interrupted seed goes on.
"""

from collections.abc import Mapping

import openstack.connection

from lib.lab.openstack import cloud, layout

_PROJECTS = ("service", "demo")
_ROLES = ("service", "member", "reader", "load-balancer_member", "load-balancer_admin")
_USERS: Mapping[tuple[str, str], tuple[str, ...]] = {
    **{
        (service, "service"): ("admin", "service")
        for service in layout.SERVICES
        if service != layout.KEYSTONE
    },
    ("admin", "admin"): (
        *("admin", "member", "reader"),
        *("load-balancer_admin", "load-balancer_member"),
    ),
    ("demo", "demo"): ("member", "reader", "load-balancer_member"),
    ("admin", "demo"): ("admin", "member"),
}
"""Roles by user and project."""
_CATALOGUE = (
    (layout.GLANCE, "image", ""),
    (layout.PLACEMENT, "placement", ""),
    (layout.NOVA, "compute", "/v2.1"),
    (layout.NEUTRON, "network", ""),
    (layout.CINDER, "block-storage", "/v3"),
    # The same under the name by which older clients look for it.
    (layout.CINDER, "volumev3", "/v3/%(project_id)s"),
    (layout.OCTAVIA, "load-balancer", ""),
)
"""Service, type and path of each entry."""


def run(home: layout.Layout, admin: openstack.connection.Connection) -> None:
    """Make whatever is missing."""
    identity = cloud.identity_of(admin)
    roles = {role.name: role for role in identity.roles()}
    for name in _ROLES:
        if name not in roles:
            roles[name] = identity.create_role(name=name)
    projects = {project.name: project for project in identity.projects()}
    for name in _PROJECTS:
        if name not in projects:
            projects[name] = identity.create_project(name=name, domain_id="default")
    users = {user.name: user for user in identity.users()}
    for (name, project), role_names in _USERS.items():
        if name not in users:
            users[name] = identity.create_user(
                name=name,
                password=layout.PASSWORD,
                domain_id="default",
                default_project_id=projects[project].id,
            )
        for role in role_names:
            identity.assign_project_role_to_user(
                projects[project], users[name], roles[role]
            )
    _catalogue(home, admin)


def _catalogue(home: layout.Layout, admin: openstack.connection.Connection) -> None:
    identity = cloud.identity_of(admin)
    services = {service.type: service for service in identity.services()}
    listed = {
        (endpoint.service_id, endpoint.interface) for endpoint in identity.endpoints()
    }
    for service, kind, path in _CATALOGUE:
        if kind not in services:
            services[kind] = identity.create_service(name=service, type=kind)
        for interface in ("public", "internal", "admin"):
            if (services[kind].id, interface) not in listed:
                identity.create_endpoint(
                    service_id=services[kind].id,
                    interface=interface,
                    url=home.url(service, path),
                    region_id=layout.REGION,
                )
