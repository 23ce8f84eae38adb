"""The paper's evaluation and both applications' experiments, with their figures."""
