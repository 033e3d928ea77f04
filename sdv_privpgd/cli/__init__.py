"""The command line: a file of rows in, a file of synthetic rows out.

    sdv-privpgd synthesize table.csv --header --epsilon 1 --out synthetic.csv --report report.html
    sdv-privpgd sample model.zip --rows 500 --out more.csv
    sdv-privpgd describe model.zip

What was paid for is kept: a file that cannot be written takes no other with it, and a fit that was
interrupted is finished by ``sdv-privpgd resume``, for nothing.

An error is one line and never holds a value of the table, so other libraries' words on its cells
are left out. The exit status is 0 for success, 1 for a failure, 2 for a wrong command line and 130
after Ctrl-C.
"""
