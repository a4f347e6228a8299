"""What the pages show runs and says what they show; generated ones are up to date; links lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest

from onspec.cli.main import app
from onspec.gateway.config import Config, Rules, load

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("script", ["docs/generate.py", "docs/dialects.py"])
def test_generated_pages_are_up_to_date(script: str) -> None:
    done = subprocess.run([sys.executable, script, "--check"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _examples() -> list[Any]:
    """Every command shown with its output, and what is shown of it."""
    found = []
    for page in PAGES:
        for block in re.findall(r"```console\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                lines = part.rstrip("\n").split("\n")
                size = 1
                while lines[size - 1].endswith("\\") or "\n".join(lines[:size]).count("'") % 2:
                    size += 1
                found.append(pytest.param("\n".join(lines[:size]), lines[size:], id=f"{page.stem}-{len(found)}"))
    return found


@pytest.mark.parametrize(("command", "shown"), _examples())
def test_an_example_says_what_is_shown(command: str, shown: list[str], tmp_path: Path) -> None:
    start = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    (tmp_path / "edit.json").write_text(re.findall(r"```json\n(.*?)```", start, re.DOTALL)[0])
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert sorted((done.stdout + done.stderr).splitlines()) == sorted(shown)


def test_the_settings_shown_are_all_there_are(tmp_path: Path) -> None:
    (shown,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "gateway.md").read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "onspec.toml").write_text(shown)
    loaded = load(tmp_path / "onspec.toml").checked()
    assert [upstream.url for upstream in loaded.upstreams] == ["https://api.anthropic.com", "https://api.openai.com"]
    own = {field.name for field in fields(Config)} - {"rules", "tools", "models", "upstreams"}
    assert tomllib.loads(shown)["gateway"].keys() == own | {field.name for field in fields(Rules)}


@pytest.mark.parametrize(("name", "page"), [("check", "check"), ("mcp", "mcp"), ("pack", "pack")])
def test_every_option_is_on_the_page(name: str, page: str) -> None:
    command = app.get_command(click.Context(app), name)
    assert command is not None
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    told = {option for parameter in command.params for option in parameter.opts if option.startswith("--")}
    assert {option for option in told if f"`{option}" not in text and f" {option}" not in text} <= {
        "--output",
        "--force",
    }


def test_links_between_pages_lead_somewhere() -> None:
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")):
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
