"""json_repair, plain and guided by the schema."""

from __future__ import annotations

from typing import Any

import json_repair
from benchmarks.peers.peer import Parse, Peer, validated


def _guided(schema: dict[str, Any]) -> Parse:
    return validated(lambda text: json_repair.loads(text, schema=schema))(schema)


PEERS = [
    Peer("json_repair + validator", "json_repair", validated(json_repair.loads)),
    Peer("json_repair with schema", "json_repair", _guided),
]
