"""One use case per command that needs several rooms, named after the command. What one room does alone, `cli` calls there."""
