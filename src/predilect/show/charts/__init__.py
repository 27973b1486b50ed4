"""Charts as inline SVG, drawn from plain values and tables without any dependency."""
