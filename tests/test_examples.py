"""Every example runs and its own assertions hold."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_example(path, tmp_path):
    done = subprocess.run([sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_equation_in_the_readme_runs(tmp_path):
    text = (ROOT / "README.md").read_text()
    code = text.split("```python")[1].split("```")[0]
    (tmp_path / "readme.py").write_text(code.replace("seconds=10", "steps=5"))
    done = subprocess.run([sys.executable, "readme.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "slice.png").exists()
    assert (tmp_path / "poisson5").is_dir()
