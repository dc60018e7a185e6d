"""Problems: equations, evolutions and transport."""
