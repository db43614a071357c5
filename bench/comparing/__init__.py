"""The parts of bench/compare: processes, what is measured, the table."""
