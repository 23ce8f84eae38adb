"""The values: an OR mixture, its noise, and what a method found."""
