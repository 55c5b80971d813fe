"""Doubts about a run, one file each, ending with `CHECK`."""
