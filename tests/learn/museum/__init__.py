"""A museum of real bugs: each is put into npformer, and a named check must notice."""
