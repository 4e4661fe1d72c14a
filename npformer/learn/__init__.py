"""To learn by doing: exercises with a referee, a museum of bugs, the page of `npformer play`."""
