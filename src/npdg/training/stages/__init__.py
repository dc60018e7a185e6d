"""The stages of a run, one file each: every one takes the progress so far and returns it further on."""
