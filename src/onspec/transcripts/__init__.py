"""Transcripts: what agents and evaluation tools write down about their sessions, in one model."""

from onspec.transcripts.reader import FORMATS, Format, detect, load, load_all
from onspec.transcripts.session import (
    Damage,
    Entry,
    Session,
    Start,
    ToolCall,
    ToolResult,
    Tools,
    Turn,
    Unknown,
    Usage,
)
from onspec.transcripts.source import Source

__all__ = [
    "FORMATS",
    "Damage",
    "Entry",
    "Format",
    "Session",
    "Source",
    "Start",
    "ToolCall",
    "ToolResult",
    "Tools",
    "Turn",
    "Unknown",
    "Usage",
    "detect",
    "load",
    "load_all",
]
