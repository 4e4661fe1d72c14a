"""What `npformer train` trains when it is given the name of a task or a file."""
