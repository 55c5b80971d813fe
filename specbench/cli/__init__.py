"""argv to exit code: one file a verb."""
