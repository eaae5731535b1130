"""What happened: the recorder that ranks carry, the table it becomes, and the files it is kept in."""
