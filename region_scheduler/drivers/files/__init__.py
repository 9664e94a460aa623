"""What lies in a region's own directories."""
