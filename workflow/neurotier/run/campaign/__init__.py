"""A campaign: a matrix of conditions with repetitions, each an ordinary run of the workflow."""
