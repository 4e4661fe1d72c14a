"""A page on which one trains a model, looks into it, and tries it out: `npformer play`."""
