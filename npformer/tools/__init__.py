"""What is run from a shell: the command line, and what its commands do."""
