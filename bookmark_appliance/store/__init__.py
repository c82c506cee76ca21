"""One module per aggregate: dataclasses in, dataclasses out, over a connection that the caller opened.

No HTTP, no clocks, no fetching. A store function never commits; the boundary that calls it holds the transaction.
"""
