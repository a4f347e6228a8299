"""partial-json-parser."""

from __future__ import annotations

import partial_json_parser
from benchmarks.peers.peer import Peer, validated

PEERS = [Peer("partial-json-parser + validator", "partial-json-parser", validated(partial_json_parser.loads))]
