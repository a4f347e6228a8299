"""The second half of `onspec demo`: a small model, free and constrained, and what a failed call does to the next."""

from __future__ import annotations

from rich.console import Console

from onspec.cli.heat import show_story
from onspec.local.demo import run
from onspec.local.models import installed, open_model

MODEL = "smollm2"


def there() -> bool:
    """Whether the bundled model is installed."""
    return installed(MODEL) is not None


def tell(console: Console) -> None:
    """Run the model and print what it did. Takes about a minute on one core."""
    notes = Console(stderr=True, highlight=False)
    with notes.status("opening the model") as status:
        story = run(open_model(MODEL, told=status.update), told=lambda line: status.update(line))
    show_story(console, story)
