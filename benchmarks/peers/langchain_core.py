"""The partial JSON parser of langchain-core, as its output parsers and tool-call chunks use it."""

from __future__ import annotations

from benchmarks.peers.peer import Peer, validated
from langchain_core.utils.json import parse_partial_json

PEERS = [Peer("langchain-core partial + validator", "langchain-core", validated(parse_partial_json))]
