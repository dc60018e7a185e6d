"""The page of a run and of several: what is in it, what it refuses, and that it works in a browser."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from browser import CHROMIUM, Browser
from run_files import marched_run, solved_run

from npdg.catalogue import CARDS
from npdg.cli import app as cli
from npdg.runs.reading import PNG as PNG_SIGNATURE
from npdg.runs.reading import PNG_END
from npdg.runs.report.mathml import mathml
from npdg.runs.report.page import Chart, Curve, Page, Picture, Section, Table

HOSTILE = '</script><script>document.title="taken"</script><img src=x onerror="document.title=1">'


def npdg(*arguments: object) -> int:
    return cli._guarded(lambda: cli.app([str(word) for word in arguments], standalone_mode=False))


def test_formulas_are_well_formed_and_set_as_written():
    for card in CARDS.values():
        assert card.formulas is not None
        for formula in card.formulas(card.default_dim):
            ElementTree.fromstring(mathml(formula).replace("&nbsp;", " "))
    root = ElementTree.fromstring(mathml(r"\frac{1}{2} x_k^2 + \sin(a)"))
    assert [child.tag for child in root[0]] == ["mfrac", "msubsup", "mo", "mi", "mo", "mi", "mo"]
    assert [part.text for part in root[0][1]] == ["x", "k", "2"]
    for wrong in ("{x", "x}", r"\frac{1}", "x^"):
        with pytest.raises(ValueError, match=r"braces|missing"):
            mathml(wrong)


def test_every_option_of_a_problem_has_its_formula():
    formulas = CARDS["poisson"].formulas
    assert formulas is not None
    lines = {name: formulas(3, solution=name) for name in ("sines", "cosines", "paraboloid", "packet")}
    assert len(set(lines.values())) == 4


def test_the_page_of_a_run_is_rewritten_in_its_directory_and_fetches_nothing(tmp_path, capsys):
    directory = solved_run(tmp_path / "run")
    for _ in range(2):
        assert npdg("report", directory) == 0
    assert str(directory / "report.html") in capsys.readouterr().out
    page = (directory / "report.html").read_text()
    assert set(re.findall(r"https?://[^\"'\s]*", page)) == {"http://www.w3.org/2000/svg"}  # a name, not an address
    for words in ("unit cube, 2-D", "relative L² error", "tau_u", "cpu:0", "<munderover>", "npdg solve poisson"):
        assert words in page
    charts = _charts(page)
    assert [curve["label"] for curve in charts["Errors"]["curves"]] == ["relative L² error", "relative H¹ error"]
    assert charts["Errors"]["curves"][0]["x"] == {"seconds": [0.1, 0.6, 1.1], "steps": [1, 10, 100]}
    assert charts["Terms of the functional, by size"]["curves"][0]["y"] == [-1.0, -0.3, -0.09]
    assert {curve["label"] for curve in charts["Iterations of the linear solves"]["curves"]} == {"u", "φ"}


def test_a_report_from_files_does_not_wait_for_jax(tmp_path):
    directory = solved_run(tmp_path / "run")
    code = (
        "import sys; from npdg.cli.app import app\n"
        f"app(['report', {str(directory)!r}], standalone_mode=False)\n"
        "assert 'jax' not in sys.modules and 'matplotlib' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_march_has_curves_of_error_energy_and_residual_against_time(tmp_path):
    assert npdg("report", marched_run(tmp_path / "run")) == 0
    charts = _charts((tmp_path / "run" / "report.html").read_text())
    assert charts["Energy"]["curves"][0]["y"] == [9.0, 8.0, 7.0]
    assert charts["Errors"]["curves"][0]["x"] == {"time": [0.0, 0.5, 1.0], "training seconds": [2.0, 4.0, 6.0]}
    assert "Residual of the time steps" in charts
    assert [curve["label"] for curve in charts["u"]["curves"]] == ["u at t = 0", "u at t = 0.5", "u at t = 1"]
    np.testing.assert_allclose(charts["Distance to the truth"]["curves"][0]["y"], 0.1)


def test_several_runs_are_compared_in_a_new_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    solved_run(Path("one"))
    solved_run(Path("two"), seed=1)
    assert npdg("report", "one", "two") == 0
    before = Path("report.html").read_text()
    charts = _charts(before)
    assert [c["label"] for c in charts["Relative L² error"]["curves"]] == ["npdg, seed 0", "npdg, seed 1"]
    assert [c["shade"] for c in charts["Relative L² error"]["curves"]] == [0, 1]
    assert npdg("report", "one", "two") == 2
    assert Path("report.html").read_text() == before
    assert npdg("report", "one", "two", "--out", "other.html") == 0
    assert npdg("report", "one", "one", "--out", "third.html") == 2
    assert not Path("third.html").exists()
    assert not Path("one/report.html").exists()


def test_a_run_that_has_not_ended_shows_how_far_it_came(tmp_path):
    directory = solved_run(tmp_path / "run")
    (directory / "result.json").unlink()
    assert npdg("report", directory) == 0
    page = (directory / "report.html").read_text()
    assert "has not come to its end" in page
    assert "<dd>100</dd>" in page  # the last step that was measured
    for name in ("metrics.csv", "env.json", "report.json", "figures/slices.npz"):
        (directory / name).unlink()
    assert npdg("report", directory) == 0
    assert "tau_u" in (directory / "report.html").read_text()


def test_a_map_of_ones_own_measures_shows_its_saddle_and_its_pictures(tmp_path):
    directory = solved_run(tmp_path / "run", problem="ot-of-mine", dim=3)
    result = json.loads((directory / "result.json").read_text())
    (directory / "result.json").write_text(json.dumps({**result, "map_l2": 0.1}))
    for name in ("map.png", "map.dark.png"):
        (directory / "figures" / name).write_bytes(PNG_SIGNATURE + PNG_END)
    assert npdg("report", directory) == 0
    page = (directory / "report.html").read_text()
    assert "<msub><mi>ρ</mi><mn>1</mn></msub>" in page
    assert page.count("data:image/png;base64,iVBORw0KGgp") == 2


@pytest.mark.parametrize("ended", [True, False])
def test_a_march_of_an_earlier_version_is_known_by_its_files(tmp_path, ended):
    """Its configuration does not say what kind of problem it was of, and its name is not of the catalogue."""
    directory = marched_run(tmp_path / "run")
    config = directory / "config.toml"
    config.write_text(config.read_text().replace('"allen-cahn-1d"', '"mine"'))
    if not ended:
        (directory / "result.json").unlink()
    assert npdg("report", directory) == 0
    page = (directory / "report.html").read_text()
    assert "∂" in page.split("<math")[1].split("</math>")[0]
    assert _charts(page)["Energy"]["curves"][0]["x"]["time"] == [0.0, 0.5, 1.0]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("config.toml", None, "holds no config.toml"),
        ("config.toml", b"[run", "config.toml is damaged"),
        ("config.toml", b"[run]\nproblem = 'poisson'\n", "no table [run]"),
        (
            "config.toml",
            b"[run]\nproblem='poisson'\ndim=2\nmethod='npdg'\n[options]\nwrong=1\n",
            "do not fit",
        ),
        (
            "config.toml",
            b"[run]\nproblem='poisson'\ndim=2\nmethod='npdg'\nkind='nonsense'\n",
            "its kind 'nonsense' is none of",
        ),
        ("config.toml", b"\xff\xfe", "config.toml is damaged"),
        ("result.json", b'{"steps": 1', "result.json is damaged"),
        ("result.json", b"[1]", "result.json is damaged: it is no JSON object"),
    ],
)
def test_a_damaged_run_is_one_line_and_exit_2(name, content, says, tmp_path, capsys):
    directory = solved_run(tmp_path / "run")
    if content is None:
        (directory / name).unlink()
    else:
        (directory / name).write_bytes(content)
    assert npdg("report", directory) == 2
    assert not (directory / "report.html").exists()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert says in lines[0]


@pytest.mark.parametrize("content", [b"step,seconds\n1,2\n3\n", b"step,seconds\n1,many\n", b"a,b\n1,2\n"])
def test_a_report_leaves_damaged_lines_of_the_history_out(content, tmp_path):
    directory = solved_run(tmp_path / "run")
    (directory / "metrics.csv").write_bytes(content)
    with pytest.warns(UserWarning, match=r"metrics\.csv is damaged: 1 of its"):
        assert npdg("report", directory) == 0
    assert (directory / "report.html").exists()


def objects() -> bytes:
    content = io.BytesIO()
    np.savez(content, axes=np.array([0]), u=np.array([{}], dtype=object))
    return content.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("figures/slices.npz", b"PK\x03\x04broken"),
        ("figures/slices.npz", objects()),
        ("figures/extra.png", b"<svg/>"),
        ("figures/extra.png", PNG_SIGNATURE),  # torn
    ],
)
def test_a_damaged_picture_is_left_out_of_the_report(name, content, tmp_path, capsys):
    directory = solved_run(tmp_path / "run")
    (directory / name).write_bytes(content)
    assert npdg("report", directory) == 0
    page = (directory / "report.html").read_text()
    assert "As it went" in page
    assert "image/png" not in page
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == (1 if "slices" in name else 0)  # there is no solution to make them from
    assert all("no pictures of the solution" in line for line in lines)


def test_a_run_that_is_not_there_is_one_line(tmp_path, capsys):
    assert npdg("report", tmp_path / "nowhere") == 2
    assert "does not exist" in capsys.readouterr().err


def test_numbers_that_are_not_finite_are_gaps_and_pictures_have_their_words():
    picture = Picture("what it shows", b"\x89PNG", b"\x89PNG dark")
    chart = Chart("c", [Curve("a", {"s": [1.0, 2.0]}, [float("nan"), float("inf")])])
    page = Page("t", "s", [], {"small": "1.5e-08"}, [Section("p", [chart, picture, Table([["k", None]])])]).html()
    assert _charts(page)["c"]["curves"][0]["y"] == [None, None]
    assert 'alt="what it shows"' in page
    assert '<source media="screen and (prefers-color-scheme: dark)"' in page
    assert "1.5&#8239;×&#8239;10<sup>−8</sup>" in page


def _charts(page: str) -> dict:
    found = re.findall(
        r'<figure class="chart"><figcaption>(.*?)</figcaption><script type="application/json">(.*?)</script>', page
    )
    return {title: json.loads(data) for title, data in found}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("no Chromium here: the report was not tried in a browser")
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.mark.parametrize("fault", ["throw Error(1)", "console.error(1)", "fetch('http://127.0.0.1:9/').catch(() => 0)"])
def test_the_browser_would_notice_a_fault(browser, tmp_path, fault):
    (tmp_path / "page.html").write_text(f"<title>t</title><script>{fault}</script>")
    browser.open(tmp_path / "page.html")
    assert browser.complaints != []


def test_the_page_works_in_a_browser(browser, tmp_path):
    one, two = solved_run(tmp_path / "one"), solved_run(tmp_path / "two", seed=1, method=HOSTILE)
    for directory in (one, marched_run(tmp_path / "march")):
        assert npdg("report", directory) == 0
    assert npdg("report", one, two, "--out", tmp_path / "both.html") == 0
    expected = {one / "report.html": (4, 3), tmp_path / "march" / "report.html": (6, 0), tmp_path / "both.html": (7, 6)}
    for page, counts in expected.items():
        for width, dark in ((1200, False), (1200, True), (390, False)):
            browser.look(width, dark)
            browser.open(page)
            drawn = "document.querySelectorAll('figure.chart path.curve').length"
            assert browser.run("document.querySelectorAll('figure.chart').length") == counts[0]
            assert browser.run(drawn) >= counts[0]
            painted = browser.run("[...document.querySelectorAll('figure.map')].map(f => +f.dataset.painted)")
            assert painted == [120, 121, 120][: counts[1]] * (counts[1] // 3 or 1)  # one corner of u is blank
            assert browser.run("document.documentElement.scrollWidth <= innerWidth")
            assert browser.run("[...document.querySelectorAll('math')].every(m => m.clientHeight !== 0)")
            assert browser.run("document.title") not in ("taken", "1")
            assert browser.complaints == []


def test_curves_are_toggled_axes_switched_and_values_read_out(browser, tmp_path):
    directory = solved_run(tmp_path / "run")
    assert npdg("report", directory) == 0
    browser.look(1200)
    browser.open(directory / "report.html")
    first = "document.querySelector('figure.chart')"
    curves = f"{first}.querySelectorAll('path.curve').length"
    toggle = f"{first}.querySelector('.legend button')"
    assert browser.run(curves) == 2
    browser.run(f"{toggle}.click()")
    assert browser.run(curves) == 1
    assert browser.run(f"{toggle}.getAttribute('aria-pressed')") == "false"
    browser.run(f"{toggle}.click()")
    assert browser.run(curves) == 2
    path = f"{first}.querySelector('path.curve').getAttribute('d')"
    before = browser.run(path)
    browser.run(f"[...{first}.querySelectorAll('.controls button')].find(b => b.textContent === 'steps').click()")
    assert browser.run(f"{first}.dataset.axis") == "steps"
    assert browser.run(path) != before
    browser.run(f"{first}.querySelector('svg').focus()")
    key = {"key": "End", "code": "End", "windowsVirtualKeyCode": 35}
    browser.call("Input.dispatchKeyEvent", type="keyDown", **key)
    assert "steps 100" in browser.run(f"{first}.querySelector('.readout').textContent")
    assert "0.01" in browser.run(f"{first}.querySelector('.readout').textContent")
    place = "document.querySelector('figure.map canvas').getBoundingClientRect()"
    browser.run("document.querySelector('figure.map').scrollIntoView({block: 'center'})")
    box = browser.run(f"(b => [b.left + b.width - 2, b.top + 2])({place})")
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])
    assert browser.run("document.querySelector('figure.map .readout').textContent") == "x₁ 1, x₂ 12.01"
    assert browser.complaints == []
