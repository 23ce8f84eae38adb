"""Which channel each sniffer should watch."""
