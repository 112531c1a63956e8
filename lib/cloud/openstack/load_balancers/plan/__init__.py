"""Which steps lead from what there is to what is asked for, and their requests."""
