"""Packet captures: pcap and pcapng, read as streams, also where they are damaged."""
