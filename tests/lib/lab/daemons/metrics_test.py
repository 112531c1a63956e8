from lib.lab.daemons import metrics

TEXT = """\
# HELP calls_total Calls.
# TYPE calls_total counter
calls_total{code="200",service="nova"} 3.0
calls_total{code="503",service="nova"} 1.0
calls_total{code="200",service="neutron, \\"v2\\""} 2.0
# TYPE calls_total_seconds gauge
calls_total_seconds 0.5
"""


def test_samples_of_a_series_are_told_from_those_of_a_longer_name() -> None:
    assert metrics.samples(TEXT, "calls_total_seconds") == (({}, 0.5),)
    assert metrics.samples(TEXT, "calls") == ()
    assert metrics.samples("", "calls_total") == ()


def test_those_with_all_the_labels_are_added_up() -> None:
    assert metrics.total(TEXT, "calls_total") == 6
    assert metrics.total(TEXT, "calls_total", service="nova") == 4
    assert metrics.total(TEXT, "calls_total", service="nova", code="503") == 1
    assert metrics.total(TEXT, "calls_total", code="404") == 0


def test_values_are_given_by_one_label() -> None:
    """The other labels are added up; quotes and commas are part of a value."""
    assert metrics.by(TEXT, "calls_total", "code") == {"200": 5, "503": 1}
    assert metrics.by(TEXT, "calls_total", "service") == {
        "nova": 4,
        'neutron, "v2"': 2,
    }
