"""Models run in-process: sampling under a grammar, closing out, and measuring."""

from importlib.util import find_spec

from onspec.errors import MissingExtra

for _package in ("numpy", "llguidance"):
    try:
        _found = find_spec(_package)
    except ValueError:
        _found = None
    if _found is None:
        raise MissingExtra(_package, "local")
