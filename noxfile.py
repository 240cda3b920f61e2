"""Run the adapters' tests against the versions of their frameworks that are supported.

`nox` runs them all, `nox -s langchain` those of LangChain, `nox -s langchain-0.3` those of one
version. Each session has an environment of its own; `nox -r` uses it again.
"""

import nox

VERSIONS = {
    "langchain": {
        "0.3": ["langchain-core==0.3.86"],
        "1.0": ["langchain-core==1.0.*"],
        "newest": ["langchain-core", "langchain", "langchain-classic", "langgraph"],
    },
    "llamaindex": {
        "0.12": ["llama-index-core==0.12.52.post1"],
        "0.13": ["llama-index-core==0.13.6"],
        "0.14.20": ["llama-index-core==0.14.20"],
        "newest": ["llama-index-core"],
    },
}
"""What is installed, by framework and session; tests of what is missing are skipped."""

nox.options.sessions = list(VERSIONS)


def _add(framework: str, version: str, packages: list[str]) -> None:
    @nox.session(name=f"{framework}-{version}")
    def test(session: nox.Session) -> None:
        session.install("-e", ".[test]", *packages)
        session.run("python", "-m", "pytest", f"tests/{framework}", *session.posargs)


def _add_all(framework: str) -> None:
    @nox.session(name=framework, venv_backend="none")
    def every(session: nox.Session) -> None:
        for version in VERSIONS[framework]:
            session.notify(f"{framework}-{version}", posargs=session.posargs)


for _framework, _versions in VERSIONS.items():
    _add_all(_framework)
    for _version, _packages in _versions.items():
        _add(_framework, _version, _packages)
