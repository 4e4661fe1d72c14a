"""What is run from a shell: the command line and its commands."""
