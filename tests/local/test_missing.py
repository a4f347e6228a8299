"""Without its extra, the package says which one to install, and the grammars themselves still compile."""

from __future__ import annotations

import subprocess
import sys

import pytest

from onspec.errors import MissingExtra


@pytest.mark.parametrize("package", ["numpy", "llguidance"])
def test_a_missing_package_is_named(package: str) -> None:
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from onspec.cli.main import main\n"
        "sys.argv = ['onspec', 'generate', 'hi']\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert done.stderr.strip() == f"onspec: {package} is not installed; run: pip install 'onspec[local]'"


def test_a_package_that_no_extra_holds_is_named_itself() -> None:
    assert str(MissingExtra("llama-cpp-python", None)).endswith("run: pip install llama-cpp-python")


def test_grammars_are_text_and_need_no_engine() -> None:
    code = (
        "import sys; sys.modules['numpy'] = sys.modules['llguidance'] = None\n"
        "from onspec.grammar.build import build\n"
        "from onspec.contract.tool import Tool\n"
        "print(build([Tool('t', {'type': 'object'})], 'hermes_json').lark[:5])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "start"
