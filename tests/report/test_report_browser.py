"""The report in a real browser, opened from disk: readable, operable by keyboard, and quiet."""

from importlib.util import find_spec

import pytest

for needed in ("jinja2", "matplotlib", "scipy"):
    pytest.importorskip(needed)

from browser import keep, page  # noqa: E402
from browser import needed as browser_needed  # noqa: E402
from hostile import HOSTILE, hostile_run  # noqa: E402
from report_runs import captured  # noqa: E402

DESKTOP = {"width": 1280, "height": 900}
TABLET = {"width": 768, "height": 1024}
PHONE = {"width": 390, "height": 844}
WAYS = [
    pytest.param("light", DESKTOP, id="light-desktop"),
    pytest.param("dark", DESKTOP, id="dark-desktop"),
    pytest.param("light", TABLET, id="light-tablet"),
    pytest.param("light", PHONE, id="light-phone"),
    pytest.param("dark", PHONE, id="dark-phone"),
]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    return captured(seed=1).report(path, captured(seed=2)).as_uri()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile") / "report.html"
    return hostile_run().report(path, hostile_run()).as_uri()


def watched(opened):
    """Note what a page asks for and complains of."""
    seen = []
    opened.on("request", lambda request: seen.append(request.url))
    opened.on("console", lambda message: seen.append(message.text))
    opened.on("dialog", lambda dialog: (seen.append(dialog.message), dialog.dismiss()))
    opened.on("pageerror", lambda error: seen.append(str(error)))
    return seen


def test_it_shows_the_funnel_and_makes_no_request(report):
    with page(viewport=DESKTOP) as opened:
        seen = watched(opened)
        opened.goto(report)
        funnel = opened.get_by_role("region", name="Where relevant chunks get lost")
        assert funnel.is_visible()
        rows = funnel.get_by_role("row").all_inner_texts()
        assert [row.split()[0] for row in rows[1:]] == ["retrieve", "rerank", "prompt"]
        assert seen == [report]


def test_a_worst_query_is_opened_by_keyboard_alone(report):
    with page(viewport=DESKTOP) as opened:
        opened.goto(report)
        worst = opened.locator("section[aria-labelledby=worst]")
        cells = worst.locator("details").first.locator("td")
        verdict = cells.get_by_text("not relevant").first
        assert not verdict.is_visible()
        inside = "document.activeElement.matches('[aria-labelledby=worst] summary')"
        for _ in range(100):
            opened.keyboard.press("Tab")
            if opened.evaluate(inside):
                break
        opened.keyboard.press("Enter")
        assert verdict.is_visible()
        assert (
            worst.locator("details").first.locator("td").get_by_text("missing").first.is_visible()
        )


@pytest.mark.parametrize(("scheme", "viewport"), WAYS)
def test_axe_finds_no_serious_violation(report, scheme, viewport):
    if find_spec("axe_playwright_python") is None:
        browser_needed("axe-playwright-python is not installed")
    from axe_playwright_python.sync_playwright import Axe

    with page(viewport=viewport, color_scheme=scheme) as opened:
        opened.goto(report)
        keep(opened.screenshot(full_page=True), f"report-{scheme}-{viewport['width']}.png")
        opened.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        found = Axe().run(opened).response["violations"]
        keep(opened.screenshot(full_page=True), f"report-{scheme}-{viewport['width']}-open.png")
    serious = [one["id"] for one in found if one["impact"] in ("serious", "critical")]
    assert serious == [], found


@pytest.mark.parametrize("viewport", [DESKTOP, TABLET, PHONE], ids=["desktop", "tablet", "phone"])
def test_nothing_sticks_out_of_the_page(report, hostile, viewport):
    for address in (report, hostile):
        with page(viewport=viewport) as opened:
            opened.goto(address)
            opened.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
            assert opened.evaluate("document.documentElement.scrollWidth") <= viewport["width"]


def test_hostile_text_does_nothing_and_is_text(hostile):
    with page(viewport=DESKTOP) as opened:
        seen = watched(opened)
        opened.goto(hostile)
        opened.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        keep(opened.screenshot(full_page=True), "report-hostile.png")
        assert seen == [hostile]
        assert opened.evaluate("document.querySelectorAll('script, img, iframe, form').length") == 0
        shown = opened.inner_text("main")
        for text in HOSTILE.values():
            if "<" in text:
                assert text in shown


def test_print_shows_what_is_folded(report):
    with page(viewport=DESKTOP) as opened:
        opened.goto(report)
        chunks = opened.locator("section[aria-labelledby=worst] table.chunks").first
        assert not chunks.is_visible()
        opened.emulate_media(media="print")
        assert chunks.is_visible()
        assert not opened.get_by_role("navigation").is_visible()


def test_without_a_browser_it_is_skipped_or_required(monkeypatch):
    monkeypatch.setenv("CTXEVAL_BROWSER", "required")
    with pytest.raises(pytest.fail.Exception, match="required"):
        browser_needed("there is no chromium")
    monkeypatch.delenv("CTXEVAL_BROWSER")
    with pytest.raises(pytest.skip.Exception, match="no chromium"):
        browser_needed("there is no chromium")
