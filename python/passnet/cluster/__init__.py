"""The bridge between the driver (the `passnet` program) and Ray: it starts workers, carries bytes and decides nothing."""
