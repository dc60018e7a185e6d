"""Everything around a run: configuration, directories, pictures, reports and the terminal."""
