"""Random content for every entry of a platform: values, packets and requests that are sound, strange or broken."""
