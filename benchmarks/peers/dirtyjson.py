"""dirtyjson."""

from __future__ import annotations

from typing import Any

import dirtyjson
from benchmarks.peers.peer import Peer, validated


def _plain(value: Any) -> Any:
    """Its own kinds of dict and list as plain ones."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value


PEERS = [Peer("dirtyjson + validator", "dirtyjson", validated(lambda text: _plain(dirtyjson.loads(text))))]
