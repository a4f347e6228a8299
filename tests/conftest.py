"""Hypothesis profiles: `default`, the same examples at every run of the same code; `fuzz` for `make fuzz`, new ones."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "default",
    max_examples=1700,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.register_profile("fuzz", parent=settings.get_profile("default"), max_examples=100_000, derandomize=False)
settings.register_profile("quick", parent=settings.get_profile("default"), max_examples=100)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
