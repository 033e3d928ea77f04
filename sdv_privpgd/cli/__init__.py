"""The command line: a file of rows in, a file of synthetic rows out.

    sdv-privpgd synthesize table.csv --epsilon 1 --out synthetic.csv --report report.html
    sdv-privpgd describe model.pkl

Errors are one line and never hold a value of the table: what other libraries say of its cells is
left out. Exit status 0 is success, 1 a failure, 2 a wrong command line, 130 after Ctrl-C.
"""
