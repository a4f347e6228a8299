"""Tests of the edit engine and the tools on it."""
