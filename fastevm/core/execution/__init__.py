"""Transactions and blocks: decoding, validation, execution, receipts and roots."""
