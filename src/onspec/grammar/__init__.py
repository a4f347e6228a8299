"""Grammars: tools and a dialect become what a decoder may emit."""
