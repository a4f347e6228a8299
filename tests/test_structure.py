"""Numbers the project holds: imports at the top, short files, docstrings, nothing that names a registry."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src" / "onspec").rglob("*.py"))
LONGEST = 800
HOSTS = ("pypi" + ".org", "pythonhosted" + ".org", "npmjs" + ".org", "deb.debian" + ".org")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_source_file(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert text.count("\n") <= LONGEST, f"more than {LONGEST} lines: look for the second idea"
    assert ast.get_docstring(tree), "a file says in one line what it is for"
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom):
                    names.append("onspec" if node.level else node.module or "")
                own = [name for name in names if name.split(".")[0] == "onspec"]
                assert not own, f"line {node.lineno}: import {own[0]} at the top"


def test_no_file_names_a_registry() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.is_file() and path.stat().st_size < 2_000_000:
            text = path.read_text(encoding="utf-8", errors="ignore")
            assert not any(host in text for host in HOSTS), name
