"""`python -m onspec`."""

from onspec.cli.main import main

main()
