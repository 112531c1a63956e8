"""Configuration files of the lab's charts, as text."""

from lib.lab.osdpl import chart_set, chart_settings


def test_a_chart_without_an_account_has_no_files() -> None:
    by_name = {chart.name: chart for chart in chart_set.CHARTS}
    assert chart_settings.files(by_name["etcd"]) == {}
    assert chart_settings.content(by_name["mariadb"]) == {}


def test_a_job_makes_each_database_of_a_chart() -> None:
    nova = next(chart for chart in chart_set.CHARTS if chart.name == "nova")
    (job,) = (job for job in nova.jobs if job.name == "nova-db-init")
    containers = chart_settings.job_containers(nova, job, {"image": "x"})
    keys = [
        row["valueFrom"]["secretKeyRef"]["key"]
        for container in containers
        for row in container["env"]  # type: ignore[attr-defined]
        if row["name"] == "DB_CONNECTION"
    ]
    assert keys == ["oslo_db.nova", "oslo_db_api.nova", "oslo_db_cell0.nova"]
