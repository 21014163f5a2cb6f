"""What the lab notebooks import beside rooflab's public names: one module per lab, thin names with units."""
