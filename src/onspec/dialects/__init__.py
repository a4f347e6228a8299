"""Dialects: how model families write calls inside text."""

from onspec.dialects.dialect import Dialect
from onspec.dialects.models import dialect_of
from onspec.dialects.table import DIALECTS, named

__all__ = ["DIALECTS", "Dialect", "dialect_of", "named"]
