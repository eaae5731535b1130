"""What a network demands of a machine, from its layers alone: memory, operations, bytes moved, scaling."""
