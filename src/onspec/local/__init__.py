"""Models run in-process: sampling under a grammar, closing out, and measuring."""
