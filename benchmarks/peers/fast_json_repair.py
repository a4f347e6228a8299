"""fast-json-repair."""

from __future__ import annotations

import fast_json_repair
from benchmarks.peers.peer import Peer, validated

PEERS = [Peer("fast-json-repair + validator", "fast-json-repair", validated(fast_json_repair.loads))]
