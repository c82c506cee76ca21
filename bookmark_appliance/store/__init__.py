"""One module per aggregate: plain data in, plain data out, over a connection that the caller opened.

No HTTP, no clocks, no fetching. A store function never commits: the boundary that calls it holds the transaction. Those
of `bookmarks` are one statement each and want no transaction around them: on a connection in autocommit mode the
statement is one.
"""
