"""Scan: how often were the calls in session files off their schema, and what did that cost."""

from onspec.scan.count import FileReport, Tally
from onspec.scan.file import Options, scan_file
from onspec.scan.run import Report, scan

__all__ = ["FileReport", "Options", "Report", "Tally", "scan", "scan_file"]
