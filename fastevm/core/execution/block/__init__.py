"""One block: header, system calls, receipts, requests, access list and roots."""
