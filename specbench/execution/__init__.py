"""The only effects: leases a slot, launches a server, drives load, stores what was seen."""
