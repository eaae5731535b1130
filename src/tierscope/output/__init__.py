"""Result directories: claimed, locked, written durably, sealed by checksums. Nothing else decides what is ours."""
