"""Providers: one file a wire API, and a scripted one that says exactly what it is told."""
