"""What puts rooms together: from a study to finished traces."""
