"""What `import onspec` pulls in, and what it offers."""

from __future__ import annotations

import subprocess
import sys

import onspec

EXTRAS = ("pydantic", "httpx", "starlette", "uvicorn", "anthropic", "openai", "ray", "mcp", "torch", "numpy")
HELP = """
import sys
from onspec.cli import main
sys.argv = ["onspec", "--help"]
try:
    main.main()
except SystemExit:
    pass
loaded = [name for name in sys.modules if name.startswith("onspec.cli.") and name != "onspec.cli.main"]
print(loaded, "rich" in sys.modules)
"""


def test_the_public_face_is_sorted_and_whole() -> None:
    assert list(onspec.__all__) == sorted(onspec.__all__)
    assert set(onspec.__all__) == set(onspec._HOMES)
    for name in onspec.__all__:
        found = getattr(onspec, name)
        assert found.__module__ == onspec._HOMES[name]
    assert onspec.check is onspec.check
    assert callable(onspec.check)
    assert not hasattr(onspec, "no_such_name")


def test_a_submodule_of_the_same_name_does_not_hide_the_function() -> None:
    code = (
        "import onspec.check, onspec; assert callable(onspec.check); from onspec import check; assert callable(check)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_pulls_in_no_extra() -> None:
    code = f"import sys, onspec; onspec.check; print([name for name in {EXTRAS!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_help_loads_no_subcommand() -> None:
    done = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[] False"
