"""Run the adapters' tests against the versions of their frameworks that are supported.

`nox` runs them all, `nox -s langchain` those of LangChain, `nox -s langchain-0.3` those of one
version. Each session has an environment of its own; `nox -r` uses it again.
"""

import nox

LANGCHAIN = {
    "0.3": ["langchain-core==0.3.86"],
    "1.0": ["langchain-core==1.0.*"],
    "newest": ["langchain-core", "langchain", "langchain-classic", "langgraph"],
}
"""What is installed, by session; tests of a framework that is missing are skipped."""

nox.options.sessions = ["langchain"]


def _add(version: str, packages: list[str]) -> None:
    @nox.session(name=f"langchain-{version}")
    def test(session: nox.Session) -> None:
        session.install("-e", ".[test]", *packages)
        session.run("python", "-m", "pytest", "tests/langchain", *session.posargs)


for _version, _packages in LANGCHAIN.items():
    _add(_version, _packages)


@nox.session(venv_backend="none")
def langchain(session: nox.Session) -> None:
    """Run the tests against every version."""
    for version in LANGCHAIN:
        session.notify(f"langchain-{version}", posargs=session.posargs)
