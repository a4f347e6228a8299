"""Repair: the table of leniencies, and the passes that apply it."""
