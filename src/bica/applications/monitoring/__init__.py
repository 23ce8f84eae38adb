"""Which channel each sniffer should watch: users are sources, sniffers are sensors."""
