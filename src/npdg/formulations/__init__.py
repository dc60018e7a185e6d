"""Formulations: how a problem becomes a `Saddle`, one file each."""
