"""Offline analysis."""
