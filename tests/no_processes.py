"""In place of the two new processes of an audit, in which nothing is planted: a second saved."""


class NoProcesses:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def draws(self):
        return (), ()
