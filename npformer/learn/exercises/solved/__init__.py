"""The solved files. Readers get them with blanks: see `Exercise.blank`."""
