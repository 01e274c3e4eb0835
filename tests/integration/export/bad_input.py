def add_to(suite):
    pass
