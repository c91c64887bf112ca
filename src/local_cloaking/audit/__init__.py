"""The record of a run and the files it is made from."""
