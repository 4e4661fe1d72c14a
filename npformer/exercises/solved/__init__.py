"""The solved files. Readers get them with blanks: see `npformer.exercises.texts`."""
