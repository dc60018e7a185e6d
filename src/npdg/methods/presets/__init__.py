"""The numbers of the presets."""
