"""Methods that ask and make rows by themselves, one folder or module each."""
