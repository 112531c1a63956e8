"""The supported services, in the order of installation."""

from lib.osdpl.values.service import Chart, Service
from lib.osdpl.values.services import (
    compute,
    coordination,
    dashboard,
    database,
    identity,
    image,
    memcached,
    messaging,
    networking,
    placement,
)

SERVICES: tuple[Service, ...] = (
    database.SERVICE,
    messaging.SERVICE,
    memcached.SERVICE,
    coordination.SERVICE,
    identity.SERVICE,
    image.SERVICE,
    placement.SERVICE,
    networking.SERVICE,
    compute.SERVICE,
    dashboard.SERVICE,
)
BY_NAME = {service.name: service for service in SERVICES}
CHARTS: dict[str, Chart] = {
    chart.name: chart for service in SERVICES for chart in service.charts
}
BY_RELEASE: dict[str, Chart] = {chart.release: chart for chart in CHARTS.values()}
USERS = {service.name: service.user for service in SERVICES if service.user}
"""Prefix of the user names by service; only these services have such a Secret."""
ENDPOINTS = {
    name: endpoint
    for service in SERVICES
    for name, endpoint in service.endpoints.items()
}
"""First label of the public name and name of the port, by endpoint."""
