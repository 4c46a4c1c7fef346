"""The experiments of the ledger. Each module has `EXPERIMENTS`, a tuple."""
