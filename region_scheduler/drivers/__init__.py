"""The vendors' only homes, one folder a technology; only assembly imports them."""
