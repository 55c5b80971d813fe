"""A `Judgement` to what a person or a program reads. Pure; the only room with percent and milliseconds."""
