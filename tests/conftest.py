"""How the tests run: by what they find, never by how long it takes, and on this machine only."""

import offline
from hypothesis import HealthCheck, settings
from product_servers import mlflow_url, phoenix_url, servers  # noqa: F401  # fixtures

settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=100
)
settings.load_profile("untimed")

offline.forbid()


def pytest_sessionfinish(session):
    """Whoever was refused may have kept it for himself: the run fails all the same."""
    if offline.ATTEMPTS:
        session.exitstatus = 1


def pytest_terminal_summary(terminalreporter):
    for attempt in offline.ATTEMPTS:
        terminalreporter.write_line(f"spoke to another machine: {attempt}", red=True)
