"""``python -m bica`` does what the command ``bica`` does."""

from bica.cli.app import main

main()
