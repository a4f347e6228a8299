"""The gateway's live page."""
