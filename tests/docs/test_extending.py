"""The examples of docs/extending.md, each as the file that it says it is."""

import re
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
FILES = {match[1]: match[2] for match in re.finditer(r"```python\n# (\w+)\.py\n(.*?)```", PAGE.read_text(), re.DOTALL)}


def test_the_page_has_an_example_of_each_kind():
    assert set(FILES) == {"equations", "robin", "ellipse", "fourier", "adabelief", "chebyshev", "averaging"}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FILES if name != "equations"])
def test_an_example_does_what_it_asserts(name, tmp_path, monkeypatch):
    (tmp_path / "equations.py").write_text(FILES["equations"])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "equations", raising=False)
    exec(compile(FILES[name], f"{name}.py", "exec"), {"__name__": name})
